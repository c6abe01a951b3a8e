/* Symmetric windows: opened by all ranks or by none. Their rules are in comm_nccl.h. */
#include "agent/comm/comm_nccl_internal.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct comm_nccl_window {
    struct comm_nccl_window *next;
    void *memory; /* of ncclMemAlloc() */
    size_t bytes; /* whole granules */
    void *handle; /* NULL: it is not registered */
};

/* *ret_without: the lowest rank that has not what is asked for; -1: all have. Told by the store, as
 * NCCL is what they have to agree about: the bytes that a rank plans, negative if it has not.
 * Errors: ERR_CONFIG, on all, if they plan different ones. */
static int find_without(struct comm_nccl *c, size_t bytes, bool has, int *ret_without,
                        struct error *err)
{
    const struct comm_nccl_options *o = &c->shared->options;
    const int *ranks = c->group.world_ranks;
    auto_free int64_t *all = xcalloc((size_t)c->group.size, sizeof *all);
    assert(bytes > 0);
    *ret_without = -1;
    if (comm_group_exchange(&c->group, o->store, "window", c->told++,
                            has ? (int64_t)bytes : -(int64_t)bytes, o->join_timeout_ms, all, err))
        return -1;
    for (int r = 0; r < c->group.size; r++) {
        if (all[r] < 0 && *ret_without < 0)
            *ret_without = ranks[r];
        if (llabs(all[r]) == llabs(all[0]))
            continue;
        error_set(err, ERR_CONFIG,
                  "symmetric windows: rank %d plans %lld bytes, rank %d %lld: all ranks need the "
                  "same model and settings",
                  ranks[r], llabs(all[r]), ranks[0], llabs(all[0]));
        err->shared = true;
        return -1;
    }
    return 0;
}

/* It is a collective like others: a deadline and an abort end the wait for a rank that does not
 * come. */
static int register_window(struct comm_nccl *c, struct stream *s, struct comm_nccl_window *w,
                           struct error *err)
{
    int result = NCCL_SUCCESS;
    if (comm_nccl_begin(c, s, "window_register", (int64_t)w->bytes, (int64_t)w->bytes))
        result = c->shared->api.window_register(c->nccl, w->memory, w->bytes, &w->handle,
                                                NCCL_WIN_COLL_SYMMETRIC);
    comm_nccl_end(c, s, "window_register", result);
    return stream_sync(s, err)
               ? error_wrap(err, "symmetric windows (runtime.register_buffers=true goes without)")
               : 0;
}

static void free_window(struct comm_nccl *c, struct comm_nccl_window *w)
{
    if (w->memory)
        c->shared->api.mem_free(w->memory);
    free(w);
}

static void deregister(struct comm_nccl *c, struct comm_nccl_window *w)
{
    pthread_mutex_lock(&c->shared->calls);
    if (w->handle && !watchdog_has_failed(c->shared->watchdog))
        comm_nccl_settle(c, c->shared->api.window_deregister(c->nccl, w->handle));
    w->handle = NULL;
    pthread_mutex_unlock(&c->shared->calls);
}

static void add(struct comm_nccl *c, struct comm_nccl_window *w)
{
    w->next = c->windows;
    c->windows = w;
}

int comm_nccl_open_window(struct comm *head, struct stream *s, size_t bytes,
                          struct comm_window *ret_window, struct error *err)
{
    struct comm_nccl *c = (struct comm_nccl *)head;
    struct comm_nccl_window *w = xcalloc(1, sizeof *w);
    int without = -1;
    w->bytes = (bytes + NCCL_MEMORY_GRANULE - 1) / NCCL_MEMORY_GRANULE * NCCL_MEMORY_GRANULE;
    if (c->shared->api.mem_alloc(&w->memory, w->bytes) != NCCL_SUCCESS)
        w->memory = NULL;
    int result = find_without(c, w->bytes, w->memory, &without, err);
    if (without >= 0)
        snprintf(ret_window->why, sizeof ret_window->why, "rank %d has no room for their %zu bytes",
                 without, w->bytes);
    if (result || without >= 0) {
        free_window(c, w);
        return result;
    }
    add(c, w); /* from here on NCCL may hold it, until the communicator ends */
    if (register_window(c, s, w, err) || find_without(c, w->bytes, w->handle, &without, err))
        return -1;
    if (without >= 0) {
        snprintf(ret_window->why, sizeof ret_window->why,
                 "rank %d's NCCL registers none: NCCL_DEBUG=INFO says more", without);
        c->windows = w->next;
        deregister(c, w);
        free_window(c, w);
        return 0;
    }
    ret_window->memory = w->memory;
    ret_window->bytes = w->bytes;
    return 0;
}

bool comm_nccl_in_window(const struct comm_nccl *c, const void *memory, int64_t bytes)
{
    const char *begin = memory;
    for (const struct comm_nccl_window *w = c->windows; w; w = w->next) {
        const char *first = w->memory;
        if (w->handle && first <= begin && begin + bytes <= first + w->bytes)
            return true;
    }
    return false;
}

void comm_nccl_deregister_windows(struct comm_nccl *c)
{
    for (struct comm_nccl_window *w = c->windows; w; w = w->next)
        deregister(c, w);
}

void comm_nccl_free_windows(struct comm_nccl *c)
{
    while (c->windows) {
        struct comm_nccl_window *w = c->windows;
        c->windows = w->next;
        free_window(c, w);
    }
}
