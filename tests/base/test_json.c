#include "tests/support.h"

#include "base/json.h"
#include "base/json_text.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Parses a copy of the exact size, so that a read beyond it is seen. */
static struct json *parse(const char *text, unsigned allow, struct error *err)
{
    size_t bytes = strlen(text);
    auto_free char *exact = xmalloc(bytes);
    memcpy(exact, text, bytes);
    return json_parse(exact, bytes, allow, err);
}

static void assert_prints(struct json *value, unsigned style, const char *expected)
{
    auto_free char *printed = json_print(value, style);
    assert_string_equal(printed, expected);
}

/* ---- parsing and printing ---- */

static void what_is_parsed_is_printed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed; /* NULL: as it was */
    } rows[] = {
        {"{}", NULL},
        {"[]", NULL},
        {" \t\r\n[ 1 , true,false ,null ] \n", "[1,true,false,null]"},
        {"{\"b\":{\"d\":[{}]},\"a\":[[],\"\"]}", NULL},
        /* numbers keep their text */
        {"[0,-0,1.0,1e3,1E+3,0.1,-1.50e-07,123456789012345678901234567890]", NULL},
        {"[9007199254740993,9223372036854775807,-9223372036854775808,18446744073709551616]", NULL},
        {"[0.1000000000000000055511151231257827021181583404541015625000000000000000]", NULL},
        /* strings */
        {"[\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "[\"a\\\"\\\\/\\b\\f\\n\\r\\t\"]"},
        {"[\"\\u0001\\u001F\\u007f\\u00e9\"]", "[\"\\u0001\\u001F\x7f\u00e9\"]"},
        {"[\"\\ud83d\\ude00\", \"\\u20AC\"]", "[\"\U0001F600\",\"\u20ac\"]"},
        {"[\"\u00e9\u20ac\U0001F600\"]", NULL},
        {"[\"1\",\"\\u00ff1\",\"\\u00ff\"]", "[\"1\",\"\u00ff1\",\"\u00ff\"]"},
        {"{\"\":1,\" \":2,\"a\\u0062\":3}", "{\"\":1,\" \":2,\"ab\":3}"},
        {"{\"Key\":1,\"key\":2,\"KEY\":3}", NULL},
        {"[\"\u2028\u2029\x7f\ufeff\U0010FFFF\"]", NULL}, /* JavaScript was stricter */
        {"[\"\\u2028\\uDBFF\\uDFFF\"]", "[\"\u2028\U0010FFFF\"]"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error err = {0};
        struct json *value = parse(rows[i].text, JSON_STRICT, &err);
        assert_string_equal(err.msg, "");
        assert_prints(value, JSON_COMPACT, rows[i].printed ? rows[i].printed : rows[i].text);
        json_free(value);
    }
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "line 1, column 0: '[' or '{' expected near end of file"},
        {" \n ", "line 2, column 1: '[' or '{' expected near end of file"},
        {"1", "line 1, column 1: '[' or '{' expected near '1'"},
        {"\xef\xbb\xbf{}", "begins with a byte order mark, which JSON has not (RFC 8259): save it "
                           "as UTF-8 without one"},
        {"{\"a\":", "line 1, column 5: premature end of input near end of file"},
        {"[\"a\nb\"]", "line 1, column 4: a control character that is not escaped near '\"a'"},
        {"{\"a\": 1", "line 1, column 7: '}' expected near end of file"},
        {"[1 2]", "line 1, column 4: ']' expected near '2'"},
        {"[1,]", "line 1, column 4: unexpected token near ']'"},
        {"{\"a\":1,}", "line 1, column 8: string expected near '}'"},
        {"{a:1}", "line 1, column 2: string expected near 'a'"},
        {"{\"a\" 1}", "line 1, column 6: ':' expected near '1'"},
        {"[,1]", "line 1, column 2: unexpected token near ','"},
        {"{\"a\"}", "line 1, column 5: ':' expected near '}'"},
        {"['a']", "line 1, column 2: unexpected token near '\''"},
        {"[1]/**/", "line 1, column 4: end of file expected near '/'"},
        {"[1\f]", "line 1, column 3: ']' expected near ' '"},
        {"[True]", "line 1, column 2: invalid token near 'True'"},
        {"[nul]", "line 1, column 2: invalid token near 'nul'"},
        {"[NaN]", "line 1, column 2: invalid token near 'NaN'"},
        {"[+1]", "line 1, column 2: unexpected token near '+'"},
        {"[01]", "line 1, column 2: invalid number near '01'"},
        {"[1.]", "line 1, column 2: invalid number near '1.'"},
        {"[-]", "line 1, column 2: invalid number near '-'"},
        {"[1e]", "line 1, column 2: invalid number near '1e'"},
        {"[0x1]", "line 1, column 3: ']' expected near 'x1'"},
        {"[1e999]", "line 1, column 2: a number that is too large near '1e999'"},
        {"[]\n\n  ]", "line 3, column 3: end of file expected near ']'"},
        {"[]{}", "line 1, column 3: end of file expected near '{'"},
        {"[\"abc", "line 1, column 5: premature end of input near '\"abc'"},
        {"[\"\\x\"]", "line 1, column 3: invalid escape near '\"\\x\"'"},
        {"[\"\\u12", "line 1, column 3: invalid escape near '\"\\u12'"},
        {"[\"\\u12g4\"]", "line 1, column 3: invalid escape near '\"\\u12g4\"'"},
        {"[\"\\ud800\"]", "line 1, column 3: half of a surrogate pair near '\"\\ud800\"'"},
        {"[\"\\udc00\"]", "line 1, column 3: half of a surrogate pair near '\"\\udc00\"'"},
        {"[\"\\ud800\\u0041\"]",
         "line 1, column 3: half of a surrogate pair near '\"\\ud800\\u0041\"'"},
        {"[\"a\\u0000\"]", "line 1, column 4: \\u0000 is not allowed near '\"a\\u0000\"'"},
        {"{\"a\\u0000\":1}", "line 1, column 4: \\u0000 in a key near '\"a\\u0000\"'"},
        {"[\"\xff\"]", "line 1, column 3: byte 0xff is not UTF-8 near '\"?\"'"},
        {"[\"\xc0\x80\"]", "line 1, column 3: byte 0xc0 is not UTF-8 near '\"??\"'"},
        {"[\"\xed\xa0\x80\"]", "line 1, column 3: byte 0xed is not UTF-8 near '\"???\"'"},
        {"[\"\xe2\x82", "line 1, column 3: byte 0xe2 is not UTF-8 near '\"?"
                        "?'"},
        {"[\"\u00e9\u20ac\", x]", "line 1, column 8: invalid token near 'x'"},
        {"[\u00e9]", "line 1, column 2: a character that is not JSON near '\u00e9'"},
        {"{\"a\":1,\n \"b\":2, \"a\":3}", "line 2, column 9: duplicate object key near '\"a\"'"},
        {"[{\"x\":{\"a\":1,\"\\u0061\":2}}]",
         "line 1, column 14: duplicate object key near '\"\\u0061\"'"},
        {"[0123456789012345678901234567890123456789012345]",
         "line 1, column 2: invalid number near '0123456789012345678901234567890123456789'"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error err = {0};
        assert_null(parse(rows[i].text, JSON_STRICT, &err));
        assert_int_equal(err.code, ERR_INPUT);
        assert_string_equal(err.msg, rows[i].message);
        assert_null(parse(rows[i].text, JSON_STRICT, NULL));
    }
}

