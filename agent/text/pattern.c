#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/text/pattern.h"

#include "agent/text/spec.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <pcre2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct pattern {
    pcre2_code *code; /* NULL: `text` is looked for */
    char *text;
    size_t text_bytes;
};

struct pattern_work {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

/* ---- from Oniguruma's syntax to PCRE2's ---- */

/* What \w is there: UTS #18's word characters and Latin-1's small digits and fractions. PCRE2's own
 * knows no marks and only one connector. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"

struct rewriting {
    const char *expression;
    struct str *out;
    struct error *err;
    bool in_class;
};

static int refuse(const struct rewriting *r, const char *at, int bytes, const char *why)
{
    return error_set(r->err, ERR_UNSUPPORTED, "expression, byte %td: %.*s %s", at - r->expression,
                     bytes, at, why);
}

static int rewrite_escape(struct rewriting *r, const char *at)
{
    switch (at[1]) {
    case '\0':
        return error_set(r->err, ERR_INPUT, "expression, byte %td: \\ at its end",
                         at - r->expression);
    case 's': /* PCRE2's own has U+180E too */
        str_add(r->out, "\\p{White_Space}");
        return 0;
    case 'S':
        str_add(r->out, "\\P{White_Space}");
        return 0;
    case 'w':
        str_add(r->out, r->in_class ? WORD : "[" WORD "]");
        return 0;
    case 'W':
        if (r->in_class)
            return refuse(r, at, 2, "within [] is not supported");
        str_add(r->out, "[^" WORD "]");
        return 0;
    case 'h':
    case 'H':
    case 'b':
    case 'B':
    case 'y':
    case 'Y':
    case 'R':
    case 'X':
    case 'K':
    case 'G':
    case 'N':
    case 'O':
    case 'C':
        return refuse(r, at, 2, "is not supported");
    default:
        str_add_bytes(r->out, at, 2);
        return 0;
    }
}

/* "(?i" is fine; "(?m" makes the dot match newlines there and another thing here. */
static int check_group(const struct rewriting *r, const char *at)
{
    size_t flags = strspn(at + 2, "imsxna-");
    if (at[1] == '*')
        return refuse(r, at, 2, "is not supported");
    if (at[1] == '?' && flags > 0 && strcspn(at + 2, "msxna") < flags)
        return refuse(r, at, (int)(2 + flags), "is not supported: only the flag i is");
    return 0;
}

static int rewrite_class(struct rewriting *r, const char *at)
{
    if (*at == '[')
        return refuse(r, at, 1, "within [] is not supported");
    if (at[0] == '&' && at[1] == '&')
        return refuse(r, at, 2, "within [] is not supported");
    if (*at == ']')
        r->in_class = false;
    str_add_bytes(r->out, at, 1);
    return 0;
}

static int rewrite(struct rewriting *r)
{
    const char *at = r->expression;
    while (*at) {
        if (*at == '\\') {
            if (rewrite_escape(r, at) < 0)
                return -1;
            at += 2;
            continue;
        }
        if (r->in_class) {
            if (rewrite_class(r, at) < 0)
                return -1;
            at++;
            continue;
        }
        if (*at == '(' && check_group(r, at) < 0)
            return -1;
        str_add_bytes(r->out, at, 1);
        if (*at++ == '[') {
            r->in_class = true;
            size_t negation = *at == '^', bracket = at[negation] == ']';
            str_add_bytes(r->out, at, negation + bracket); /* a ] that comes first is a member */
            at += negation + bracket;
        }
    }
    return 0;
}

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
    str_init(&text, 32 * PATTERN_MAX_BYTES);
    struct rewriting r = {.expression = expression, .out = &text, .err = err};
    if (rewrite(&r) < 0)
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

int pattern_open_part(const struct spec_part *part, struct pattern **ret_pattern, struct error *err)
{
    if (part->pattern.expression)
        return pattern_open(part->pattern.expression, ret_pattern, err) < 0
                   ? error_wrap(err, "%s.pattern", part->where)
                   : 0;
    if (!part->pattern.text || !*part->pattern.text)
        return error_set(err, ERR_INPUT, "%s.pattern: must have a String or a Regex", part->where);
    *ret_pattern = pattern_open_text(part->pattern.text);
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

struct pattern_work *pattern_work_open(void)
{
    struct pattern_work *work = xcalloc(1, sizeof *work);
    work->match = pcre2_match_data_create(1, NULL);
    work->context = pcre2_match_context_create(NULL);
    assert(work->match && work->context);
    pcre2_set_match_limit(work->context, PATTERN_MAX_STEPS);
    pcre2_set_heap_limit(work->context, PATTERN_MAX_HEAP_KIB);
    work->stack = pcre2_jit_stack_create(32 * 1024, PATTERN_MAX_STACK_BYTES, NULL);
    if (work->stack) /* NULL where there is no JIT */
        pcre2_jit_stack_assign(work->context, NULL, work->stack);
    return work;
}

void pattern_work_close(struct pattern_work *work)
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

int pattern_find(const struct pattern *pattern, struct pattern_work *work, const char *text,
                 size_t bytes, size_t from, size_t *ret_begin, size_t *ret_end, struct error *err)
{
    assert(from <= bytes);
    if (!pattern->code)
        return find_text(pattern, text, bytes, from, ret_begin, ret_end);
    int result = pcre2_match(pattern->code, (PCRE2_SPTR)text, bytes, from,
                             PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, work->match, work->context);
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

int pattern_replace(const struct pattern *pattern, struct pattern_work *work, const char *text,
                    size_t bytes, const char *replacement, struct str *out, struct error *err)
{
    size_t at = 0, begin = 0, end = 0;
    int found;
    while ((found = pattern_find(pattern, work, text, bytes, at, &begin, &end, err)) > 0) {
        str_add_bytes(out, text + at, begin - at);
        str_add(out, replacement);
        at = end;
    }
    str_add_bytes(out, text + at, bytes - at);
    return found;
}
