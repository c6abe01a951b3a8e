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
    struct json *value = json_parse_lenient(exact, strlen(text), json_managed_fields, &err);
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
    struct json *value = json_parse_lenient(text, strlen(text), NULL, &err);
    auto_free char *printed = json_print(value, JSON_COMPACT);
    assert_string_equal(printed, "{\"managedFields\":[{\"a\":[1]}],\"b\":\"\xef\xbf\xbd\"}");
    json_free(value);
}

static void add_item(void *context, const struct json *item)
{
    auto_free char *printed = json_is_object(item) ? json_print(item, JSON_COMPACT) : xstrdup("?");
    str_printf(context, "%s ", printed);
}

static void add_head(void *context, const struct json *head)
{
    auto_free char *printed = json_print(head, JSON_COMPACT);
    str_printf(context, "head %s ", printed);
}

/* Writes the items to `items`, each with a blank behind it. */
static struct json *parsed_list(const char *text, struct str *items, struct error *err)
{
    auto_free char *exact = xmalloc(strlen(text));
    memcpy(exact, text, strlen(text));
    const struct json_items takes = {
        .left_out = json_managed_fields, .item = add_item, .context = items};
    return json_parse_lenient_list(exact, strlen(text), &takes, err);
}

static void what_stands_before_the_items_comes_first(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"{\"metadata\":{\"continue\":\"t\"},\"items\":[{\"a\":1}]}",
         "head {\"metadata\":{\"continue\":\"t\"}} {\"a\":1} "},
        {"{\"a\":1,\"items\":[],\"b\":2,\"items\":[{}]}", "head {\"a\":1} {} "}, /* once */
        {"{\"items\":[{}],\"metadata\":{}}", "{} "},    /* nothing stands there */
        {"{\"metadata\":{},\"items\": [{}]}", ""},      /* not as Go writes it */
        {"{\"a\":{\"b\":1,\"items\":[]}}", ""},         /* these are no list's */
        {"{\"metadata\":x,\"items\":[{}]}", "{} "},     /* the head is no JSON */
        {"{\"a\":1,\"items\":[{]}", "head {\"a\":1} "}, /* the item is none */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct str said;
        struct error err;
        str_init(&said, 1000);
        const struct json_items takes = {
            .left_out = json_managed_fields, .head = add_head, .item = add_item, .context = &said};
        json_free(json_parse_lenient_list(rows[i].text, strlen(rows[i].text), &takes, &err));
        assert_string_equal(str_text(&said), rows[i].said);
        str_free(&said);
    }
}