/* Where a C text would end. */
static void a_nul_in_the_text_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        const char *message;
    } rows[] = {
        {"[1]\0", 4, "line 1, column 4: end of file expected near ' '"},
        {"\0[1]", 4, "line 1, column 1: '[' or '{' expected near ' '"},
        {"[1\0]", 4, "line 1, column 3: ']' expected near ' '"},
        {"[\"a\0\"]", 6, "line 1, column 4: a control character that is not escaped near '\"a \"'"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error err = {0};
        assert_null(json_parse(rows[i].text, rows[i].bytes, JSON_ALLOW_NUL, &err));
        assert_string_equal(err.msg, rows[i].message);
    }
}

static void more_is_taken_on_request(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned allow;
        const char *printed; /* NULL: as it was */
    } rows[] = {
        {"\"a\"", JSON_ALLOW_SCALAR, "\"a\""},
        {" 1.50 ", JSON_ALLOW_SCALAR, "1.50"},
        {"null", JSON_ALLOW_SCALAR, "null"},
        {"{\"a\":1,\"b\":2,\"a\":[3]}", JSON_ALLOW_DUPLICATES, "{\"b\":2,\"a\":[3]}"},
        {"{\"a\":{\"b\":1,\"b\":2},\"a\":1,\"a\":2}", JSON_ALLOW_DUPLICATES, "{\"a\":2}"},
        {"[NaN,-1,-Infinity,{\"NaN\":Infinity,\"b\":\"NaN\"}]", JSON_ALLOW_NAN,
         "[null,-1,null,{\"NaN\":null,\"b\":\"NaN\"}]"},
        {"[NaN]", JSON_ALLOW_NAN, "[null]"},
        {"[-Infinity]", JSON_ALLOW_NAN, "[null]"},
        {"\"\\u0000\\\"\"", JSON_ALLOW_NUL | JSON_ALLOW_SCALAR, NULL},
        {"[\"a\\u0000b\\\\u0000\\u0000\"]", JSON_ALLOW_NUL, "[\"a\\u0000b\\\\u0000\\u0000\"]"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        assert_null(parse(rows[i].text, JSON_STRICT, NULL));
        struct json *value = parse(rows[i].text, rows[i].allow, NULL);
        assert_prints(value, JSON_COMPACT, rows[i].printed ? rows[i].printed : rows[i].text);
        json_free(value);
    }
    assert_null(parse("{\"a\\u0000\":1}", JSON_ALLOW_NUL, NULL));
    assert_null(parse("[NaNs]", JSON_ALLOW_NAN, NULL));
    assert_null(parse("[+Infinity]", JSON_ALLOW_NAN, NULL));
    assert_null(parse("[-NaN]", JSON_ALLOW_NAN, NULL));
    assert_null(parse("[Inf]", JSON_ALLOW_NAN, NULL));
}

