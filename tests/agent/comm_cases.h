/* What every communicator must do, whatever its transport: run by each rank of a group, in a thread
 * or a process of its own, so failures are errors and not cmocka's. */
#ifndef SHOAL_TESTS_AGENT_COMM_CASES_H
#define SHOAL_TESTS_AGENT_COMM_CASES_H

#include "agent/comm/comm.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define COMM_CASES_LARGE 150001 /* floats per rank: beyond every buffer on the way */

static inline float *comm_floats(int64_t count)
{
    return (float *)xcalloc((size_t)count, sizeof(float));
}

/* Small whole numbers: sums of them are exact in any order. */
static inline float comm_value(int rank, int64_t i)
{
    return (float)((rank * 31 + i * 7) % 1000 - 500);
}

static inline float comm_sum(int size, int64_t i)
{
    float sum = 0;
    for (int r = 0; r < size; r++)
        sum += comm_value(r, i);
    return sum;
}

static inline float comm_reduced(int size, int64_t i, enum comm_reduce how)
{
    return how == COMM_MEAN ? comm_sum(size, i) / (float)size : comm_sum(size, i);
}

static inline int comm_expect(const float *got, const float *expected, int64_t count,
                              const char *what, struct error *err)
{
    for (int64_t i = 0; i < count; i++)
        if (got[i] != expected[i])
            return error_set(err, ERR_SHAPE, "%s of %lld: [%lld] is %g, not %g", what,
                             (long long)count, (long long)i, (double)got[i], (double)expected[i]);
    return 0;
}

static inline int comm_case_gather(struct comm *c, struct stream *s, int64_t count, bool in_place,
                                   struct error *err)
{
    int64_t total = count * c->size;
    auto_free float *recv = comm_floats(total);
    auto_free float *expected = comm_floats(total);
    auto_free float *own = comm_floats(count);
    float *send = in_place ? recv + c->rank * count : own;
    for (int64_t i = 0; i < count; i++)
        send[i] = comm_value(c->rank, i);
    for (int64_t i = 0; i < total; i++)
        expected[i] = comm_value((int)(i / count), i % count);
    c->fn->all_gather(c, s, DTYPE_F32, recv, send, count);
    return stream_sync(s, err) < 0 ? -1 : comm_expect(recv, expected, total, "all_gather", err);
}

static inline int comm_case_scatter(struct comm *c, struct stream *s, int64_t count, bool in_place,
                                    enum comm_reduce how, struct error *err)
{
    int64_t total = count * c->size;
    auto_free float *send = comm_floats(total);
    auto_free float *expected = comm_floats(count);
    auto_free float *own = comm_floats(count);
    float *recv = in_place ? send + c->rank * count : own;
    for (int64_t i = 0; i < total; i++)
        send[i] = comm_value(c->rank, i);
    for (int64_t i = 0; i < count; i++)
        expected[i] = comm_reduced(c->size, c->rank * count + i, how);
    c->fn->reduce_scatter(c, s, DTYPE_F32, recv, send, count, how);
    return stream_sync(s, err) < 0 ? -1 : comm_expect(recv, expected, count, "reduce_scatter", err);
}

static inline int comm_case_reduce(struct comm *c, struct stream *s, int64_t count,
                                   enum comm_reduce how, struct error *err)
{
    auto_free float *data = comm_floats(count);
    auto_free float *expected = comm_floats(count);
    for (int64_t i = 0; i < count; i++) {
        data[i] = comm_value(c->rank, i);
        expected[i] = comm_reduced(c->size, i, how);
    }
    c->fn->all_reduce(c, s, DTYPE_F32, data, count, how);
    return stream_sync(s, err) < 0 ? -1 : comm_expect(data, expected, count, "all_reduce", err);
}

/* Whole numbers whose sums bf16 holds exactly: only a mean is rounded, once. */
static inline bf16 comm_bf16(int rank, int64_t i)
{
    return bf16_from_float((float)((rank * 31 + i * 7) % 41 - 20));
}

static inline bf16 comm_bf16_mean(int size, int64_t i)
{
    float sum = 0;
    for (int r = 0; r < size; r++)
        sum += bf16_to_float(comm_bf16(r, i));
    return bf16_from_float(sum / (float)size);
}

