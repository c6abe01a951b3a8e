/* IDX, plain and gzipped: whatever the bytes, there is a whole array or a message. */
#include "tests/fuzz/fuzz.h"

#include "agent/dataset/idx.h"

#include <assert.h>

static void parse(const uint8_t *data, size_t size, int dims)
{
    struct idx idx = {0};
    struct error err = {0};
    if (idx_parse("fuzz", data, size, dims, &idx, &err) < 0) {
        assert(err.code == ERR_INPUT && err.msg[0] && !idx.bytes);
        return;
    }
    int64_t count = 1;
    unsigned sum = 0;
    for (int d = 0; d < dims; d++)
        count *= idx.shape[d];
    for (int64_t i = 0; i < count; i++) /* AddressSanitizer knows how many there are */
        sum += idx.bytes[i];
    assert(count > 0 && sum <= 255 * (uint64_t)count);
    idx_free(&idx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size, 1);
    parse(data, size, 3);
    return 0;
}