static void a_nul_is_restored(void **state)
{
    (void)state;
    static const char expected[] = "a\0\u00c0\0\0b";
    struct json *value = parse("[\"a\\u0000\\u00c0\\u0000\\u0000b\"]", JSON_ALLOW_NUL, NULL);
    struct json *string = json_at(value, 0);
    assert_int_equal(json_restore_nul(string), sizeof expected - 1);
    assert_memory_equal(json_as_text(string), expected, sizeof expected);
    json_free(value);
}

/* `depth` arrays, each in the other. */
static char *nested(int depth)
{
    char *text = xmalloc(2 * (size_t)depth + 1);
    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    text[2 * depth] = '\0';
    return text;
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    auto_free char *deepest = nested(JSON_MAX_DEPTH), *deeper = nested(JSON_MAX_DEPTH + 1);
    struct error err = {0};
    struct json *value = parse(deepest, JSON_STRICT, &err);
    assert_prints(value, JSON_COMPACT, deepest);
    json_free(value);
    assert_null(parse(deeper, JSON_STRICT, &err));
    assert_string_equal(err.msg, "line 1, column 513: nested too deep near '['");
    deeper[JSON_MAX_DEPTH] = '{'; /* an object counts as an array does */
    deeper[JSON_MAX_DEPTH + 1] = '}';
    assert_null(parse(deeper, JSON_STRICT, &err));
    assert_string_equal(err.msg, "line 1, column 513: nested too deep near '{'");
}

