/* Expressions as the tokenizers library reads them: tests/data/tokenizers/patterns.jsonl, made by
 * tests/parity/make_patterns_fixture.py. */
#include "agent/text/pattern.h"

#include "agent/text/spec.h"
#include "agent/text/splitter.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

enum { MAX_TEXT_BYTES = 1 << 16 };

static int take_piece(void *ctx, const char *word, size_t bytes, struct error *err)
{
    (void)err;
    json_append(ctx, json_new_text_bytes(word, bytes));
    return 0;
}

/* The pieces that a Split by this expression makes of a text; the caller's. */
static struct json *split(const struct json *row)
{
    const struct spec_component component = {
        .type = "Split",
        .where = "pre_tokenizer",
        .behavior = json_as_text(json_get(row, "behavior")),
        .invert = json_is_true(json_get(row, "invert")),
        .pattern = {.expression = json_as_text(json_get(row, "expression"))},
    };
    const char *text = json_as_text(json_get(row, "text"));
    struct splitter splitter = {0};
    struct splitter_workspace work;
    struct error err;
    struct json *pieces = json_new_array();
    struct pattern_workspace *pattern = pattern_workspace_open();
    splitter_workspace_init(&work, pattern, MAX_TEXT_BYTES);
    assert_ok(splitter_open(&component, &splitter, &err), &err);
    assert_ok(splitter_run(&splitter, &work, text, strlen(text), true, take_piece, pieces, &err),
              &err);
    splitter_close(&splitter);
    splitter_workspace_free(&work);
    pattern_workspace_close(pattern);
    return pieces;
}

static void pieces_are_the_librarys(void **state)
{
    (void)state;
    auto_free char *text = NULL;
    size_t bytes;
    struct error err;
    int rows = 0, differ = 0;
    assert_ok(file_read("tests/data/tokenizers/patterns.jsonl", 1 << 20, &text, &bytes, &err),
              &err);
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line; rows++) {
        struct json *row = json_parse_text(line, JSON_STRICT, NULL), *pieces = split(row);
        if (!json_is_equal(pieces, json_get(row, "pieces"))) {
            auto_free char *got = json_print(pieces, JSON_COMPACT);
            print_message("# %s: got %s\n", line, got);
            differ++;
        }
        json_free(pieces);
        json_free(row);
    }
    assert_true(rows > 100);
    assert_int_equal(differ, 0);
}

/* The longest that the library's words become here, and no more than is allowed. */
static void a_long_expression_is_refused_not_cut(void **state)
{
    (void)state;
    struct error err;
    struct pattern *pattern = NULL;
    auto_free char *expression = xcalloc(1, PATTERN_MAX_BYTES + 2);
    for (size_t i = 0; i < PATTERN_MAX_BYTES; i += 2)
        memcpy(expression + i, "\\w", 2);
    int result = pattern_open(expression, &pattern, &err);
    if (result < 0) /* a PCRE2 may find it too large */
        assert_non_null(strstr(err.msg, "expression"));
    pattern_close(pattern);
    expression[PATTERN_MAX_BYTES] = 'x';
    assert_int_equal(pattern_open(expression, &pattern, &err), -1);
    assert_non_null(strstr(err.msg, "expression of 16385 bytes; at most 16384"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_the_librarys),
        cmocka_unit_test(a_long_expression_is_refused_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