static inline int comm_expect_bf16(const bf16 *got, int64_t first, int64_t count, int mean_of,
                                   int gathered_from, const char *what, struct error *err)
{
    for (int64_t i = 0; i < count; i++) {
        bf16 expected = mean_of ? comm_bf16_mean(mean_of, first + i) : comm_bf16(gathered_from, i);
        if (got[i] != expected)
            return error_set(err, ERR_SHAPE, "%s of %lld bf16: [%lld] is %g, not %g", what,
                             (long long)count, (long long)i, (double)bf16_to_float(got[i]),
                             (double)bf16_to_float(expected));
    }
    return 0;
}

static inline int comm_case_bf16(struct comm *c, struct stream *s, int64_t count, struct error *err)
{
    int64_t total = count * c->size, own = c->rank * count;
    auto_free bf16 *data = (bf16 *)xcalloc((size_t)total, sizeof(bf16));
    for (int64_t i = 0; i < total; i++)
        data[i] = comm_bf16(c->rank, i);
    c->fn->all_reduce(c, s, DTYPE_BF16, data, total, COMM_MEAN);
    if (stream_sync(s, err) < 0 ||
        comm_expect_bf16(data, 0, total, c->size, 0, "all_reduce", err) < 0)
        return -1;
    for (int64_t i = 0; i < total; i++)
        data[i] = comm_bf16(c->rank, i);
    c->fn->reduce_scatter(c, s, DTYPE_BF16, data + own, data, count, COMM_MEAN);
    if (stream_sync(s, err) < 0 ||
        comm_expect_bf16(data + own, own, count, c->size, 0, "reduce_scatter", err) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++)
        data[own + i] = comm_bf16(c->rank, i);
    c->fn->all_gather(c, s, DTYPE_BF16, data, data + own, count);
    if (stream_sync(s, err) < 0)
        return -1;
    for (int r = 0; r < c->size; r++)
        if (comm_expect_bf16(data + r * count, 0, count, 0, r, "all_gather", err) < 0)
            return -1;
    return 0;
}

static inline int comm_case_broadcast(struct comm *c, struct stream *s, int64_t count, int root,
                                      struct error *err)
{
    auto_free float *data = comm_floats(count);
    auto_free float *expected = comm_floats(count);
    for (int64_t i = 0; i < count; i++) {
        data[i] = comm_value(c->rank, i);
        expected[i] = comm_value(root, i);
    }
    c->fn->broadcast(c, s, data, count * (int64_t)sizeof(float), root);
    return stream_sync(s, err) < 0 ? -1 : comm_expect(data, expected, count, "broadcast", err);
}

/* Rank q's chunk lies behind the others' of smaller numbers, or in the opposite order and with 7
 * elements between two. */
static inline int comm_case_exchange(struct comm *c, struct stream *s, int64_t count, bool opposite,
                                     struct error *err)
{
    int64_t total = count * c->size, stride = opposite ? count + 7 : count;
    auto_free int *places = (int *)xcalloc((size_t)c->size, sizeof(int));
    auto_free float *send = comm_floats(stride * c->size);
    auto_free float *recv = comm_floats(total);
    auto_free float *expected = comm_floats(total);
    for (int r = 0; r < c->size; r++)
        places[r] = opposite ? c->size - 1 - r : r;
    for (int64_t i = 0; i < stride * c->size; i++)
        send[i] = comm_value(c->rank, i);
    for (int64_t i = 0; i < total; i++)
        expected[i] = comm_value((int)(i / count), places[c->rank] * stride + i % count);
    c->fn->all_to_all(c, s, DTYPE_F32, recv, send, count, stride, opposite ? places : NULL);
    return stream_sync(s, err) < 0 ? -1 : comm_expect(recv, expected, total, "all_to_all", err);
}

/* 0.1 is not exact: every rank must still get the bits of the sum in rank order. */
static inline int comm_case_f64(struct comm *c, struct stream *s, int64_t count, struct error *err)
{
    double data[64], expected[64] = {0};
    for (int64_t i = 0; i < count; i++) {
        data[i] = 0.1 * (c->rank + 1) + (double)i;
        for (int r = 0; r < c->size; r++)
            expected[i] += 0.1 * (r + 1) + (double)i;
    }
    c->fn->all_reduce_f64(c, s, data, count);
    if (stream_sync(s, err) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++)
        if (data[i] != expected[i])
            return error_set(err, ERR_SHAPE, "all_reduce_f64: %.17g, not %.17g", data[i],
                             expected[i]);
    return 0;
}

