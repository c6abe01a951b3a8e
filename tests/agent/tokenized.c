#include "tests/agent/tokenized.h"

#include "tests/support.h"

#include <string.h>

void tokenized(const struct tokenizer *t, const char *text, bool around, struct tokens *ids)
{
    struct error err;
    tokens_clear(ids);
    assert_ok(tokenizer_encode(t, text, strlen(text), around, ids, &err), &err);
}

void tokenized_as(const struct tokenizer *t, const char *text, const int32_t *wanted, size_t count)
{
    auto_tokens struct tokens ids = {0};
    tokenized(t, text, true, &ids);
    assert_int_equal(ids.count, count);
    assert_memory_equal(ids.ids, wanted, count * sizeof *wanted);
}
