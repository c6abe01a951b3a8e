/* A text to JSON values: what is taken prints as a text that says the same, and prints the same
 * again; each name of an object is found under it. */
#include "tests/fuzz/fuzz.h"

#include "base/json.h"
#include "base/mem.h"

#include <assert.h>
#include <string.h>

static void check_value(const struct json *value)
{
    const struct json *item;
    size_t count = 0;
    json_each_member(item, value) {
        assert(json_get(value, json_key(item)) == item);
        check_value(item);
        count++;
    }
    assert(count == json_object_count(value));
    count = 0;
    json_each_item(item, value) {
        assert(json_at(value, count++) == item);
        check_value(item);
    }
    assert(count == json_array_count(value));
}

static void check_text(const struct json *value, unsigned style)
{
    auto_free char *text = json_print(value, style);
    struct json *again = json_parse_text(text, JSON_ALLOW_SCALAR | JSON_ALLOW_NUL, NULL);
    assert(json_is_equal(value, again));
    auto_free char *same = json_print(again, style);
    assert(strcmp(text, same) == 0);
    json_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (unsigned allow = 0; allow < 8; allow++) {
        struct error err = {0};
        struct json *value = json_parse((const char *)data, size, allow, &err);
        if (!value) {
            assert(err.code == ERR_INPUT && strncmp(err.msg, "line ", 5) == 0);
            continue;
        }
        check_value(value);
        for (unsigned style = 0; style < 4; style++)
            check_text(value, style);
        struct json *copy = json_clone(value);
        assert(json_is_equal(value, copy));
        check_value(copy);
        json_free(copy);
        json_free(value);
    }
    return 0;
}
