/* Two events: the copy waits for the update before it, the update after it waits for the copy. What
 * lies between, the next step's passes, only reads the weights, and runs beside it. */
#include "agent/trainer/memory_copy.h"

#include <assert.h>
#include <string.h>

enum { STAGING_BYTES = 16 << 20 };

int memory_copy_open(struct memory_copy *c, struct shard *shard, void *memory, size_t bytes,
                     struct error *err)
{
    struct device *device = stream_device(shard_update_stream(shard));
    *c = (struct memory_copy){.shard = shard};
    if (stream_open(device, "snapshot", &c->stream, err) || event_open(device, &c->updated, err) ||
        event_open(device, &c->copied, err))
        return -1;
    if (device_host_register(device, memory, bytes)) {
        c->locked = memory;
        return 0;
    }
    return device_host_alloc(device, STAGING_BYTES, "checkpoints in memory", &c->staging, err);
}

void memory_copy_close(struct memory_copy *c)
{
    if (!c->shard)
        return;
    struct device *device = stream_device(shard_update_stream(c->shard));
    stream_close(c->stream);
    event_close(c->updated);
    event_close(c->copied);
    device_host_unregister(device, c->locked);
    device_host_free(device, c->staging);
    *c = (struct memory_copy){0};
}

struct part {
    void *dst;
    const void *src;
    size_t bytes;
};

static int leave_staging(void *args, struct error *err)
{
    const struct part *part = args;
    (void)err;
    memcpy(part->dst, part->src, part->bytes);
    return 0;
}

static void queue(void *ctx, void *here, void *there, size_t bytes)
{
    struct memory_copy *c = ctx;
    if (c->locked) {
        stream_copy(c->stream, here, there, bytes);
        return;
    }
    for (size_t at = 0; at < bytes; at += STAGING_BYTES) {
        const size_t left = bytes - at;
        const struct part part = {(char *)here + at, c->staging,
                                  left < STAGING_BYTES ? left : STAGING_BYTES};
        stream_copy(c->stream, c->staging, (char *)there + at, part.bytes);
        stream_call(c->stream, leave_staging, &part, sizeof part);
    }
}

void memory_copy_queue(struct memory_copy *c, const struct host_state *host)
{
    assert(!c->is_under_way); /* else an update did not wait for the one before */
    event_record(c->updated, shard_update_stream(c->shard));
    stream_wait(c->stream, c->updated);
    host_state_each(host, queue, c);
    event_record(c->copied, c->stream);
    c->is_under_way = true;
    c->begin_ns = c->end_ns = 0;
}

void memory_copy_before_update(struct memory_copy *c)
{
    if (!c->is_under_way)
        return;
    struct stream *update = shard_update_stream(c->shard);
    stream_timestamp(update, &c->begin_ns);
    stream_wait(update, c->copied);
    stream_timestamp(update, &c->end_ns);
    c->is_under_way = false;
}

int64_t memory_copy_delay_us(const struct memory_copy *c)
{
    return (c->end_ns - c->begin_ns) / 1000;
}
