/* A safetensors header: whatever the bytes, there is a message, or tensors that tile the data. */
#include "tests/fuzz/fuzz.h"

#include "agent/checkpoint/safetensors.h"

#include <assert.h>
#include <string.h>

static void check(const struct safetensors_header *h, size_t size)
{
    int64_t bytes = h->header_bytes;
    for (int i = 0; i < h->tensor_count; i++) {
        const struct safetensors_tensor *t = &h->tensors[i];
        int64_t width = safetensors_dtype_bytes(t->dtype);
        int64_t end = t->data_begin + t->count * width;
        assert(t->data_begin >= 0 && t->data_begin % width == 0 && t->count >= 0);
        assert(h->header_bytes + end <= (int64_t)size);
        assert(safetensors_find(h, t->name) == t);
        bytes += t->count * width;
    }
    assert(bytes == (int64_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena *arena = arena_open();
    struct safetensors_header header;
    struct error err = {0};
    int64_t header_bytes;
    if (safetensors_header_bytes("fuzz", data, size, (int64_t)size, &header_bytes, &err) < 0 ||
        safetensors_parse(arena, "fuzz", data, size, (int64_t)size, &header, &err) < 0)
        assert(err.code == ERR_INPUT && err.msg[0] && !strchr(err.msg, '\n'));
    else
        check(&header, size);
    return 0;
}
