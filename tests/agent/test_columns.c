/* Rows of each format to the texts of their columns. */
#include "agent/dataset/columns.h"

#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

#define TEXT                                                                                       \
    {                                                                                              \
        .column = "text", .key = "data.text_column"                                                \
    }
#define SUM                                                                                        \
    {                                                                                              \
        .column = "sum", .key = "data.target_column"                                               \
    }
#define LABEL                                                                                      \
    {                                                                                              \
        .column = "label", .key = "data.label_column", .may_be_number = true                       \
    }

static const struct {
    enum token_format format;
    const char *names; /* of TSV and CSV */
    const char *record;
    const char *text, *label;
} rows[] = {
    {TOKENS_JSONL, NULL, "{\"label\": \"b\", \"text\": \"a\\n\\u00e9\"}", "a\n\xc3\xa9", "b"},
    {TOKENS_JSONL, NULL, "{\"label\": 7, \"text\": \"\", \"more\": [1]}", "", "7"},
    {TOKENS_JSONL, NULL, "{\"label\": true, \"text\": \"x\"}", "x", "1"},
    {TOKENS_TSV, "text\tlabel", "a b\t1", "a b", "1"},
    {TOKENS_TSV, "x\tlabel\ty\ttext", "\t1\t\t\"a, b", "\"a, b", "1"},
    {TOKENS_TSV, "text\tlabel\tx", "\t", "", ""},
    {TOKENS_CSV, "text,label", "a b,1", "a b", "1"},
    {TOKENS_CSV, "\"label\",\"te\"\"xt\",text", "1,2,\"a, \"\"b\"\"\nc\"", "a, \"b\"\nc", "1"},
    {TOKENS_CSV, "text,label", "\"\",\"\"", "", ""},
    {TOKENS_CSV, "text,label", "a \"b\" c,1", "a \"b\" c", "1"},
    {TOKENS_CSV, "text,label", "5\" pipe,1", "5\" pipe", "1"},
    {TOKENS_CSV, "label,text,x", "1,a \"b, c", "a \"b", "1"},
    {TOKENS_CSV, "text,label", "\"\"\"a\"\",\"\"\",1", "\"a\",\"", "1"},
};

static struct columns columns_of(enum token_format format)
{
    return (struct columns){.format = format, .wanted = {TEXT, LABEL}, .count = 2};
}

static void test_rows(void **state)
{
    (void)state;
    struct columns_row row = {0}; /* the same for all formats */
    struct error err;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct columns columns = columns_of(rows[i].format);
        if (rows[i].names)
            assert_ok(columns_read_names(&columns, rows[i].names, strlen(rows[i].names), &err),
                      &err);
        assert_ok(columns_parse(&columns, rows[i].record, strlen(rows[i].record), &row, &err),
                  &err);
        assert_int_equal(row.texts[0].bytes, strlen(rows[i].text));
        assert_memory_equal(row.texts[0].text, rows[i].text, strlen(rows[i].text));
        assert_int_equal(row.texts[1].bytes, strlen(rows[i].label));
        assert_memory_equal(row.texts[1].text, rows[i].label, strlen(rows[i].label));
    }
    columns_row_free(&row);
}

static void test_plain_text_is_one_column(void **state)
{
    (void)state;
    struct columns columns = {.format = TOKENS_TEXT, .wanted = {TEXT}, .count = 1};
    struct columns_row row = {0};
    struct error err;
    assert_ok(columns_parse(&columns, "{\"a\": 1}", 8, &row, &err), &err);
    assert_int_equal(row.texts[0].bytes, 8);
    columns_row_free(&row);
}

static void test_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        enum token_format format;
        const char *names, *record; /* record NULL: the names are wrong */
        const char *says;
    } wrong[] = {
        {TOKENS_JSONL, NULL, "{\"text\": \"a\", \"x\\ny\": 1}",
         "no text \"sum\" in it; it has text, x y: set data.target_column"},
        {TOKENS_JSONL, NULL, "{\"text\": \"a\", \"sum\": \"b\"}",
         "no text or whole number \"label\" in it; it has text, sum: set data.label_column"},
        {TOKENS_JSONL, NULL, "{\"text\": \"a\", \"sum\": \"b\", \"label\": 1.5}",
         "\"label\" is a number, no text or whole number"},
        {TOKENS_JSONL, NULL, "{\"text\": 7, \"sum\": \"b\", \"label\": 1}",
         "\"text\" is a whole number, no text"},
        {TOKENS_JSONL, NULL, "{\"text\": null, \"sum\": \"b\", \"label\": 1}",
         "\"text\" is null, no text"},
        {TOKENS_JSONL, NULL, "{}", "it has nothing: set data.text_column"},
        {TOKENS_JSONL, NULL, "[1]", "no JSON object: a value of another kind"},
        {TOKENS_JSONL, NULL, "{\"text\": ", "no JSON object: "},
        {TOKENS_TSV, "text\tlabel", NULL,
         "no column \"sum\"; it has text, label: set data.target_column"},
        {TOKENS_CSV, "text;sum;label", NULL,
         "no column \"text\"; it has text;sum;label: set data.text_column"},
        {TOKENS_TSV, "text\tsum\tlabel\ttext", NULL, "two columns \"text\": which of them"},
        {TOKENS_CSV, "\"text\"x,label", NULL, "a field begins with \" but does not end with one"},
        {TOKENS_TSV, "text\tsum\tlabel", "a\tb", "it has only 2 fields, fewer than"},
        {TOKENS_TSV, "text\tsum\tlabel", "a\tb\tc\td",
         "it has 4 fields, and its file's first line 3"},
        {TOKENS_CSV, "text,sum,label,x", "a,b,c,d,e",
         "it has 5 fields, and its file's first line 4: a text with a comma needs quotes"},
        {TOKENS_CSV, "text,sum,label", "\"a\" b,c,d",
         "a field begins with \" but does not end with one: \"a\" b"},
    };
    for (size_t i = 0; i < array_length(wrong); i++) {
        struct columns columns = {
            .format = wrong[i].format, .wanted = {TEXT, SUM, LABEL}, .count = 3};
        struct columns_row row = {0};
        struct error err;
        int result = 0;
        if (wrong[i].names)
            result = columns_read_names(&columns, wrong[i].names, strlen(wrong[i].names), &err);
        if (wrong[i].record && result == 0)
            result = columns_parse(&columns, wrong[i].record, strlen(wrong[i].record), &row, &err);
        assert_fails(result, &err, ERR_INPUT, wrong[i].says);
        columns_row_free(&row);
    }
}

static void test_open_quotes(void **state)
{
    (void)state;
    assert_false(columns_is_open("a,\"b\",c", 7, false));
    assert_true(columns_is_open("a,\"b", 4, false));
    assert_true(columns_is_open("still \"\"", 8, true));
    assert_false(columns_is_open("end\",c", 6, true));
    assert_false(columns_is_open("5\" pipe,1", 9, false));
    assert_true(columns_is_open("5\" pipe,\"a", 10, false));
    assert_true(columns_is_open("end\",c,\"", 8, true));
    assert_false(columns_is_open("\"a\"b\",c", 8, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_plain_text_is_one_column),
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_open_quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