/* All collectives at one size. */
static inline int comm_case_size(struct comm *c, struct stream *s, int64_t count, struct error *err)
{
    for (int variant = 0; variant < 2; variant++) {
        enum comm_reduce how = variant ? COMM_MEAN : COMM_SUM;
        if (comm_case_gather(c, s, count, variant, err) < 0 ||
            comm_case_scatter(c, s, count, variant, how, err) < 0 ||
            comm_case_scatter(c, s, count, !variant, how, err) < 0 ||
            comm_case_exchange(c, s, count, variant, err) < 0 ||
            comm_case_reduce(c, s, count, how, err) < 0)
            return -1;
    }
    for (int root = 0; root < c->size; root++)
        if (comm_case_broadcast(c, s, count, root, err) < 0)
            return -1;
    if (comm_case_bf16(c, s, count, err) < 0)
        return -1;
    return comm_case_f64(c, s, count < 64 ? count : 64, err);
}

/* Splits into even and odd ranks and runs a collective in each half while the other does. */
static inline int comm_case_split(struct comm *c, struct stream *s, struct error *err)
{
    struct comm *half;
    if (c->fn->split(c, c->rank % 2, &half, err) < 0)
        return -1;
    float mine = comm_value(c->rank, 0), all[8] = {0}, expected[8] = {0};
    for (int i = 0; i < half->size; i++)
        expected[i] = comm_value(i * 2 + c->rank % 2, 0);
    half->fn->all_gather(half, s, DTYPE_F32, all, &mine, 1);
    int result = stream_sync(s, err);
    if (result == 0)
        result = comm_expect(all, expected, half->size, "all_gather of a half", err);
    if (result == 0 && half->rank != c->rank / 2)
        result = error_set(err, ERR_SHAPE, "rank %d became %d", c->rank, half->rank);
    comm_close(half);
    return result;
}

static inline int comm_cases_run(struct comm *c, struct stream *s, struct error *err)
{
    static const int64_t counts[] = {0, 1, 2, 3, 5, 63, 64, 1023, COMM_CASES_LARGE};
    for (size_t i = 0; i < array_length(counts); i++)
        if (comm_case_size(c, s, counts[i], err) < 0)
            return -1;
    if (c->size <= 8 && comm_case_split(c, s, err) < 0)
        return -1;
    c->fn->barrier(c, s);
    return stream_sync(s, err);
}

/* A number from a seed that it moves on: the same sequence on every rank. */
static inline uint32_t comm_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* A random sequence of sums of inexact numbers; the digest of all bits that came out is the same
 * for every transport. */
static inline int comm_random_run(struct comm *c, struct stream *s, uint64_t seed,
                                  uint64_t *ret_digest, struct error *err)
{
    uint64_t digest = 1469598103934665603u;
    for (int step = 0; step < 30; step++) {
        int64_t count = comm_random(&seed) % (step % 5 == 0 ? 50000 : 300);
        int64_t total = count * c->size;
        uint32_t what = comm_random(&seed) % 3;
        auto_free float *data = comm_floats(total);
        for (int64_t i = 0; i < total; i++)
            data[i] = 1.0f / (float)(3 + (c->rank * 17 + i * 13 + step) % 101);
        if (what == 0)
            c->fn->all_reduce(c, s, DTYPE_F32, data, total, COMM_MEAN);
        else if (what == 1)
            c->fn->reduce_scatter(c, s, DTYPE_F32, data + c->rank * count, data, count, COMM_SUM);
        else
            c->fn->all_gather(c, s, DTYPE_F32, data, data + c->rank * count, count);
        if (stream_sync(s, err) < 0)
            return -1;
        const float *from = what == 1 ? data + c->rank * count : data;
        const unsigned char *bytes = (const unsigned char *)from;
        for (size_t i = 0; i < (size_t)(what == 1 ? count : total) * sizeof(float); i++)
            digest = (digest ^ bytes[i]) * 1099511628211u; /* FNV-1a */
    }
    *ret_digest = digest;
    return 0;
}

#endif
