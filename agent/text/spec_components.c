#include "agent/text/spec_components.h"

#include "agent/text/vocab.h"
#include "base/json.h"
#include "base/mem.h"

#include <string.h>

const char *spec_location(struct json_reader *reader)
{
    return arena_strdup(reader->arena, reader->path[0] == '.' ? reader->path + 1 : reader->path);
}

void spec_report_missing(struct json_reader *reader, const char *name)
{
    size_t depth = json_enter(reader, ".%s", name);
    if (!json_has_problem(reader))
        json_problem(reader, "must be there");
    json_leave(reader, depth);
}

/* ---- templates: what is put around a text ---- */

/* An entry of special_tokens: {"id": NAME, "ids": [...], "tokens": [...]}. */
struct special {
    const char *name;
    int32_t ids[SPEC_MAX_TEMPLATE_IDS];
    size_t count;
};

struct specials {
    struct special *items;
    size_t count;
};

static void read_ids(struct json_reader *reader, const struct json *value, void *out)
{
    struct special *special = out;
    if (!json_is_array_here(reader, value))
        return;
    if (json_array_count(value) > SPEC_MAX_TEMPLATE_IDS) {
        json_problem(reader, "%zu ids; at most %d", json_array_count(value), SPEC_MAX_TEMPLATE_IDS);
        return;
    }
    for (size_t i = 0; i < json_array_count(value); i++) {
        size_t depth = json_enter(reader, "[%zu]", i);
        int64_t id = 0;
        json_read_integer(reader, json_at(value, i), 0, VOCAB_MAX_IDS - 1, &id);
        special->ids[special->count++] = (int32_t)id;
        json_leave(reader, depth);
    }
}

static const struct json_field special_fields[] = {
    JSON_CUSTOM_SAME("ids", read_ids),
    JSON_KNOWN("id"),
    JSON_KNOWN("tokens"),
    JSON_END,
};

static void read_specials(struct json_reader *reader, const struct json *value, void *out)
{
    struct specials *specials = out;
    if (!json_is_object_here(reader, value))
        return;
    specials->items = arena_array(reader->arena, struct special, json_object_count(value));
    struct json *entry;
    json_each_member(entry, value) {
        const char *name = json_key(entry);
        size_t depth = json_enter(reader, "[%s]", name);
        struct special *special = &specials->items[specials->count++];
        special->name = arena_strdup(reader->arena, name);
        if (json_is_object_here(reader, entry))
            json_read(reader, entry, special_fields, special);
        json_leave(reader, depth);
    }
}

/* A step of a template: {"SpecialToken": {"id": NAME}} or {"Sequence": {"id": "A"}}. */
struct name {
    const char *id;
};
struct step {
    struct name special, sequence;
};

static const struct json_field name_fields[] = {
    JSON_TEXT("id", struct name, id),
    JSON_KNOWN("type_id"),
    JSON_END,
};

static const struct json_field step_fields[] = {
    JSON_PART("SpecialToken", struct step, special, name_fields),
    JSON_PART("Sequence", struct step, sequence, name_fields),
    JSON_END,
};

struct steps {
    struct step *items;
    size_t count;
};

static void add_around(struct json_reader *reader, struct spec_template *around, bool after,
                       const int32_t *ids, size_t count)
{
    size_t *have = after ? &around->after_count : &around->before_count;
    if (*have + count > SPEC_MAX_TEMPLATE_IDS) {
        json_problem(reader, "more than %d ids on one side of a text", SPEC_MAX_TEMPLATE_IDS);
        return;
    }
    memcpy((after ? around->after : around->before) + *have, ids, count * sizeof *ids);
    *have += count;
}

static void add_special(struct json_reader *reader, struct spec_template *around, bool after,
                        const struct specials *specials, const char *name)
{
    for (size_t i = 0; i < specials->count; i++) {
        if (strcmp(specials->items[i].name, name) == 0) {
            add_around(reader, around, after, specials->items[i].ids, specials->items[i].count);
            return;
        }
    }
    json_problem(reader, "%.80s is not among its special_tokens", name);
}

