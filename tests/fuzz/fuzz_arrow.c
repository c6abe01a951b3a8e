/* An Arrow stream: whatever the bytes, there is a message, or lists whose numbers can be read. */
#include "tests/fuzz/fuzz.h"

#include "agent/dataset/arrow_stream.h"

#include <assert.h>
#include <string.h>

static const struct arrow_request wanted[] = {
    {"input_ids", false}, {"labels", true}, {"attention_mask", true}};
enum { COLUMNS = 3, CHUNK = 64 };

static void read_row(const struct arrow_list *list, int64_t row)
{
    int64_t first = arrow_list_offset(list, row), end = arrow_list_offset(list, row + 1);
    assert(0 <= first && first <= end);
    int32_t out[CHUNK];
    for (; first < end; first += CHUNK) {
        int64_t count = end - first < CHUNK ? end - first : CHUNK;
        id_type_copy(list->type, list->values + first * id_type_bytes(list->type), count, out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena *arena = arena_open();
    struct arrow_stream stream;
    struct error err = {0};
    if (arrow_stream_parse(arena, "fuzz", data, size, wanted, COLUMNS, &stream, &err) < 0) {
        assert((err.code == ERR_INPUT || err.code == ERR_UNSUPPORTED) && err.msg[0]);
        assert(!strchr(err.msg, '\n'));
        return 0;
    }
    int64_t rows = 0;
    for (int64_t i = 0; i < stream.count; i++) {
        const struct arrow_batch *batch = &stream.batches[i];
        assert(batch->lists[0].offsets);
        for (int c = 0; c < COLUMNS; c++)
            for (int64_t row = 0; batch->lists[c].offsets && row < batch->rows; row++)
                read_row(&batch->lists[c], row);
        rows += batch->rows;
    }
    assert(rows == stream.rows);
    return 0;
}