static void items_of_a_list_come_one_by_one(void **state)
{
    (void)state;
    static const struct {
        const char *text, *items, *rest;
    } rows[] = {
        {"{\"kind\":\"List\",\"items\":[{\"a\":[1,{}]},{\"b\":\"],[\\\"\"}],\"c\":[2]}",
         "{\"a\":[1,{}]} {\"b\":\"],[\\\"\"} ", "{\"kind\":\"List\",\"items\":[],\"c\":[2]}"},
        {"{\"items\":[]}", "", "{\"items\":[]}"},
        {"{\"items\":[ \n ]}\n", "", "{\"items\":[]}"},
        {"{\"items\":[ {} , null , 7 , \"x\" ] }", "{} ? ? ? ", "{\"items\":[]}"},
        {"{\"items\":null}", "", "{\"items\":null}"},
        /* another place, another way of writing */
        {"{\"items\" : [{}]}", "", "{\"items\":[{}]}"},
        {"{\"a\":{\"items\":[1]},\"items\":[{}]}", "{} ", "{\"a\":{\"items\":[1]},\"items\":[]}"},
        {"{\"a\":\"\\\"items\\\":[\",\"items\":[{\"items\":[1]}]}", "{\"items\":[1]} ",
         "{\"a\":\"\\\"items\\\":[\",\"items\":[]}"},
        {"[{\"items\":[1]}]", "", "[{\"items\":[1]}]"},
        /* as elsewhere */
        {"{\"items\":[{\"managedFields\":[{\"a\":[1,2]}],\"x\":\"\\u0000\"},{\"managedFields\":[]}]}",
         "{\"managedFields\":null,\"x\":\"\xef\xbf\xbd\"} {\"managedFields\":null} ",
         "{\"items\":[]}"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_str struct str items;
        struct error err = {0};
        str_init(&items, 1000);
        struct json *rest = parsed_list(rows[i].text, &items, &err);
        auto_free char *printed = rest ? json_print(rest, JSON_COMPACT) : xstrdup(err.msg);
        assert_string_equal(printed, rows[i].rest);
        assert_string_equal(str_text(&items), rows[i].items);
        json_free(rest);
    }
}

static void a_long_list_is_whole(void **state)
{
    (void)state;
    auto_str struct str text, wanted, items;
    struct error err;
    str_init(&text, 1 << 20);
    str_init(&wanted, 1 << 20);
    str_init(&items, 1 << 20);
    str_add(&text, "{\"items\":[");
    for (int i = 0; i < 1000; i++) {
        str_printf(&text, "%s{\"n\":%d}", i ? "," : "", i);
        str_printf(&wanted, "{\"n\":%d} ", i);
    }
    str_add(&text, "]}");
    struct json *rest = parsed_list(str_text(&text), &items, &err);
    assert_non_null(rest);
    assert_string_equal(str_text(&items), str_text(&wanted));
    json_free(rest);
}

static void a_list_that_is_wrong_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *text, *items, *said;
    } rows[] = {
        {"{\"items\":[{},{\"a\":},{}]}", "{} ", "item 1 of the list: line 1, column 6"},
        {"{\"items\":[{},{]},{}]}", "{} ", "item 1 of the list: line 1, column 2"},
        {"{\"items\":[{},]}", "{} ", "item 1 of the list: line 1, column "},
        {"{\"items\":[{} {}]}", "", "item 0 of the list: line 1, column 4"},
        {"{\"items\":[{}],\"items\":[{}]}", "{} ", "duplicate object key"},
        {"{\"items\":[{}]", "{} ", "'}' expected near end of file"},
        {"{\"items\":[{},{\"a\":\"", "{} ", "premature end of input"},
        {"{\"items\":[{}}}", "{} ", "line 1, column "},
        {"{\"items\":[{}]]", "{} ", "line 1, column "},
        {"", "", "line 1, column "},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_str struct str items;
        struct error err = {0};
        str_init(&items, 1000);
        assert_null(parsed_list(rows[i].text, &items, &err));
        assert_fails(-1, &err, ERR_INPUT, rows[i].said);
        assert_string_equal(str_text(&items), rows[i].items);
    }
}

static void lists_of_other_names_may_be_left_out(void **state)
{
    (void)state;
    static const char *const names[] = {"env", "args", NULL};
#define LEFT  "{\"env\":[{\"args\":[1]}],\"a\":[{\"args\":[[2]],\"arg\":[3],\"argss\":[4]}],"
#define RIGHT "{\"env\":null,\"a\":[{\"args\":null,\"arg\":[3],\"argss\":[4]}],"
    static const char text[] = LEFT "\"x\":\"env\",\"b\":{\"args\":{\"env\":[]}}}";
    static const char expected[] = RIGHT "\"x\":\"env\",\"b\":{\"args\":{\"env\":null}}}";
    struct error err;
    struct json *value = json_parse_lenient(text, strlen(text), names, &err);
    auto_free char *printed = json_print(value, JSON_COMPACT);
    assert_string_equal(printed, expected);
    json_free(value);
    auto_free char *list = xasprintf("{\"items\":[%s]}", text);
    auto_str struct str items;
    str_init(&items, 1000);
    json_free(json_parse_lenient_list(
        list, strlen(list),
        &(struct json_items){.left_out = names, .item = add_item, .context = &items}, &err));
    items.text[items.length - 1] = '\0';
    assert_string_equal(str_text(&items), expected);
}

static void what_is_no_json_is_told(void **state)
{
    (void)state;
    static const char *const texts[] = {"",         "{",  "1",    "[\"", "[\"\\",
                                        "[\"\\u00", "]]", "[1]]", "{]"};
    for (size_t i = 0; i < array_length(texts); i++) {
        struct error err = {0};
        struct json *value =
            json_parse_lenient(texts[i], strlen(texts[i]), json_managed_fields, &err);
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
        cmocka_unit_test(what_stands_before_the_items_comes_first),
        cmocka_unit_test(items_of_a_list_come_one_by_one),
        cmocka_unit_test(a_long_list_is_whole),
        cmocka_unit_test(a_list_that_is_wrong_is_none),
        cmocka_unit_test(lists_of_other_names_may_be_left_out),
        cmocka_unit_test(what_is_no_json_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
