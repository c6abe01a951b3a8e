#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/text/pattern.h"

#include "agent/text/pattern_rewrite.h"
#include "agent/text/spec.h"
#include "agent/text/utf8.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

struct pattern {
    pcre2_code *code; /* NULL: `text` is looked for */
    char *text;
    size_t text_bytes;
};

struct pattern_workspace {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

/* ---- compiling and searching ---- */

static pcre2_code *compile(const struct str *text, struct error *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    assert(context);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    int code;
    size_t where;
    pcre2_code *compiled = pcre2_compile(
        (PCRE2_SPTR)str_text(text), text->length,
        /* Oniguruma's meaning, for which the expressions were written: classes know Unicode, and ^
         * and $ are of lines. \C would cut characters apart. */
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &where, context);
    pcre2_compile_context_free(context);
    if (!compiled) {
        char why[160];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        error_set(err, ERR_INPUT, "expression %.200s: %s at byte %zu", str_text(text), why, where);
        return NULL;
    }
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE); /* without it, it is only slower */
    return compiled;
}

int pattern_open(const char *expression, struct pattern **ret_pattern, struct error *err)
{
    if (strlen(expression) > PATTERN_MAX_BYTES)
        return error_set(err, ERR_INPUT, "expression of %zu bytes; at most %d", strlen(expression),
                         PATTERN_MAX_BYTES);
    auto_str struct str text;
    str_init(&text, (size_t)PATTERN_MAX_GROWTH * PATTERN_MAX_BYTES);
    if (pattern_rewrite(expression, &text, err) < 0)
        return -1;
    assert(!text.truncated);
    pcre2_code *code = compile(&text, err);
    if (!code)
        return -1;
    *ret_pattern = xcalloc(1, sizeof **ret_pattern);
    (*ret_pattern)->code = code;
    return 0;
}

struct pattern *pattern_open_text(const char *text)
{
    assert(*text);
    struct pattern *pattern = xcalloc(1, sizeof *pattern);
    pattern->text = xstrdup(text);
    pattern->text_bytes = strlen(text);
    return pattern;
}

int pattern_open_component(const struct spec_component *component, struct pattern **ret_pattern,
                           struct error *err)
{
    if (component->pattern.expression)
        return pattern_open(component->pattern.expression, ret_pattern, err) < 0
                   ? error_wrap(err, "%s.pattern", component->where)
                   : 0;
    if (!component->pattern.text || !*component->pattern.text)
        return error_set(err, ERR_INPUT, "%s.pattern: must have a String or a Regex",
                         component->where);
    *ret_pattern = pattern_open_text(component->pattern.text);
    return 0;
}

void pattern_close(struct pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_code_free(pattern->code);
    free(pattern->text);
    free(pattern);
}

struct pattern_workspace *pattern_workspace_open(void)
{
    struct pattern_workspace *work = xcalloc(1, sizeof *work);
    work->match = pcre2_match_data_create(1, NULL);
    work->context = pcre2_match_context_create(NULL);
    assert(work->match && work->context);
    /* An expression comes with a model from the net: one that backtracks without end must fail, and
     * not hang. */
    pcre2_set_match_limit(work->context, PATTERN_MAX_STEPS);
    pcre2_set_heap_limit(work->context, PATTERN_MAX_HEAP_KIB);
    work->stack = pcre2_jit_stack_create(32 * 1024, PATTERN_MAX_STACK_BYTES, NULL);
    if (work->stack) /* NULL where there is no JIT */
        pcre2_jit_stack_assign(work->context, NULL, work->stack);
    return work;
}

void pattern_workspace_close(struct pattern_workspace *work)
{
    if (!work)
        return;
    pcre2_match_data_free(work->match);
    pcre2_match_context_free(work->context);
    pcre2_jit_stack_free(work->stack);
    free(work);
}

static int find_text(const struct pattern *pattern, const char *text, size_t bytes, size_t from,
                     size_t *ret_begin, size_t *ret_end)
{
    const char *at = memmem(text + from, bytes - from, pattern->text, pattern->text_bytes);
    if (!at)
        return 0;
    *ret_begin = (size_t)(at - text);
    *ret_end = *ret_begin + pattern->text_bytes;
    return 1;
}

static int find(const struct pattern *pattern, struct pattern_workspace *work, const char *text,
                size_t bytes, size_t from, size_t *ret_begin, size_t *ret_end, struct error *err)
{
    if (!pattern->code)
        return find_text(pattern, text, bytes, from, ret_begin, ret_end);
    int result = pcre2_match(pattern->code, (PCRE2_SPTR)text, bytes, from, PCRE2_NO_UTF_CHECK,
                             work->match, work->context);
    if (result == PCRE2_ERROR_NOMATCH)
        return 0;
    if (result < 0) {
        char why[160];
        pcre2_get_error_message(result, (PCRE2_UCHAR *)why, sizeof why);
        return error_set(err, ERR_LIMIT, "the tokenizer's expression, at byte %zu of a text: %s",
                         from, why);
    }
    const size_t *ends = pcre2_get_ovector_pointer(work->match);
    *ret_begin = ends[0];
    *ret_end = ends[1];
    return 1;
}

int pattern_next(const struct pattern *pattern, struct pattern_workspace *work, const char *text,
                 size_t bytes, struct pattern_walk *walk, size_t *ret_begin, size_t *ret_end,
                 struct error *err)
{
    while (bytes > 0 && walk->from <= bytes) {
        int found = find(pattern, work, text, bytes, walk->from, ret_begin, ret_end, err);
        if (found <= 0)
            return found;
        if (*ret_begin < *ret_end || !walk->has_found || *ret_end != walk->end) {
            walk->has_found = true;
            walk->from = walk->end = *ret_end;
            return 1;
        }
        uint32_t ignored; /* an empty one right behind the last: go on behind the next character */
        size_t rest = bytes - walk->from;
        walk->from += rest > 0 ? utf8_decode(text + walk->from, rest, &ignored) : 1;
    }
    return 0;
}

int pattern_replace(const struct pattern *pattern, struct pattern_workspace *work, const char *text,
                    size_t bytes, const char *replacement, struct str *out, struct error *err)
{
    struct pattern_walk walk = {0};
    size_t at = 0, begin = 0, end = 0;
    int found;
    while ((found = pattern_next(pattern, work, text, bytes, &walk, &begin, &end, err)) > 0) {
        str_add_bytes(out, text + at, begin - at);
        str_add(out, replacement);
        at = end;
    }
    str_add_bytes(out, text + at, bytes - at);
    return found;
}
