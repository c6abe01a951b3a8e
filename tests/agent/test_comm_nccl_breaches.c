/* That the fake of NCCL finds each breach of the rules of symmetric windows (comm_nccl.h), which
 * NCCL itself would not tell. */
#include "tests/agent/nccl_ranks.h"
#include "tests/agent/nccl_window.h"

#include "agent/comm/comm_nccl_internal.h"
#include "base/mem.h"

#include <string.h>

static int other_send(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    if (open_window(c, s, &w, err))
        return -1;
    c->fn->all_gather(c, s, DTYPE_F32, at(&w, WHOLE), at(&w, SLICE + 256 * (size_t)r->rank), COUNT);
    return stream_sync(s, err);
}

static int other_receive(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    if (open_window(c, s, &w, err))
        return -1;
    c->fn->all_gather(c, s, DTYPE_F32, at(&w, WHOLE + 256 * (size_t)r->rank), at(&w, SLICE), COUNT);
    return stream_sync(s, err);
}

static int other_window(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w[2];
    if (open_window(c, s, &w[0], err) || open_window(c, s, &w[1], err))
        return -1;
    c->fn->all_gather(c, s, DTYPE_F32, at(&w[r->rank], WHOLE), at(&w[0], SLICE), COUNT);
    return stream_sync(s, err);
}

static int in_place(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    if (open_window(c, s, &w, err))
        return -1;
    float *all = at(&w, WHOLE);
    c->fn->all_gather(c, s, DTYPE_F32, all, all + (size_t)r->rank * COUNT, COUNT);
    return stream_sync(s, err);
}

static int one_outside(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    static float outside[COUNT];
    struct comm_window w;
    if (open_window(c, s, &w, err))
        return -1;
    c->fn->all_gather(c, s, DTYPE_F32, at(&w, WHOLE), r->rank ? outside : at(&w, SLICE), COUNT);
    return stream_sync(s, err);
}

static int beyond_its_end(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    (void)r;
    if (open_window(c, s, &w, err))
        return -1;
    c->fn->all_gather(c, s, DTYPE_F32, at(&w, w.bytes - 2 * COUNT), at(&w, SLICE), COUNT);
    return stream_sync(s, err);
}

static int exchange(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    (void)r;
    if (open_window(c, s, &w, err))
        return -1;
    c->fn->all_to_all(c, s, DTYPE_F32, at(&w, WHOLE), at(&w, SLICE), COUNT, COUNT, NULL);
    return stream_sync(s, err);
}

/* What communicators do not let happen is asked of NCCL itself. */
static const struct nccl_api *api_of(struct comm *c)
{
    return &((struct comm_nccl *)c)->shared->api;
}

static nccl_comm nccl_of(struct comm *c)
{
    return ((struct comm_nccl *)c)->nccl;
}

/* Ends a call of RAW. */
static int await(struct comm *c, int result, struct error *err)
{
    result = comm_nccl_settle((struct comm_nccl *)c, result);
    pthread_mutex_unlock(&((struct comm_nccl *)c)->shared->calls);
    return result == NCCL_SUCCESS ? 0 : error_set(err, ERR_INPUT, "NCCL: %d", result);
}

/* Calls NCCL while the watchdog does not. */
#define RAW(c, err, function, ...)                                                                 \
    (pthread_mutex_lock(&((struct comm_nccl *)(c))->shared->calls),                                \
     await(c, api_of(c)->function(__VA_ARGS__), err))

static int register_raw(struct comm *c, void *memory, size_t bytes, void **handle, int flags,
                        struct error *err)
{
    return RAW(c, err, window_register, nccl_of(c), memory, bytes, handle, flags);
}

static int lend(struct comm *c, size_t bytes, void **ret_memory, struct error *err)
{
    return RAW(c, err, mem_alloc, ret_memory, bytes);
}

static int others_memory(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    static char memory[4096];
    void *handle;
    (void)r, (void)s;
    return register_raw(c, memory, sizeof memory, &handle, NCCL_WIN_COLL_SYMMETRIC, err);
}

static int other_bytes(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    void *handle, *memory;
    (void)s;
    return lend(c, NCCL_MEMORY_GRANULE, &memory, err) ||
                   register_raw(c, memory, (size_t)4096 << r->rank, &handle,
                                NCCL_WIN_COLL_SYMMETRIC, err)
               ? -1
               : 0;
}

static int other_flags(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    void *handle, *memory;
    (void)r, (void)s;
    return lend(c, NCCL_MEMORY_GRANULE, &memory, err) ||
                   register_raw(c, memory, 4096, &handle, 0, err)
               ? -1
               : 0;
}

static int twice(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    void *handle;
    (void)r;
    return open_window(c, s, &w, err) ||
                   register_raw(c, w.memory, 4096, &handle, NCCL_WIN_COLL_SYMMETRIC, err)
               ? -1
               : 0;
}

static int once_more(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    void *handle;
    (void)r;
    return open_window(c, s, &w, err) ||
                   RAW(c, err, comm_register, nccl_of(c), w.memory, 4096, &handle)
               ? -1
               : 0;
}

