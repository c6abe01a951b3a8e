#include "tests/agent/device_batch.h"

#include "base/mem.h"

int device_batch_open(struct device_batch *ret_batch, struct stream *stream,
                      const struct batch *host, int64_t image_bytes, struct error *err)
{
    struct batch *b = &ret_batch->batch;
    const int64_t rows = host->rows, tokens = rows * host->T, id = sizeof(int32_t);
    const struct {
        const void *from;
        const void **to;
        int64_t bytes;
    } tensors[DEVICE_BATCH_TENSORS] = {
        {host->input, (const void **)&b->input, rows * image_bytes},
        {host->tokens, (const void **)&b->tokens, tokens * id},
        {host->target, (const void **)&b->target, (image_bytes ? rows : tokens) * id},
        {host->token_counts, (const void **)&b->token_counts, rows * id},
        {host->token_types, (const void **)&b->token_types, tokens * id},
        {host->source, (const void **)&b->source, rows * host->T_source * id},
        {host->source_counts, (const void **)&b->source_counts, rows * id},
        {host->labels, (const void **)&b->labels, rows * id},
    };
    *ret_batch = (struct device_batch){.batch = *host, .device = stream_device(stream)};
    for (size_t i = 0; i < array_length(tensors); i++) {
        size_t bytes = (size_t)tensors[i].bytes;
        if (!tensors[i].from)
            continue;
        if (device_alloc(ret_batch->device, MEMORY_INPUT, bytes, "batch", &ret_batch->memory[i],
                         err) < 0)
            return -1;
        stream_copy(stream, ret_batch->memory[i], tensors[i].from, bytes);
        *tensors[i].to = ret_batch->memory[i];
    }
    return stream_sync(stream, err);
}

void device_batch_close(struct device_batch *batch)
{
    for (int i = 0; i < DEVICE_BATCH_TENSORS; i++)
        device_free(batch->device, batch->memory[i]);
}
