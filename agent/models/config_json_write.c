/* config.json as transformers 4 and 5 read it. */
#include "agent/models/config_json_write.h"

#include "agent/models/architecture.h"
#include "agent/models/config_json.h"
#include "agent/models/families.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers as short as they are exact for people. */
enum { REAL_DIGITS = 15 };

void config_json_set_real(struct json *object, const char *key, double value)
{
    json_set(object, key, json_new_real(value, REAL_DIGITS));
}

void config_json_set_bool(struct json *object, const char *key, bool value)
{
    json_set(object, key, json_new_bool(value));
}

void config_json_set_null(struct json *object, const char *key)
{
    json_set(object, key, json_new_null());
}

void config_json_set_size(struct json *object, const char *key, int64_t value)
{
    json_set(object, key, value ? json_new_integer(value) : json_new_null());
}

/* The special tokens that there are. */
static void set_tokens(struct json *object, const struct architecture *a)
{
    if (a->bos_token_id >= 0)
        json_set_integer(object, "bos_token_id", a->bos_token_id);
    if (a->pad_token_id >= 0)
        json_set_integer(object, "pad_token_id", a->pad_token_id);
    if (a->eos_count == 1)
        json_set_integer(object, "eos_token_id", a->eos_token_ids[0]);
    if (a->eos_count < 2)
        return;
    struct json *list = json_new_array();
    for (int i = 0; i < a->eos_count; i++)
        json_append(list, json_new_integer(a->eos_token_ids[i]));
    json_set(object, "eos_token_id", list);
}

void config_json_set_rope(struct json *parent, const char *key, const struct rope *rope)
{
    if (rope->type == ROPE_DEFAULT) {
        config_json_set_null(parent, key);
        return;
    }
    struct json *object = json_new_object();
    json_set_text(object, "rope_type", rope_type_name(rope->type));
    json_set_text(object, "type", rope_type_name(rope->type)); /* transformers before 4.43 */
    config_json_set_real(object, "factor", rope->factor);
    if (rope->type == ROPE_LLAMA3) {
        config_json_set_real(object, "low_freq_factor", rope->low_freq_factor);
        config_json_set_real(object, "high_freq_factor", rope->high_freq_factor);
        json_set_integer(object, "original_max_position_embeddings", rope->original_max_positions);
    }
    json_set(parent, key, object);
}

static int64_t count_names(const char *list)
{
    int64_t count = list && list[0] ? 1 : 0;
    for (const char *c = list; count && *c; c++)
        count += *c == ',';
    return count;
}

void config_json_set_labels(struct json *object, int64_t count, const char *list)
{
    struct json *names = json_new_object(), *ids = json_new_object();
    const char *rest = count_names(list) == count ? list : NULL;
    for (int64_t i = 0; i < count; i++) {
        char id[24], number[32];
        snprintf(id, sizeof id, "%lld", (long long)i);
        snprintf(number, sizeof number, "LABEL_%lld", (long long)i);
        size_t length = rest ? strcspn(rest, ",") : 0;
        auto_free char *name = rest ? xasprintf("%.*s", (int)length, rest) : xstrdup(number);
        json_set_text(names, id, name);
        json_set_integer(ids, name, i);
        if (rest)
            rest += length + (rest[length] == ',');
    }
    json_set(object, "id2label", names);
    json_set(object, "label2id", ids);
    json_set_text(object, "problem_type", "single_label_classification");
}

/* Keys in their order. Consumes the object. */
static void write(struct json *object, struct str *out)
{
    char *text = json_print(object, JSON_INDENTED | JSON_SORTED);
    str_add(out, text);
    str_add(out, "\n");
    free(text);
    json_free(object);
}

void config_json_write(const struct architecture *architecture, const char *dtype, struct str *out)
{
    struct json *object = json_new_object();
    const struct model_family *family = architecture->family;
    int head = family->get_head ? family->get_head(architecture) : 0;
    json_set_text(object, "model_type", family->name);
    json_set(object, "architectures",
             json_array_of(json_new_text(family->heads[head].classes[0]), NULL));
    family->write(object, architecture);
    set_tokens(object, architecture);
    json_set_text(object, "torch_dtype", dtype);
    write(object, out);
}

void config_json_write_generation(const struct architecture *architecture, struct str *out)
{
    struct json *object = json_new_object();
    set_tokens(object, architecture);
    if (architecture->family->write_generation)
        architecture->family->write_generation(object, architecture);
    write(object, out);
}