static void make_template(struct json_reader *reader, struct spec_component *component,
                          const struct steps *steps, const struct specials *specials)
{
    int texts = 0;
    component->around = arena_new(reader->arena, struct spec_template);
    for (size_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->items[i];
        if (step->special.id)
            add_special(reader, component->around, texts > 0, specials, step->special.id);
        else
            texts++;
    }
    if (texts != 1)
        json_problem(reader, "single: the text must be in it once, not %d times", texts);
}

/* ["</s>", 2] of RobertaProcessing and BertProcessing. */
static void read_token_and_id(struct json_reader *reader, const struct json *value, void *out)
{
    int64_t *id = out;
    if (!json_is_array_here(reader, value))
        return;
    if (json_array_count(value) != 2)
        json_problem(reader, "must be [TOKEN, ID]");
    else
        json_read_integer(reader, json_at(value, 1), 0, VOCAB_MAX_IDS - 1, id);
}

/* ---- components ---- */

/* What is read on top of the component itself. */
struct component_form {
    struct spec_component component;
    struct steps single;
    struct specials specials;
    int64_t cls, sep; /* -1: not there */
};

static void read_components(struct json_reader *reader, const struct json *value, void *out)
{
    struct spec_components *components = out;
    int nesting = 0;
    for (const char *c = reader->path; *c; c++)
        nesting += *c == '[';
    if (!json_is_array_here(reader, value))
        return;
    if (nesting >= SPEC_MAX_NESTING) {
        json_problem(reader, "nested deeper than %d levels", SPEC_MAX_NESTING);
        return;
    }
    components->count = json_array_count(value);
    components->items = arena_array(reader->arena, struct spec_component, components->count);
    for (size_t i = 0; i < components->count; i++) {
        size_t depth = json_enter(reader, "[%zu]", i);
        spec_read_component(reader, json_at(value, i), &components->items[i]);
        json_leave(reader, depth);
    }
}

static const struct json_field pattern_fields[] = {
    JSON_TEXT("String", struct spec_component, pattern.text),
    JSON_TEXT("Regex", struct spec_component, pattern.expression),
    JSON_END,
};

/* {"String": ...}, {"Regex": ...}; some decoders have a plain text there. */
static void read_pattern(struct json_reader *reader, const struct json *value, void *out)
{
    struct spec_component *component = &((struct component_form *)out)->component;
    if (json_is_string(value))
        component->pattern.text = json_read_text(reader, value);
    else if (json_is_object_here(reader, value))
        json_read(reader, value, pattern_fields, component);
}

/* The old way to say prepend_scheme. */
static void read_add_prefix_space(struct json_reader *reader, const struct json *value, void *out)
{
    struct spec_component *component = &((struct component_form *)out)->component;
    if (!json_is_boolean(value)) {
        json_problem(reader, "must be true or false");
        return;
    }
    component->add_prefix_space = json_is_true(value);
    if (!component->prepend_scheme)
        component->prepend_scheme = component->add_prefix_space ? "always" : "never";
}

void spec_read_option(struct json_reader *reader, const struct json *value, void *option)
{
    if (!json_is_boolean(value))
        json_problem(reader, "must be true or false");
    *(struct spec_option *)option = (struct spec_option){true, json_is_true(value)};
}

