/* Sums that are the same however gradients are cut into slices, and batches dealt to ranks. */
#include "kernels/exact_sum.h"
#include "kernels/cpu/cpu.h"
#include "kernels/ops.h"

#include <assert.h>

struct squares_args {
    struct stream *s;
    double *digits;
    const float *x;
    int64_t count;
};

static void add_blocks(uint64_t digits[EXACT_DIGITS], const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i += EXACT_BLOCK)
        exact_add(digits, exact_block(x + i));
}

static void squares_run(void *args)
{
    enum { CHUNK = 1 << 16 };
    const struct squares_args *a = args;
    int64_t chunks = (a->count + CHUNK - 1) / CHUNK;
    uint64_t(*parts)[EXACT_DIGITS] = cpu_scratch(a->s, (size_t)(chunks + 1) * sizeof *parts);
    memset(parts, 0, (size_t)(chunks + 1) * sizeof *parts);
#pragma omp parallel for schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t left = a->count - i * CHUNK;
        add_blocks(parts[i], a->x + i * CHUNK, left < CHUNK ? left : CHUNK);
        exact_carry(parts[i]);
    }
    uint64_t *sum = parts[chunks];
    for (int64_t i = 0; i < chunks; i++)
        for (int d = 0; d < EXACT_DIGITS; d++)
            sum[d] += parts[i][d];
    exact_carry(sum);
    for (int d = 0; d < EXACT_DIGITS; d++)
        a->digits[d] += (double)sum[d];
}

void cpu_exact_squares(struct stream *s, double *digits, const float *x, int64_t count)
{
    assert(count % EXACT_BLOCK == 0);
    cpu_call(s, squares_run, struct squares_args, s, digits, x, count);
}

struct carry_args {
    double *digits;
};

static void carry_run(void *args)
{
    const struct carry_args *a = args;
    uint64_t digits[EXACT_DIGITS];
    for (int d = 0; d < EXACT_DIGITS; d++)
        digits[d] = (uint64_t)a->digits[d];
    exact_carry(digits);
    for (int d = 0; d < EXACT_DIGITS; d++)
        a->digits[d] = (double)digits[d];
}

void cpu_exact_carry(struct stream *s, double *digits)
{
    cpu_call(s, carry_run, struct carry_args, digits);
}

struct value_args {
    double *sum;
    const double *digits;
};

static void value_run(void *args)
{
    const struct value_args *a = args;
    uint64_t digits[EXACT_DIGITS];
    for (int d = 0; d < EXACT_DIGITS; d++)
        digits[d] = (uint64_t)a->digits[d];
    *a->sum = exact_value(digits);
}

void cpu_exact_sum(struct stream *s, double *sum, const double *digits)
{
    cpu_call(s, value_run, struct value_args, sum, digits);
}

struct whole_args {
    double *sums, *parts;
    int64_t count;
};

static void whole_run(void *args)
{
    const struct whole_args *a = args;
    for (int64_t i = 0; i < a->count; i++) {
        a->sums[i] += exact_part(a->parts[i]);
        a->parts[i] = 0;
    }
}

void cpu_exact_add(struct stream *s, double *sums, double *parts, int64_t count)
{
    cpu_call(s, whole_run, struct whole_args, sums, parts, count);
}
