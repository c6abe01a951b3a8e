/* A tokenizer.json: whatever the bytes, there is a message that names the file, or a tokenizer that
 * encodes to ids of its vocabulary and decodes them. The text it is given comes after
 * a zero byte. */
#include "tests/fuzz/fuzz.h"

#include "agent/text/tokenizer.h"
#include "agent/text/utf8.h"

#include <assert.h>
#include <string.h>

static void use(const struct tokenizer *t, const char *text, size_t bytes)
{
    auto_tokens struct tokens ids = {0};
    auto_str struct str back;
    struct error err = {0};
    str_init(&back, 1 << 24);
    if (tokenizer_encode(t, text, bytes, true, &ids, &err) < 0) {
        assert(err.code == ERR_LIMIT && err.msg[0]);
        return;
    }
    size_t length;
    for (size_t i = 0; i < ids.count; i++)
        assert(tokenizer_piece(t, ids.ids[i], &length));
    if (tokenizer_decode(t, ids.ids, ids.count, false, &back, &err) < 0)
        assert(err.code == ERR_LIMIT && err.msg[0]);
    struct tokenizer_special special = tokenizer_special(t);
    assert(special.bos < tokenizer_vocabulary(t) && special.eos < tokenizer_vocabulary(t));
    assert(special.pad < tokenizer_vocabulary(t) && special.mask < tokenizer_vocabulary(t));
    assert(tokenizer_check_fits(t, tokenizer_vocabulary(t), &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char sample[] = "It's  1234 caf\xc3\xa9 \xe2\x96\x81<s> \xf0\x9f\x99\x82\r\n\xff";
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t json_bytes = zero ? (size_t)(zero - data) : size;
    struct tokenizer *t = NULL;
    struct error err = {0};
    if (tokenizer_open_json("fuzz", (const char *)data, json_bytes, &t, &err) < 0) {
        assert((err.code == ERR_INPUT || err.code == ERR_UNSUPPORTED) && !t);
        assert(strncmp(err.msg, "fuzz: ", 6) == 0 && !strchr(err.msg, '\n'));
        assert(utf8_well_formed(err.msg, strlen(err.msg)) == strlen(err.msg));
        return 0;
    }
    use(t, sample, sizeof sample - 1);
    if (zero)
        use(t, (const char *)zero + 1, size - json_bytes - 1);
    tokenizer_close(t);
    return 0;
}
