/* Ops that use random numbers: each element's number is named by its place in the whole tensor. */
#include "kernels/random.h"
#include "kernels/cpu/cpu.h"

/* The numbers of a group: random_uniform(key, RANDOM_GROUP * group + i). */
static inline void random_group(float numbers[RANDOM_GROUP], uint64_t key, uint64_t group)
{
#pragma omp simd
    for (uint32_t i = 0; i < RANDOM_GROUP_BLOCKS; i++) {
        uint64_t first =
            group * RANDOM_GROUP_BLOCKS; /* a multiple of 8: adding i carries nothing */
        struct philox_block block = {{(uint32_t)first + i, (uint32_t)(first >> 32), 0, 0}};
        block = philox(block, (uint32_t)key, (uint32_t)(key >> 32));
        numbers[i] = random_unit(block.words[0]);
        numbers[RANDOM_GROUP_BLOCKS + i] = random_unit(block.words[1]);
        numbers[2 * RANDOM_GROUP_BLOCKS + i] = random_unit(block.words[2]);
        numbers[3 * RANDOM_GROUP_BLOCKS + i] = random_unit(block.words[3]);
    }
}

/* numbers[i] = random_uniform(key, first + i) up to the end of first's group, at most `most`.
 * Returns how many, and in *ret_numbers where. */
static inline int64_t random_run(float buffer[RANDOM_GROUP], uint64_t key, uint64_t first,
                                 int64_t most, const float **ret_numbers)
{
    int64_t skip = (int64_t)(first % RANDOM_GROUP), count = RANDOM_GROUP - skip;
    random_group(buffer, key, first / RANDOM_GROUP);
    *ret_numbers = buffer + skip;
    return count < most ? count : most;
}

struct uniform_args {
    float *y;
    uint64_t key, first;
    float low, high;
};

CPU_HOT static void uniform_piece(const void *args, int64_t first, int64_t last)
{
    const struct uniform_args *a = args;
    float buffer[RANDOM_GROUP];
    const float *numbers;
    for (int64_t i = first, n; i < last; i += n) {
        n = random_run(buffer, a->key, a->first + (uint64_t)i, last - i, &numbers);
        for (int64_t j = 0; j < n; j++)
            a->y[i + j] = a->low + (a->high - a->low) * numbers[j];
    }
}

void cpu_uniform(struct stream *s, float *y, int64_t count, uint64_t key, uint64_t first, float low,
                 float high)
{
    cpu_call_pieces(s, uniform_piece, count, CPU_GRAIN, struct uniform_args, y, key, first, low,
                    high);
}

struct dropout_args {
    float *y;
    const float *x;
    int64_t cols;
    float p;
    uint64_t key, first_row, row_stride;
};

/* Rows. */
CPU_HOT static void dropout_piece(const void *args, int64_t first, int64_t last)
{
    const struct dropout_args *a = args;
    float p = a->p, scale = 1 / (1 - p), buffer[RANDOM_GROUP];
    const float *numbers;
    for (int64_t r = first; r < last; r++) {
        uint64_t place = (a->first_row + (uint64_t)r * a->row_stride) * (uint64_t)a->cols;
        for (int64_t c = 0, n; c < a->cols; c += n) {
            float *y = a->y + r * a->cols + c;
            const float *x = a->x + r * a->cols + c;
            n = random_run(buffer, a->key, place + (uint64_t)c, a->cols - c, &numbers);
#pragma omp simd
            for (int64_t j = 0; j < n; j++) {
                float kept = x[j] * scale;
                y[j] = numbers[j] < p ? 0 : kept;
            }
        }
    }
}

void cpu_dropout(struct stream *s, enum dtype t, void *y, const void *x, int64_t rows, int64_t cols,
                 float p, uint64_t key, uint64_t first_row, uint64_t row_stride)
{
    assert(t == DTYPE_F32);
    assert(p >= 0 && p < 1 && cols >= 1);
    cpu_call_pieces(s, dropout_piece, rows, 1 + CPU_GRAIN / cols, struct dropout_args, y, x, cols,
                    p, key, first_row, row_stride);
}
