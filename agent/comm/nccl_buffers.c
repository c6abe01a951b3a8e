#include "agent/comm/nccl_buffers.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>

struct buffer {
    nccl_comm comm;
    const char *memory;
    size_t bytes;
    void *handle;
};

/* A linear search is enough: there are few blocks. Memory that is cut from a reserve is registered
 * as the whole reserve, and units of one size share their memory. */
struct nccl_buffers {
    const struct nccl_api *api;
    struct buffer *items;
    size_t count, capacity;
};

struct nccl_buffers *nccl_buffers_open(const struct nccl_api *api)
{
    struct nccl_buffers *b = xcalloc(1, sizeof *b);
    b->api = api;
    return b;
}

void nccl_buffers_close(struct nccl_buffers *b)
{
    if (!b)
        return;
    free(b->items);
    free(b);
}

int nccl_buffers_register(struct nccl_buffers *b, nccl_comm comm, const void *memory, size_t bytes)
{
    const char *begin = memory;
    if (!b || bytes == 0)
        return NCCL_SUCCESS;
    for (size_t i = 0; i < b->count; i++) {
        const struct buffer *item = &b->items[i];
        if (item->comm == comm && item->memory <= begin &&
            begin + bytes <= item->memory + item->bytes)
            return NCCL_SUCCESS;
    }
    /* Registered buffers (ncclCommRegister) let NCCL read and write them in place, without copies
     * through its own. */
    void *handle = NULL;
    int result = b->api->comm_register(comm, (void *)(uintptr_t)memory, bytes, &handle);
    if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS)
        return result;
    if (b->count == b->capacity) {
        b->capacity = b->capacity ? 2 * b->capacity : 16;
        b->items = xrealloc(b->items, b->capacity * sizeof *b->items);
    }
    b->items[b->count++] = (struct buffer){comm, memory, bytes, handle};
    return result;
}

static void drop(struct nccl_buffers *b, size_t i, bool alive)
{
    if (alive)
        b->api->comm_deregister(b->items[i].comm, b->items[i].handle);
    b->items[i] = b->items[--b->count];
}

void nccl_buffers_deregister(struct nccl_buffers *b, const void *memory, size_t bytes, bool alive)
{
    const char *begin = memory, *end = begin + bytes;
    for (size_t i = b->count; i-- > 0;)
        if (b->items[i].memory >= begin && b->items[i].memory < end)
            drop(b, i, alive);
}

void nccl_buffers_deregister_all(struct nccl_buffers *b, nccl_comm comm, bool alive)
{
    for (size_t i = b ? b->count : 0; i-- > 0;)
        if (b->items[i].comm == comm)
            drop(b, i, alive);
}
