/* Rows of JSON lines, TSV and CSV: the first line has the columns' names, each further one is a
 * record. Whatever the bytes, there is a message, or texts within the record. The
 * first byte chooses the format. */
#include "tests/fuzz/fuzz.h"

#include "agent/dataset/columns.h"

#include <assert.h>
#include <string.h>

static void use(const struct columns_row *row, size_t count)
{
    for (size_t i = 0; i < count; i++) /* a sanitizer looks at each byte */
        for (size_t k = 0; k < row->texts[i].bytes; k++)
            (void)*(const volatile char *)&row->texts[i].text[k];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum token_format formats[] = {TOKENS_JSONL, TOKENS_TSV, TOKENS_CSV, TOKENS_TEXT};
    struct columns columns = {.wanted = {{.column = "text", .key = "data.text_column"},
                                         {.column = "label", .key = "k", .may_be_number = true}}};
    struct columns_row row = {0};
    struct error err = {0};
    if (size == 0)
        return 0;
    columns.format = formats[data[0] % 4];
    columns.count = columns.format == TOKENS_TEXT ? 1 : 2;
    const char *at = (const char *)data + 1, *end = (const char *)data + size;
    bool is_names = columns.format == TOKENS_TSV || columns.format == TOKENS_CSV;
    while (at < end) {
        const char *lf = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((lf ? lf : end) - at);
        columns_is_open(at, bytes, false);
        int result = is_names ? columns_read_names(&columns, at, bytes, &err)
                              : columns_parse(&columns, at, bytes, &row, &err);
        assert(result == 0 || (err.code == ERR_INPUT && err.msg[0]));
        if (result < 0 && is_names)
            break;
        if (result == 0 && !is_names)
            use(&row, columns.count);
        is_names = false;
        at += bytes + 1;
    }
    columns_row_free(&row);
    return 0;
}
