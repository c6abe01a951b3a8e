/* Fields that the families' config.json have in common: custom readers, which check a value, and
 * rows for their tables of base/json_read.h. */
#ifndef SHOAL_AGENT_MODELS_CONFIG_JSON_VALUES_H
#define SHOAL_AGENT_MODELS_CONFIG_JSON_VALUES_H

#include "agent/models/architecture.h"
#include "agent/models/language.h"
#include "base/json_read.h"

/* For JSON_CUSTOM; field: a double, a bool, or what the name says. */
void config_json_positive(struct json_reader *reader, const struct json *value, void *field);
void config_json_range(struct json_reader *reader, const struct json *value, void *field);
void config_json_probability(struct json_reader *reader, const struct json *value, void *field);
void config_json_factor(struct json_reader *reader, const struct json *value, void *field);
void config_json_pad(struct json_reader *reader, const struct json *value, void *field);
void config_json_eos(struct json_reader *reader, const struct json *value, void *field);
void config_json_rope_type(struct json_reader *reader, const struct json *value, void *field);
void config_json_silu(struct json_reader *reader, const struct json *value, void *field);
void config_json_gelu(struct json_reader *reader, const struct json *value, void *field);
void config_json_one(struct json_reader *reader, const struct json *value, void *field);
void config_json_true(struct json_reader *reader, const struct json *value, void *field);
void config_json_false(struct json_reader *reader, const struct json *value, void *field);

/* For custom readers. False, and a problem, if the value is no boolean. */
bool config_json_read_bool(struct json_reader *reader, const struct json *value, bool *ret_value);
/* id2label: how many names, and the names in their order, separated by commas (NULL if some are
 * missing or have commas). */
void config_json_read_labels(struct json_reader *reader, const struct json *value,
                             int64_t *ret_count, const char **ret_names);

extern const struct json_field config_json_rope_fields[]; /* of rope_scaling: struct rope */

/* clang-format off */
#define SIZE(key, out, field, least, most) \
    {.name = key, .kind = JSON_KIND_INTEGER, .offset = offsetof(out, field), \
     .second = JSON_NO_OFFSET, .low = least, .high = most}

/* In every config.json. */
#define COMMON_FIELDS \
    JSON_KNOWN("architectures"), JSON_KNOWN("model_type"), JSON_KNOWN("transformers_version"), \
    JSON_KNOWN("torch_dtype"), JSON_KNOWN("dtype"), JSON_KNOWN("use_cache"), \
    JSON_KNOWN("_name_or_path"), JSON_KNOWN("task_specific_params"), \
    SIZE("bos_token_id", struct architecture, bos_token_id, 0, INT32_MAX), \
    JSON_CUSTOM_SAME("pad_token_id", config_json_pad), \
    JSON_CUSTOM_SAME("eos_token_id", config_json_eos)
/* clang-format on */
#endif
