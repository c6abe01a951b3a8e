#include "agent/comm/agree.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>

void outcome_set(struct outcome *outcome, int result, const struct error *err)
{
    *outcome = (struct outcome){.failed = result < 0};
    if (result < 0) {
        outcome->code = (int32_t)err->code;
        snprintf(outcome->msg, sizeof outcome->msg, "%.*s", (int)sizeof outcome->msg - 1, err->msg);
    }
}

int outcome_get(const struct outcome *outcome, int rank, struct error *err)
{
    if (!outcome->failed)
        return 0;
    error_set(err, (enum error_code)outcome->code, "rank %d: %s", rank, outcome->msg);
    err->shared = true;
    return -1;
}

/* Both copy through device memory: collectives move nothing else. */

int agree_broadcast(struct comm *comm, struct stream *stream, void *data, size_t bytes,
                    struct error *err)
{
    struct device *device = stream_device(stream);
    void *memory;
    if (device_alloc(device, MEMORY_INPUT, bytes, "broadcast message", &memory, err) < 0)
        return -1;
    stream_copy(stream, memory, data, bytes);
    comm->fn->broadcast(comm, stream, memory, (int64_t)bytes, 0);
    stream_copy(stream, data, memory, bytes);
    int result = stream_sync(stream, err);
    device_free(device, memory);
    return result;
}

int agree_gather(struct comm *comm, struct stream *stream, const void *send, void *recv,
                 size_t bytes, struct error *err)
{
    assert(bytes % sizeof(float) == 0); /* all_gather counts in floats, but only moves them */
    struct device *device = stream_device(stream);
    size_t all = bytes * (size_t)comm->size;
    void *memory;
    if (device_alloc(device, MEMORY_INPUT, all, "gathered messages", &memory, err) < 0)
        return -1;
    void *mine = (char *)memory + bytes * (size_t)comm->rank;
    stream_copy(stream, mine, send, bytes);
    comm->fn->all_gather(comm, stream, DTYPE_F32, memory, mine, (int64_t)(bytes / sizeof(float)));
    stream_copy(stream, recv, memory, all);
    int result = stream_sync(stream, err);
    device_free(device, memory);
    return result;
}

int agree_all(struct comm *comm, struct stream *stream, int result, struct error *err)
{
    struct outcome mine;
    outcome_set(&mine, result, err);
    auto_free struct outcome *all = xcalloc((size_t)comm->size, sizeof *all);
    if (agree_gather(comm, stream, &mine, all, sizeof mine, err) < 0)
        return -1;
    /* All ranks look in the same order, so that all of them report the same failure. The loss of a
     * peer comes of that peer's failure. */
    const struct outcome *first = NULL;
    for (int rank = comm->size - 1; rank >= 0; rank--)
        if (all[rank].failed && (!first || first->code == ERR_PEER || all[rank].code != ERR_PEER))
            first = &all[rank];
    return first ? outcome_get(first, (int)(first - all), err) : 0;
}