static void styles_order_and_indent(void **state)
{
    (void)state;
    struct json *value = parse("{\"b\":[1,{}],\"a\":{\"d\":[],\"c\":null},\"B\":\"\"}", 0, NULL);
    assert_prints(value, JSON_SORTED, "{\"B\":\"\",\"a\":{\"c\":null,\"d\":[]},\"b\":[1,{}]}");
    assert_prints(value, JSON_INDENTED,
                  "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": {\n    \"d\": [],\n"
                  "    \"c\": null\n  },\n  \"B\": \"\"\n}");
    json_free(value);
}

/* ---- reading ---- */

static void what_is_not_there_is_nothing(void **state)
{
    (void)state;
    struct json *value = parse("{\"a\":[1],\"A\":\"x\",\"t\":true,\"n\":null}", 0, NULL);
    const struct json *array = json_get(value, "a"), *text = json_get(value, "A");
    const struct json *none = json_get(json_get(value, "b"), "c");
    assert_null(none);
    assert_null(json_get(array, "a"));
    assert_null(json_at(array, 1));
    assert_null(json_at(value, 0));
    assert_null(json_as_text(array));
    assert_null(json_as_text(NULL));
    assert_null(json_number_text(text));
    assert_int_equal(json_as_integer(text), 0);
    assert_true(json_as_number(NULL) == 0);
    assert_int_equal(json_object_count(array) + json_array_count(value), 0);
    assert_int_equal(json_object_count(NULL) + json_array_count(NULL), 0);
    assert_null(json_first_item(value));
    assert_null(json_first_member(array));
    assert_false(json_is_null(NULL) || json_is_object(NULL) || json_is_number(NULL));
    assert_true(json_is_null(json_get(value, "n")) && json_is_true(json_get(value, "t")));
    assert_string_equal(json_as_text(text), "x");
    json_free(value);
    json_free(NULL);
}

static void walks_come_in_order(void **state)
{
    (void)state;
    struct json *value = parse("{\"z\":1,\"a\":2,\"m\":[3,4]}", 0, NULL);
    auto_str struct str seen;
    str_init(&seen, 100);
    const struct json *member, *item;
    json_each_member(member, value) {
        str_printf(&seen, "%s", json_key(member));
        json_each_item(item, member) {
            str_printf(&seen, "%" PRId64, json_as_integer(item));
        }
    }
    assert_string_equal(str_text(&seen), "zam34");
    json_free(value);
}

static void equal_values_say_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"{\"a\":1,\"b\":[2,\"x\"]}", "{\"b\":[2,\"x\"],\"a\":1}", true},
        {"[1e3]", "[1000.0]", true},
        {"[1]", "[1.0]", false},
        {"[1]", "[2]", false},
        {"[9007199254740993]", "[9007199254740992]", false},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,1]", false},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":1}", "{\"A\":1}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"[true]", "[false]", false},
        {"[null]", "[null]", true},
        {"[]", "{}", false},
        {"[\"a\"]", "[\"b\"]", false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct json *a = parse(rows[i].a, 0, NULL), *b = parse(rows[i].b, 0, NULL);
        assert_int_equal(json_is_equal(a, b), rows[i].equal);
        assert_int_equal(json_is_equal(b, a), rows[i].equal);
        json_free(a);
        json_free(b);
    }
    assert_false(json_is_equal(NULL, NULL));
}