static const struct json_field component_fields[] = {
    JSON_TEXT("type", struct component_form, component.type),
    JSON_CUSTOM("normalizers", struct component_form, component.components, read_components),
    JSON_CUSTOM("pretokenizers", struct component_form, component.components, read_components),
    JSON_CUSTOM("processors", struct component_form, component.components, read_components),
    JSON_CUSTOM("decoders", struct component_form, component.components, read_components),
    JSON_CUSTOM_SAME("pattern", read_pattern),
    JSON_TEXT("content", struct component_form, component.content),
    JSON_TEXT("behavior", struct component_form, component.behavior),
    JSON_TEXT("replacement", struct component_form, component.replacement),
    JSON_TEXT("prepend", struct component_form, component.prepend),
    JSON_TEXT("prepend_scheme", struct component_form, component.prepend_scheme),
    JSON_BOOL("invert", struct component_form, component.invert),
    JSON_CUSTOM_SAME("add_prefix_space", read_add_prefix_space),
    JSON_BOOL("use_regex", struct component_form, component.use_regex),
    JSON_BOOL("split", struct component_form, component.split),
    JSON_BOOL("individual_digits", struct component_form, component.individual_digits),
    JSON_TEXT("prefix", struct component_form, component.prefix),
    JSON_TEXT("precompiled_charsmap", struct component_form, component.precompiled_charsmap),
    JSON_BOOL("clean_text", struct component_form, component.clean_text),
    JSON_BOOL("handle_chinese_chars", struct component_form, component.handle_chinese_chars),
    JSON_CUSTOM("strip_accents", struct component_form, component.strip_accents, spec_read_option),
    JSON_BOOL("lowercase", struct component_form, component.lowercase),
    JSON_BOOL("strip_left", struct component_form, component.strip_left),
    JSON_BOOL("strip_right", struct component_form, component.strip_right),
    JSON_BOOL("cleanup", struct component_form, component.cleanup),
    {.name = "start",
     .kind = JSON_KIND_INTEGER,
     .offset = offsetof(struct component_form, component.start),
     .second = JSON_NO_OFFSET,
     .high = INT32_MAX},
    {.name = "stop",
     .kind = JSON_KIND_INTEGER,
     .offset = offsetof(struct component_form, component.stop),
     .second = JSON_NO_OFFSET,
     .high = INT32_MAX},
    {.name = "single",
     .kind = JSON_KIND_ARRAY,
     .offset = offsetof(struct component_form, single.items),
     .second = offsetof(struct component_form, single.count),
     .fields = step_fields,
     .element_bytes = sizeof(struct step)},
    JSON_CUSTOM("special_tokens", struct component_form, specials, read_specials),
    JSON_CUSTOM("cls", struct component_form, cls, read_token_and_id),
    JSON_CUSTOM("sep", struct component_form, sep, read_token_and_id),
    JSON_END,
};

void spec_read_component(struct json_reader *reader, const struct json *value, void *out)
{
    struct component_form form = {
        /* The defaults of tokenizers' own readers, which hold where a file says nothing. */
        .component = {.add_prefix_space = true,
                      .use_regex = true,
                      .split = true,
                      .clean_text = true,
                      .handle_chinese_chars = true,
                      .lowercase = true,
                      .strip_left = true,
                      .strip_right = true,
                      .cleanup = true},
        .cls = -1,
        .sep = -1,
    };
    struct spec_component *component = &form.component;
    if (!json_is_object_here(reader, value))
        return;
    json_read(reader, value, component_fields, &form);
    component->where = spec_location(reader);
    if (!component->type)
        spec_report_missing(reader, "type");
    else if (strcmp(component->type, "TemplateProcessing") == 0)
        make_template(reader, component, &form.single, &form.specials);
    if (form.cls >= 0 && form.sep >= 0) {
        component->around = arena_new(reader->arena, struct spec_template);
        add_around(reader, component->around, false, &(int32_t){(int32_t)form.cls}, 1);
        add_around(reader, component->around, true, &(int32_t){(int32_t)form.sep}, 1);
    }
    *(struct spec_component *)out = *component;
}

/* ---- added tokens ---- */

static const struct json_field added_fields[] = {
    {.name = "id",
     .kind = JSON_KIND_INTEGER,
     .offset = offsetof(struct spec_added, id),
     .second = JSON_NO_OFFSET,
     .high = VOCAB_MAX_IDS - 1},
    JSON_TEXT("content", struct spec_added, content),
    JSON_BOOL("special", struct spec_added, special),
    JSON_BOOL("single_word", struct spec_added, single_word),
    JSON_BOOL("lstrip", struct spec_added, lstrip),
    JSON_BOOL("rstrip", struct spec_added, rstrip),
    JSON_BOOL("normalized", struct spec_added, normalized),
    JSON_END,
};

void spec_read_added(struct json_reader *reader, const struct json *value, struct spec_added *added)
{
    *added = (struct spec_added){.where = spec_location(reader), .id = -1};
    if (json_is_string(value)) {
        added->content = json_read_text(reader, value);
        return;
    }
    if (!json_is_object_here(reader, value))
        return;
    json_read(reader, value, added_fields, added);
    if (!added->content)
        spec_report_missing(reader, "content");
}