static int not_awaited(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    void *handle, *memory;
    float data[4] = {0};
    (void)r;
    if (lend(c, NCCL_MEMORY_GRANULE, &memory, err))
        return -1;
    pthread_mutex_lock(&((struct comm_nccl *)c)->shared->calls); /* for good: it never ends */
    api_of(c)->window_register(nccl_of(c), memory, 4096, &handle, NCCL_WIN_COLL_SYMMETRIC);
    api_of(c)->all_reduce(data, data, 4, NCCL_FLOAT32, NCCL_SUM, nccl_of(c), stream_native(s));
    return 0;
}

static int freed_before(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    (void)r;
    return open_window(c, s, &w, err) || RAW(c, err, mem_free, w.memory) ? -1 : 0;
}

static int never_deregistered(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    void *handle, *memory;
    (void)r, (void)s;
    return lend(c, NCCL_MEMORY_GRANULE, &memory, err) ||
                   register_raw(c, memory, 4096, &handle, NCCL_WIN_COLL_SYMMETRIC, err)
               ? -1
               : 0;
}

static int deregistered_twice(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    void *handle, *memory;
    (void)r, (void)s;
    if (lend(c, NCCL_MEMORY_GRANULE, &memory, err) ||
        register_raw(c, memory, 4096, &handle, NCCL_WIN_COLL_SYMMETRIC, err))
        return -1;
    for (int i = 0; i < 2; i++)
        if (RAW(c, err, window_deregister, nccl_of(c), handle))
            return -1;
    return 0;
}

/* Rank 1 comes to the collective when rank 0 has deregistered its window. */
static int used_after(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    void *handle, *memory;
    if (lend(c, NCCL_MEMORY_GRANULE, &memory, err) ||
        register_raw(c, memory, WINDOW_BYTES, &handle, NCCL_WIN_COLL_SYMMETRIC, err))
        return -1;
    if (r->rank == 0 && RAW(c, err, window_deregister, nccl_of(c), handle))
        return -1;
    c->fn->all_gather(c, s, DTYPE_F32, (char *)memory + WHOLE, memory, COUNT);
    return stream_sync(s, err);
}

/* With a collective that never ends. */
static int deregistered_too_early(struct rank *r, struct comm *c, struct stream *s,
                                  struct error *err)
{
    void *handle, *memory;
    (void)r;
    if (lend(c, NCCL_MEMORY_GRANULE, &memory, err) ||
        register_raw(c, memory, WINDOW_BYTES, &handle, NCCL_WIN_COLL_SYMMETRIC, err))
        return -1;
    pthread_mutex_lock(&((struct comm_nccl *)c)->shared->calls); /* for good: it never ends */
    api_of(c)->all_gather(memory, (char *)memory + WHOLE, COUNT, NCCL_FLOAT32, nccl_of(c),
                          stream_native(s));
    return await(c, api_of(c)->window_deregister(nccl_of(c), handle), err);
}

static int mean(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    (void)r;
    if (open_window(c, s, &w, err))
        return -1;
    return RAW(c, err, reduce_scatter, at(&w, WHOLE), at(&w, SLICE), COUNT, NCCL_FLOAT32, NCCL_AVG,
               nccl_of(c), stream_native(s));
}

static void test_breaches_end_the_test(void **state)
{
    (void)state;
    static const struct {
        int (*body)(struct rank *, struct comm *, struct stream *, struct error *);
        const char *settings, *told;
    } rows[] = {
        {other_send, "", "from window 1 at "},
        {other_receive, "", "from window 1 at 0 to 1 at "},
        {other_window, "", "from window 1 at 0 to "},
        {in_place, "", "from window 1 at "},
        {one_outside, "", "from window "},
        {beyond_its_end, "", "lies partly in its window 1"},
        {exchange, "", "sends or receives in a window"},
        {others_memory, "", "is not memory of ncclMemAlloc"},
        {other_bytes, "", " bytes on rank "},
        {other_flags, "", "is not symmetric"},
        {twice, "", "is registered already"},
        {once_more, "", "is registered once more"},
        {not_awaited, "", "before the one before was waited for"},
        {freed_before, "", "memory is freed that "},
        {never_deregistered, "", "ends with a window"},
        {deregistered_twice, "", "has no such window to deregister"},
        {used_after, "", "from window "},
        {deregistered_too_early, "hang=1:0", "is deregistered while a collective uses it"},
        {mean, "", "have sums alone"},
        {others_memory, "version=22605", "NCCL 22605 has no windows"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char told[NCCL_TOLD_BYTES];
        nccl_ranks_must_end(&(struct nccl_wish){.body = rows[i].body, .has_windows = true},
                            rows[i].settings, told);
        if (!strstr(told, "fake NCCL: ") || !strstr(told, rows[i].told))
            fail_msg("row %zu: %s", i, told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_breaches_end_the_test),
    };
    return cmocka_run_group_tests(tests, nccl_find_library, NULL);
}
