/* A Megatron .idx: whatever the bytes, there is a message, or sequences within the .bin. */
#include "tests/fuzz/fuzz.h"

#include "agent/dataset/megatron.h"

#include <assert.h>
#include <string.h>

enum { BIN_BYTES = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct megatron_index index;
    struct error err = {0};
    if (megatron_parse("fuzz", data, size, BIN_BYTES, &index, &err) < 0) {
        assert((err.code == ERR_INPUT || err.code == ERR_UNSUPPORTED) && err.msg[0]);
        return 0;
    }
    for (int64_t i = 0; i < index.count; i++) {
        int32_t length;
        int64_t offset;
        memcpy(&length, index.lengths + 4 * i, 4);
        memcpy(&offset, index.offsets + 8 * i, 8);
        assert(length >= 0 && offset >= 0);
        assert(offset + length * id_type_bytes(index.type) <= BIN_BYTES);
    }
    return 0;
}
