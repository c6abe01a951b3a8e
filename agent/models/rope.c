#include "agent/models/rope.h"

#include <assert.h>
#include <math.h>

const char *rope_type_name(enum rope_type type)
{
    static const char *const names[ROPE_TYPES] = {"default", "linear", "dynamic", "llama3"};
    return names[type];
}

bool rope_depends_on_length(const struct rope *rope, int64_t T, int64_t max_positions)
{
    return rope->type == ROPE_DYNAMIC && T > max_positions;
}

/* Dynamic NTK: the base that makes the longest wavelength grow by the sequence's excess length. */
static double base_of(const struct rope *rope, int64_t hd, int64_t T, int64_t max_positions)
{
    if (!rope_depends_on_length(rope, T, max_positions))
        return rope->theta;
    double stretch = rope->factor * (double)T / (double)max_positions - (rope->factor - 1);
    return rope->theta * pow(stretch, (double)hd / (double)(hd - 2));
}

/* Llama 3.1: between the two wavelengths the frequency goes over from one rule to the other. */
static double stretch_long_waves(const struct rope *rope, double inv)
{
    double waves = (double)rope->original_max_positions * inv / (2 * M_PI);
    if (waves > rope->high_freq_factor)
        return inv;
    if (waves < rope->low_freq_factor)
        return inv / rope->factor;
    double smooth =
        (waves - rope->low_freq_factor) / (rope->high_freq_factor - rope->low_freq_factor);
    return (1 - smooth) * inv / rope->factor + smooth * inv;
}

void rope_inv_freq(const struct rope *rope, int64_t hd, int64_t T, int64_t max_positions,
                   float *ret_inv_freq)
{
    assert(hd > 0 && hd % 2 == 0);
    double base = base_of(rope, hd, T, max_positions);
    for (int64_t i = 0; i < hd / 2; i++) {
        /* Pair i turns by position * base^(-2i / hd) (Su et al. 2021). */
        double inv = pow(base, -2.0 * (double)i / (double)hd);
        /* Position interpolation (Chen et al. 2023): positions are divided, here by way of the
         * frequencies. */
        if (rope->type == ROPE_LINEAR)
            inv /= rope->factor;
        else if (rope->type == ROPE_LLAMA3)
            inv = stretch_long_waves(rope, inv);
        ret_inv_freq[i] = (float)inv;
    }
}

/* The angle is rounded to fp32 as transformers does: positions have up to 17 bits, so the product
 * would not be exact, and the pretrained weights have seen it so. */
void rope_table(const struct rope *rope, int64_t hd, int64_t T, int64_t max_positions,
                float *ret_cos, float *ret_sin)
{
    int64_t half = hd / 2;
    float *inv_freq = ret_cos + (T - 1) * half; /* the last row, overwritten last */
    rope_inv_freq(rope, hd, T, max_positions, inv_freq);
    for (int64_t i = 0; i < half; i++) {
        float inv = inv_freq[i];
        for (int64_t t = 0; t < T; t++) {
            float angle = (float)t * inv;
            ret_cos[t * half + i] = cosf(angle);
            ret_sin[t * half + i] = sinf(angle);
        }
    }
}

static const struct rope_pair *find(const struct rope_tables *tables, int64_t T, bool exact)
{
    for (int i = 0; i < tables->count; i++) {
        const struct rope_pair *pair = &tables->pairs[i];
        if (pair->exact == exact && (exact ? pair->T == T : pair->T >= T))
            return pair;
    }
    return NULL;
}

/* Tables that serve shorter sequences grow in powers of two, so that there are few. */
const struct rope_pair *rope_tables_get(struct rope_tables *tables, struct arena *arena,
                                        const struct rope *rope, int64_t hd, int64_t T,
                                        int64_t max_positions)
{
    bool exact = rope_depends_on_length(rope, T, max_positions);
    const struct rope_pair *found = find(tables, T, exact);
    if (found || tables->count == ROPE_MAX_TABLES)
        return found;
    int64_t rows = exact ? T : 64;
    while (rows < T)
        rows *= 2;
    if (!exact && rope->type == ROPE_DYNAMIC && rows > max_positions)
        rows = max_positions;
    struct rope_pair *pair = &tables->pairs[tables->count++];
    *pair = (struct rope_pair){rows, exact, arena_array(arena, float, rows *hd / 2),
                               arena_array(arena, float, rows *hd / 2)};
    rope_table(rope, hd, rows, max_positions, pair->cos, pair->sin);
    return pair;
}
