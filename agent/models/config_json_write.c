/* config.json as transformers 4 and 5 read it. */
#include "agent/models/config_json.h"

#include "agent/models/config_json_parts.h"
#include "agent/models/families.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void config_json_set_integer(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

void config_json_set_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, json_real(value));
}

void config_json_set_text(json_t *object, const char *key, const char *value)
{
    json_object_set_new(object, key, json_string(value));
}

void config_json_set_bool(json_t *object, const char *key, bool value)
{
    json_object_set_new(object, key, json_boolean(value));
}

void config_json_set_null(json_t *object, const char *key)
{
    json_object_set_new(object, key, json_null());
}

void config_json_set_size(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, value ? json_integer(value) : json_null());
}

/* The special tokens that there are. */
static void set_tokens(json_t *object, const struct architecture *a)
{
    if (a->bos_token_id >= 0)
        config_json_set_integer(object, "bos_token_id", a->bos_token_id);
    if (a->pad_token_id >= 0)
        config_json_set_integer(object, "pad_token_id", a->pad_token_id);
    json_t *list = json_array();
    for (int i = 0; i < a->eos_count; i++)
        json_array_append_new(list, json_integer(a->eos_token_ids[i]));
    if (a->eos_count > 1)
        json_object_set(object, "eos_token_id", list);
    else if (a->eos_count == 1)
        config_json_set_integer(object, "eos_token_id", a->eos_token_ids[0]);
    json_decref(list);
}

void config_json_set_rope(json_t *parent, const char *key, const struct rope *rope)
{
    if (rope->type == ROPE_DEFAULT) {
        config_json_set_null(parent, key);
        return;
    }
    json_t *object = json_object();
    config_json_set_text(object, "rope_type", rope_type_name(rope->type));
    config_json_set_text(object, "type", rope_type_name(rope->type)); /* transformers before 4.43 */
    config_json_set_real(object, "factor", rope->factor);
    if (rope->type == ROPE_LLAMA3) {
        config_json_set_real(object, "low_freq_factor", rope->low_freq_factor);
        config_json_set_real(object, "high_freq_factor", rope->high_freq_factor);
        config_json_set_integer(object, "original_max_position_embeddings",
                                rope->original_max_positions);
    }
    json_object_set_new(parent, key, object);
}

static int64_t count_names(const char *list)
{
    int64_t count = list && list[0] ? 1 : 0;
    for (const char *c = list; count && *c; c++)
        count += *c == ',';
    return count;
}

void config_json_set_labels(json_t *object, int64_t count, const char *list)
{
    json_t *names = json_object(), *ids = json_object();
    const char *rest = count_names(list) == count ? list : NULL;
    for (int64_t i = 0; i < count; i++) {
        char id[24], number[32];
        snprintf(id, sizeof id, "%lld", (long long)i);
        snprintf(number, sizeof number, "LABEL_%lld", (long long)i);
        size_t length = rest ? strcspn(rest, ",") : 0;
        auto_free char *name = rest ? xasprintf("%.*s", (int)length, rest) : xstrdup(number);
        config_json_set_text(names, id, name);
        config_json_set_integer(ids, name, i);
        if (rest)
            rest += length + (rest[length] == ',');
    }
    json_object_set_new(object, "id2label", names);
    json_object_set_new(object, "label2id", ids);
    config_json_set_text(object, "problem_type", "single_label_classification");
}

/* Keys in their order, numbers as short as they are exact for people. Consumes the object. */
static void write(json_t *object, struct str *out)
{
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15));
    str_add(out, text);
    str_add(out, "\n");
    free(text);
    json_decref(object);
}

void config_json_write(const struct architecture *architecture, const char *dtype, struct str *out)
{
    json_t *object = json_object();
    const struct model_family *family = architecture->family;
    int head = family->get_head ? family->get_head(architecture) : 0;
    config_json_set_text(object, "model_type", family->name);
    json_object_set_new(object, "architectures", json_pack("[s]", family->heads[head].classes[0]));
    family->write(object, architecture);
    set_tokens(object, architecture);
    config_json_set_text(object, "torch_dtype", dtype);
    write(object, out);
}

void config_json_write_generation(const struct architecture *architecture, struct str *out)
{
    json_t *object = json_object();
    set_tokens(object, architecture);
    if (architecture->family->write_generation)
        architecture->family->write_generation(object, architecture);
    write(object, out);
}
