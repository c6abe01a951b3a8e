#include "tests/support.h"

#include "base/json.h"
#include "base/json_lenient.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static char *parsed(const char *text)
{
    struct error err;
    /* a block of the exact size, so that a read beyond it is seen */
    auto_free char *exact = xmalloc(strlen(text));
    memcpy(exact, text, strlen(text));
    struct json *value = json_parse_lenient(exact, strlen(text), false, &err);
    assert_non_null(value);
    char *printed = json_print(value, JSON_COMPACT);
    json_free(value);
    return printed;
}

static void a_nul_is_replaced(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed;
    } rows[] = {
        {"{\"a\": [1, \"b\"]}", "{\"a\":[1,\"b\"]}"},
        {"[\"\\u0000\"]", "[\"\xef\xbf\xbd\"]"},
        {"{\"x\\u0000y\": \"\\u0000\\u0000\"}",
         "{\"x\xef\xbf\xbdy\":\"\xef\xbf\xbd\xef\xbf\xbd\"}"},
        /* an escaped backslash before u0000 is a text that says so */
        {"[\"\\\\u0000\"]", "[\"\\\\u0000\"]"},
        {"[\"\\\\\\u0000\"]", "[\"\\\\\xef\xbf\xbd\"]"},
        {"[\"\\\"\\u0000\", \"\\u00000\", \"u0000\"]", "[\"\\\"\xef\xbf\xbd\",\"\xef\xbf\xbd"
                                                       "0\",\"u0000\"]"},
        {"[\"[{\"]", "[\"[{\"]"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char *printed = parsed(rows[i].text);
        assert_string_equal(printed, rows[i].printed);
        free(printed);
    }
}

/* `depth` arrays, each in the other, and something in the innermost. */
static char *nested(int depth, const char *innermost)
{
    struct str text;
    str_init(&text, 1 << 20);
    for (int i = 0; i < depth; i++)
        str_add(&text, "[");
    str_add(&text, innermost);
    for (int i = 0; i < depth; i++)
        str_add(&text, "]");
    return text.text;
}

static void what_lies_too_deep_is_null(void **state)
{
    (void)state;
    static const struct {
        const char *innermost, *seen;
    } rows[] = {
        {"1", "1"},
        {"[]", "null"},
        {"{}", "null"},
        {"1,[[2],{\"a\":\"]\\u0000\"}],3", "1,null,3"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *text = nested(JSON_LENIENT_MAX_DEPTH, rows[i].innermost);
        auto_free char *expected = nested(JSON_LENIENT_MAX_DEPTH, rows[i].seen);
        char *printed = parsed(text);
        assert_string_equal(printed, expected);
        free(printed);
    }
    auto_free char *deep = nested(100000, "");
    free(parsed(deep));
}

static void managed_fields_are_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed;
    } rows[] = {
        {"{\"a\":{\"managedFields\":[{\"x\":[\"]\\u0000\"]},{}],\"b\":[[1]]},\"c\":[{}]}",
         "{\"a\":{\"managedFields\":null,\"b\":[[1]]},\"c\":[{}]}"},
        {"[{\"managedFields\":[]},{\"managedFields\":[1],\"d\":[2]}]",
         "[{\"managedFields\":null},{\"managedFields\":null,\"d\":[2]}]"},
        {"{\"managedFields\":{},\"d\":[[2]]}", "{\"managedFields\":{},\"d\":[[2]]}"},
        {"{\"d\":\"\\\"managedFields\\\":[\",\"e\":[1]}",
         "{\"d\":\"\\\"managedFields\\\":[\",\"e\":[1]}"},
        {"[\"managedFields\",[1]]", "[\"managedFields\",[1]]"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char *printed = parsed(rows[i].text);
        assert_string_equal(printed, rows[i].printed);
        free(printed);
    }
}

static void managed_fields_are_kept_where_they_are_asked_for(void **state)
{
    (void)state;
    static const char text[] = "{\"managedFields\":[{\"a\":[1]}],\"b\":\"\\u0000\"}";
    struct error err;
    struct json *value = json_parse_lenient(text, strlen(text), true, &err);
    auto_free char *printed = json_print(value, JSON_COMPACT);
    assert_string_equal(printed, "{\"managedFields\":[{\"a\":[1]}],\"b\":\"\xef\xbf\xbd\"}");
    json_free(value);
}

static void what_is_no_json_is_told(void **state)
{
    (void)state;
    static const char *const texts[] = {"",         "{",  "1",    "[\"", "[\"\\",
                                        "[\"\\u00", "]]", "[1]]", "{]"};
    for (size_t i = 0; i < array_length(texts); i++) {
        struct error err = {0};
        struct json *value = json_parse_lenient(texts[i], strlen(texts[i]), false, &err);
        assert_null(value);
        assert_fails(-1, &err, ERR_INPUT, "line 1, column ");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nul_is_replaced),
        cmocka_unit_test(what_lies_too_deep_is_null),
        cmocka_unit_test(managed_fields_are_left_out),
        cmocka_unit_test(managed_fields_are_kept_where_they_are_asked_for),
        cmocka_unit_test(what_is_no_json_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
