/* Values of a config.json, checked as they are read. */
#include "agent/models/config_json_values.h"

#include "agent/models/config_json.h"
#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(struct json_reader *reader, const struct json *value, double low,
                        double high, double *ret_number)
{
    double number = json_as_number(value);
    if (json_is_number(value) && number >= low && number <= high) {
        *ret_number = number;
        return true;
    }
    auto_free char *text = json_print(value, JSON_COMPACT);
    json_problem(reader, "must be a number within %g and %g, not %.40s", low, high, text);
    return false;
}

void config_json_positive(struct json_reader *reader, const struct json *value, void *field)
{
    read_number(reader, value, 1e-30, 1e30, field);
}

void config_json_range(struct json_reader *reader, const struct json *value, void *field)
{
    read_number(reader, value, 0, 1e3, field);
}

void config_json_probability(struct json_reader *reader, const struct json *value, void *field)
{
    read_number(reader, value, 0, 0.999999, field);
}

void config_json_factor(struct json_reader *reader, const struct json *value, void *field)
{
    read_number(reader, value, 1, 1e6, field);
}

/* Old files say -1 for none; torch.nn.Embedding then takes the last token of the vocabulary. */
void config_json_pad(struct json_reader *reader, const struct json *value, void *field)
{
    struct architecture *a = field;
    if (json_read_integer(reader, value, -1, INT32_MAX, &a->pad_token_id) && a->pad_token_id < 0)
        json_note(reader, "-1: no token is padding; to transformers the last one is");
}

/* One id, or a list of them, of which the first few are kept. */
void config_json_eos(struct json_reader *reader, const struct json *value, void *field)
{
    struct architecture *a = field;
    size_t count = json_is_array(value) ? json_array_count(value) : 1;
    if (count > ARCHITECTURE_MAX_EOS) {
        json_problem(reader, "%zu ids: at most %d are supported", count, ARCHITECTURE_MAX_EOS);
        return;
    }
    a->eos_count = 0;
    for (size_t i = 0; i < count; i++)
        if (json_read_integer(reader, json_is_array(value) ? json_at(value, i) : value, 0,
                              INT32_MAX, &a->eos_token_ids[a->eos_count]))
            a->eos_count++;
}

void config_json_rope_type(struct json_reader *reader, const struct json *value, void *field)
{
    struct rope *rope = field;
    const char *name = json_read_text(reader, value);
    if (!name)
        return;
    for (int type = 0; type < ROPE_TYPES; type++)
        if (strcmp(name, rope_type_name(type)) == 0) {
            rope->type = type;
            return;
        }
    json_problem(reader,
                 "unsupported rope type \"%.40s\": default, linear, dynamic and llama3 work", name);
}

void config_json_silu(struct json_reader *reader, const struct json *value, void *field)
{
    (void)field;
    const char *name = json_read_text(reader, value);
    if (name && strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)
        json_problem(reader, "unsupported activation \"%.40s\": silu works", name);
}

void config_json_gelu(struct json_reader *reader, const struct json *value, void *field)
{
    bool *tanh = field;
    const char *name = json_read_text(reader, value);
    if (!name)
        return;
    *tanh = strcmp(name, "gelu") != 0;
    if (*tanh && strcmp(name, "gelu_new") != 0 && strcmp(name, "gelu_pytorch_tanh") != 0)
        json_problem(reader,
                     "unsupported activation \"%.40s\": gelu_new, gelu_pytorch_tanh and gelu work",
                     name);
}

/* A part of something that is only supported as a whole. */
void config_json_one(struct json_reader *reader, const struct json *value, void *field)
{
    (void)field;
    double number;
    if (read_number(reader, value, 0, 1e3, &number) && (number < 1 || number > 1))
        json_problem(reader, "%g is not supported: only 1 is", number);
}

void config_json_true(struct json_reader *reader, const struct json *value, void *field)
{
    (void)field;
    if (!json_is_true(value))
        json_problem(reader, "only true is supported");
}

void config_json_false(struct json_reader *reader, const struct json *value, void *field)
{
    (void)field;
    if (!json_is_false(value))
        json_problem(reader, "only false is supported");
}

bool config_json_read_bool(struct json_reader *reader, const struct json *value, bool *ret_value)
{
    *ret_value = json_is_true(value);
    if (json_is_boolean(value))
        return true;
    json_problem(reader, "must be true or false");
    return false;
}

/* "a,b,c" of {"0": "a", "1": "b", "2": "c"}; NULL if names are missing or have commas. */
static const char *join_labels(struct arena *arena, const struct json *object)
{
    auto_str struct str list;
    str_init(&list, CONFIG_JSON_MAX_BYTES);
    for (size_t i = 0; i < json_object_count(object); i++) {
        char id[24];
        snprintf(id, sizeof id, "%zu", i);
        const char *name = json_as_text(json_get(object, id));
        if (!name || !name[0] || strchr(name, ','))
            return NULL;
        str_printf(&list, "%s%s", i ? "," : "", name);
    }
    return arena_strdup(arena, str_text(&list));
}

void config_json_read_labels(struct json_reader *reader, const struct json *value,
                             int64_t *ret_count, const char **ret_names)
{
    if (!json_is_object(value) || json_object_count(value) == 0)
        json_problem(reader, "must be an object with a name for each label");
    else if (json_object_count(value) > LANGUAGE_MAX_WIDTH)
        json_problem(reader, "more labels than %lld", (long long)LANGUAGE_MAX_WIDTH);
    else {
        *ret_count = (int64_t)json_object_count(value);
        *ret_names = join_labels(reader->arena, value);
    }
}

/* clang-format off */
const struct json_field config_json_rope_fields[] = {
    JSON_CUSTOM("rope_theta", struct rope, theta, config_json_positive),
    JSON_CUSTOM_SAME("rope_type", config_json_rope_type),
    JSON_CUSTOM_SAME("type", config_json_rope_type),
    JSON_CUSTOM("factor", struct rope, factor, config_json_factor),
    JSON_CUSTOM("low_freq_factor", struct rope, low_freq_factor, config_json_positive),
    JSON_CUSTOM("high_freq_factor", struct rope, high_freq_factor, config_json_positive),
    JSON_CUSTOM_SAME("partial_rotary_factor", config_json_one),
    SIZE("original_max_position_embeddings", struct rope, original_max_positions, 1,
         LANGUAGE_MAX_TOKENS),
    JSON_END,
};
/* clang-format on */