static void texts_are_written_without_values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"", "\"\""},
        {"a \"b\" \\ /\n\t\x01\x1f\x7f", "\"a \\\"b\\\" \\\\ /\\n\\t\\u0001\\u001F\x7f\""},
        {"\u00e9\u20ac\u2028\U0001F600", "\"\u00e9\u20ac\u2028\U0001F600\""},
        {"a\xff\u00e9z", "\"a?\u00e9z\""}, /* is no UTF-8 */
        {"a\xe2\x82", "\"a??\""},          /* was cut elsewhere */
        {"\xed\xa0\x80", "\"???\""},
        {"a\xc0\x80", "\"a\\u0000\""},
    };
    auto_str struct str text;
    str_init(&text, 100);
    for (size_t i = 0; i < array_length(rows); i++) {
        str_clear(&text);
        json_text(rows[i].text, &text);
        assert_string_equal(str_text(&text), rows[i].json);
        struct json *value =
            json_parse_text(str_text(&text), JSON_ALLOW_SCALAR | JSON_ALLOW_NUL, NULL);
        assert_non_null(value);
        json_free(value);
    }
}

/* ---- building ---- */

static void values_are_built(void **state)
{
    (void)state;
    struct json *value = json_object_of(
        "name", json_new_text("a\"b"), "none", json_new_text(NULL), "port",
        json_new_integer(INT64_MIN), "list",
        json_array_of(json_new_bool(true), json_new_bool(false), json_new_null(), NULL), "made",
        json_new_textf("%s-%d", "x", 7), NULL);
    json_set_text(value, "absent", NULL);
    json_set(value, "absent", NULL);
    json_append(json_get(value, "list"), NULL);
    json_append(json_get(value, "list"), json_new_array());
    json_set_text(value, "name", "c");
    json_set_integer(value, "last", 3);
    assert_prints(value, JSON_COMPACT,
                  "{\"name\":\"c\",\"port\":-9223372036854775808,"
                  "\"list\":[true,false,null,[]],\"made\":\"x-7\",\"last\":3}");
    json_remove(value, "port");
    json_remove(value, "port");
    struct json *list = json_clone(json_get(value, "list")), *third = json_take_at(list, 2);
    assert_null(json_take_at(list, 3));
    json_set(value, "made", third);
    json_set(value, "copy", json_clone(json_get(value, "name")));
    assert_prints(list, JSON_COMPACT, "[true,false,[]]");
    assert_prints(value, JSON_COMPACT,
                  "{\"name\":\"c\",\"list\":[true,false,null,[]],\"made\":null,\"last\":3,"
                  "\"copy\":\"c\"}");
    json_free(list);
    json_free(value);
}

static void texts_are_made_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t max_bytes;
        const char *cut;
    } rows[] = {
        {"", 4, ""},
        {"abcd", 4, "abcd"},
        {"abcde", 4, "abcd"},
        {"ab\u00e9", 4, "ab\u00e9"},
        {"abc\u00e9", 4, "abc"},
        {"\u20ac", 2, ""},
        {"a\xe2\x82", 4, "a??"},           /* was cut elsewhere */
        {"a\xff\u00e9z", 16, "a?\u00e9z"}, /* is no UTF-8 */
        {"\x80\x80\x80\x80\x80", 4, ""},   /* nowhere to cut */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct json *value = json_new_text_cut(rows[i].text, rows[i].max_bytes);
        assert_string_equal(json_as_text(value), rows[i].cut);
        json_free(value);
    }
    struct json *value = json_new_text_bytes("a\0b\xc3", 4);
    assert_string_equal(json_as_text(value), "a?b?");
    json_free(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_parsed_is_printed),
        cmocka_unit_test(what_is_wrong_is_told_with_its_place),
        cmocka_unit_test(a_nul_in_the_text_is_wrong),
        cmocka_unit_test(more_is_taken_on_request),
        cmocka_unit_test(a_nul_is_restored),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(styles_order_and_indent),
        cmocka_unit_test(what_is_not_there_is_nothing),
        cmocka_unit_test(walks_come_in_order),
        cmocka_unit_test(equal_values_say_the_same),
        cmocka_unit_test(texts_are_written_without_values),
        cmocka_unit_test(values_are_built),
        cmocka_unit_test(texts_are_made_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
