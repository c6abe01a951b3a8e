/* Rotary position embedding (RoFormer, Su et al. 2021): pair i of token t is rotated by t *
 * theta_i. The paper pairs elements 2i and 2i + 1. Hugging Face's checkpoints have the weights
 * permuted so that pairs are i and i + hd/2, and that is what loops over neighbours want. A
 * rotation's transpose is the rotation back, so backward is the same op with the sine's sign
 * changed. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"

struct rope_args {
    enum dtype t;
    void *x;
    const float *cos, *sin;
    int64_t T, heads, hd, stride;
    float direction;
};

/* `count` pairs, the first elements of which lie at `first`, rotate by the angles. */
static inline void rotate(const struct rope_args *a, int64_t first, const float *cos,
                          const float *sin, int64_t count)
{
    float low_strip[STRIP], high_strip[STRIP];
    int64_t second = first + a->hd / 2;
    strip_read(a->t, a->x, first, count, low_strip);
    strip_read(a->t, a->x, second, count, high_strip);
    float *low = strip_target(a->t, a->x, first, low_strip);
    float *high = strip_target(a->t, a->x, second, high_strip);
    float direction = a->direction;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float x = low[i], y = high[i], signed_sin = direction * sin[i];
        low[i] = x * cos[i] - y * signed_sin;
        high[i] = y * cos[i] + x * signed_sin;
    }
    strip_write(a->t, a->x, first, count, low);
    strip_write(a->t, a->x, second, count, high);
}

/* Tokens of all sequences. */
CPU_HOT static void rope_chunk(const void *args, int64_t first, int64_t last)
{
    const struct rope_args *a = args;
    int64_t half = a->hd / 2;
    for (int64_t token = first; token < last; token++) {
        const float *cos = a->cos + token % a->T * half, *sin = a->sin + token % a->T * half;
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0, n; i < half; i += n) {
                n = strip_length(half - i);
                rotate(a, token * a->stride + h * a->hd + i, cos + i, sin + i, n);
            }
    }
}

void cpu_rope(struct stream *s, enum dtype t, void *x, const float *cos, const float *sin,
              int64_t B, int64_t T, int64_t heads, int64_t hd, int64_t stride, bool inverse)
{
    assert(hd >= 2 && hd % 2 == 0 && heads >= 1 && stride >= heads * hd);
    cpu_call_chunks(s, rope_chunk, B * T, 1 + CPU_GRAIN / (heads * hd), struct rope_args, t, x, cos,
                    sin, T, heads, hd, stride, inverse ? -1.0f : 1.0f);
}
