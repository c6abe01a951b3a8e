/* A table of replacements: whatever the bytes, there is a message, or a well-formed text stays one,
 * in the tokenizers library's way and in SentencePiece's. */
#include "tests/fuzz/fuzz.h"

#include "agent/text/precompiled.h"
#include "agent/text/utf8.h"
#include "base/str.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "It's  12 caf\xc3\xa9 \xe2\x96\x81 \xf0\x9f\x99\x82\r\n \xef\xac\x81 e\xcc\x81 abc";
    struct precompiled *table = NULL;
    struct error err = {0};
    if (precompiled_open(data, size, &table, &err) < 0) {
        assert(err.code == ERR_INPUT && err.msg[0] && !table);
        return 0;
    }
    auto_str struct str out;
    str_init(&out, 1 << 20);
    precompiled_run(table, text, sizeof text - 1, &out);
    assert(utf8_well_formed(str_text(&out), out.length) == out.length || out.truncated);
    for (size_t at = 0, length; at < sizeof text - 1; at++) {
        const char *found =
            precompiled_find_longest(table, text + at, sizeof text - 1 - at, &length);
        assert(found ? length >= 1 && length <= sizeof text - 1 - at : length == 0);
        if (found)
            assert(utf8_well_formed(found, strlen(found)) == strlen(found));
    }
    precompiled_close(table);
    return 0;
}
