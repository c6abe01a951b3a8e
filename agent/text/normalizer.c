#include "agent/text/normalizer.h"

#include "agent/text/pattern.h"
#include "agent/text/precompiled.h"
#include "agent/text/spec.h"
#include "agent/text/utf8.h"
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

static int open_replace(const struct spec_component *component, struct normalizer_step *step,
                        struct error *err)
{
    step->kind = NORMALIZER_REPLACE;
    step->content = component->content;
    if (!component->content)
        return error_set(err, ERR_INPUT, "%s.content: must be there", component->where);
    return pattern_open_component(component, &step->pattern, err);
}

static int open_prepend(const struct spec_component *component, struct normalizer_step *step,
                        struct error *err)
{
    if (!component->prepend)
        return error_set(err, ERR_INPUT, "%s.prepend: must be there", component->where);
    *step = (struct normalizer_step){.kind = NORMALIZER_PREPEND, .content = component->prepend};
    return 0;
}

static int open_strip(const struct spec_component *component, struct normalizer_step *step,
                      struct error *err)
{
    (void)err;
    *step = (struct normalizer_step){
        .kind = NORMALIZER_STRIP, .left = component->strip_left, .right = component->strip_right};
    return 0;
}

static int open_bert(const struct spec_component *component, struct normalizer_step *step,
                     struct error *err)
{
    (void)err;
    step->kind = NORMALIZER_BERT;
    step->bert = (struct bert_normalizer){
        .clean_text = component->clean_text,
        .handle_chinese_chars = component->handle_chinese_chars,
        /* Unset means "as lowercase": so Google's uncased models were made. */
        .strip_accents =
            component->strip_accents.set ? component->strip_accents.value : component->lowercase,
        .lowercase = component->lowercase,
    };
    return 0;
}

static int open_lowercase(const struct spec_component *component, struct normalizer_step *step,
                          struct error *err)
{
    (void)component, (void)err;
    *step = (struct normalizer_step){.kind = NORMALIZER_BERT, .bert = {.lowercase = true}};
    return 0;
}

static int open_precompiled(const struct spec_component *component, struct normalizer_step *step,
                            struct error *err)
{
    step->kind = NORMALIZER_PRECOMPILED;
    if (!component->precompiled_charsmap)
        return error_set(err, ERR_INPUT, "%s.precompiled_charsmap: must be there",
                         component->where);
    return precompiled_open_base64(component->precompiled_charsmap, &step->precompiled, err) < 0
               ? error_wrap(err, "%s.precompiled_charsmap", component->where)
               : 0;
}

static int open_step(const struct spec_component *component, struct normalizer_step *step,
                     struct error *err)
{
    static const struct {
        const char *type;
        int (*open)(const struct spec_component *, struct normalizer_step *, struct error *);
    } kinds[] = {
        {"Replace", open_replace},     {"Prepend", open_prepend},
        {"Strip", open_strip},         {"BertNormalizer", open_bert},
        {"Lowercase", open_lowercase}, {"Precompiled", open_precompiled},
    };
    for (size_t i = 0; i < array_length(forms); i++) {
        if (strcmp(component->type, forms[i].type) == 0) {
            step->form = forms[i].options;
            return 0;
        }
    }
    for (size_t i = 0; i < array_length(kinds); i++)
        if (strcmp(component->type, kinds[i].type) == 0)
            return kinds[i].open(component, step, err);
    return error_set(err, ERR_UNSUPPORTED,
                     "%s.type: %.40s is not supported; there are NFC, NFD, NFKC, NFKD, Prepend, "
                     "Replace, Strip, Lowercase, BertNormalizer, Precompiled, Sequence",
                     component->where, component->type);
}

int normalizer_open(const struct spec_component *component, struct normalizer *normalizer,
                    struct error *err)
{
    if (!component->type)
        return 0;
    if (strcmp(component->type, "Sequence") == 0) {
        for (size_t i = 0; i < component->components.count; i++)
            if (normalizer_open(&component->components.items[i], normalizer, err) < 0)
                return -1;
        return 0;
    }
    if (normalizer->count == NORMALIZER_MAX_STEPS)
        return error_set(err, ERR_INPUT, "%s: more than %d normalizers", component->where,
                         NORMALIZER_MAX_STEPS);
    return open_step(component, &normalizer->steps[normalizer->count++], err);
}

void normalizer_close(struct normalizer *normalizer)
{
    for (int i = 0; i < normalizer->count; i++) {
        pattern_close(normalizer->steps[i].pattern);
        precompiled_close(normalizer->steps[i].precompiled);
    }
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

static void run_strip(const struct normalizer_step *step, const char *text, size_t bytes,
                      struct str *out)
{
    uint32_t c;
    size_t begin = 0, length;
    while (step->left && begin < bytes && (length = utf8_decode(text + begin, bytes - begin, &c)) &&
           utf8_is_space(c))
        begin += length;
    while (step->right && bytes > begin &&
           (length = utf8_decode_last(text + begin, bytes - begin, &c)) && utf8_is_space(c))
        bytes -= length;
    str_add_bytes(out, text + begin, bytes - begin);
}

static bool is_ascii(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

static int run_step(const struct normalizer_step *step, struct pattern_workspace *work,
                    const char *text, size_t bytes, struct str *out, struct error *err)
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
    case NORMALIZER_STRIP:
        run_strip(step, text, bytes, out);
        return 0;
    case NORMALIZER_BERT:
        bert_normalize(&step->bert, text, bytes, out);
        return 0;
    case NORMALIZER_PRECOMPILED:
        precompiled_run(step->precompiled, text, bytes, out);
        return 0;
    }
    return 0;
}

int normalizer_run(const struct normalizer *normalizer, struct pattern_workspace *work,
                   struct str *one, struct str *two, const char **text, size_t *bytes,
                   struct error *err)
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
