#include "agent/text/normalizer.h"

#include "agent/text/pattern.h"
#include "agent/text/spec.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static const struct {
    const char *type;
    int options; /* with STABLE: as Unicode froze them */
} forms[] = {
    {"NFC", UTF8PROC_STABLE | UTF8PROC_COMPOSE},
    {"NFD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
    {"NFKC", UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
    {"NFKD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
};

static int open_replace(const struct spec_part *part, struct normalizer_step *step,
                        struct error *err)
{
    step->kind = NORMALIZER_REPLACE;
    step->content = part->content;
    if (!part->content)
        return error_set(err, ERR_INPUT, "%s.content: must be there", part->where);
    return pattern_open_part(part, &step->pattern, err);
}

static int open_step(const struct spec_part *part, struct normalizer_step *step, struct error *err)
{
    for (size_t i = 0; i < array_length(forms); i++) {
        if (strcmp(part->type, forms[i].type) == 0) {
            step->form = forms[i].options;
            return 0;
        }
    }
    if (strcmp(part->type, "Replace") == 0)
        return open_replace(part, step, err);
    if (strcmp(part->type, "Prepend") != 0)
        return error_set(
            err, ERR_UNSUPPORTED,
            "%s.type: %.40s is not supported; there are NFC, NFD, NFKC, NFKD, Prepend, "
            "Replace, Sequence",
            part->where, part->type);
    if (!part->prepend)
        return error_set(err, ERR_INPUT, "%s.prepend: must be there", part->where);
    *step = (struct normalizer_step){.kind = NORMALIZER_PREPEND, .content = part->prepend};
    return 0;
}

int normalizer_open(const struct spec_part *part, struct normalizer *normalizer, struct error *err)
{
    if (!part->type)
        return 0;
    if (strcmp(part->type, "Sequence") == 0) {
        for (size_t i = 0; i < part->parts.count; i++)
            if (normalizer_open(&part->parts.items[i], normalizer, err) < 0)
                return -1;
        return 0;
    }
    if (normalizer->count == NORMALIZER_MAX_STEPS)
        return error_set(err, ERR_INPUT, "%s: more than %d normalizers", part->where,
                         NORMALIZER_MAX_STEPS);
    return open_step(part, &normalizer->steps[normalizer->count++], err);
}

void normalizer_close(struct normalizer *normalizer)
{
    for (int i = 0; i < normalizer->count; i++)
        pattern_close(normalizer->steps[i].pattern);
    *normalizer = (struct normalizer){0};
}

static int run_form(int form, const char *text, size_t bytes, struct str *out, struct error *err)
{
    auto_free utf8proc_uint8_t *result = NULL;
    utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)bytes,
                                           &result, (utf8proc_option_t)form);
    if (length < 0)
        return error_set(err, ERR_LIMIT, "normalize a text of %zu bytes: %s", bytes,
                         utf8proc_errmsg(length));
    str_add_bytes(out, (const char *)result, (size_t)length);
    return 0;
}

static bool is_ascii(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

static int run_step(const struct normalizer_step *step, struct pattern_work *work, const char *text,
                    size_t bytes, struct str *out, struct error *err)
{
    switch (step->kind) {
    case NORMALIZER_FORM:
        return run_form(step->form, text, bytes, out, err);
    case NORMALIZER_PREPEND:
        str_add(out, step->content);
        str_add_bytes(out, text, bytes);
        return 0;
    case NORMALIZER_REPLACE:
        return pattern_replace(step->pattern, work, text, bytes, step->content, out, err);
    }
    return 0;
}

int normalizer_run(const struct normalizer *normalizer, struct pattern_work *work, struct str *one,
                   struct str *two, const char **text, size_t *bytes, struct error *err)
{
    struct str *out = one;
    for (int i = 0; i<normalizer->count && * bytes> 0; i++) {
        const struct normalizer_step *step = &normalizer->steps[i];
        if (step->kind == NORMALIZER_FORM && is_ascii(*text, *bytes))
            continue; /* ASCII is in every form already */
        str_clear(out);
        if (run_step(step, work, *text, *bytes, out, err) < 0)
            return -1;
        if (out->truncated)
            return error_set(err, ERR_LIMIT,
                             "a text of %zu bytes becomes longer than %zu when "
                             "it is normalized",
                             *bytes, out->cap);
        *text = str_text(out);
        *bytes = out->length;
        out = out == one ? two : one;
    }
    return 0;
}
