/* What the readers of config.json share: values that are checked as they are read, and the tables
 * of fields. Private to config_json*.c. */
#ifndef SHOAL_AGENT_MODELS_CONFIG_JSON_PARTS_H
#define SHOAL_AGENT_MODELS_CONFIG_JSON_PARTS_H

#include "agent/models/architecture.h"
#include "agent/models/language.h"
#include "base/json_read.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a struct architecture; each kind's. */
extern const struct json_field config_json_llama[];
extern const struct json_field config_json_gpt2[];
extern const struct json_field config_json_t5[];
extern const struct json_field config_json_bert[];

/* Custom readers; field: a double, a bool, or what the name says. */
void config_json_positive(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_range(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_probability(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_factor(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_pad(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_eos(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_rope_type(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_silu(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_gelu(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_one(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_true(struct json_reader *reader, const struct json_t *value, void *field);
void config_json_false(struct json_reader *reader, const struct json_t *value, void *field);

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

#ifdef __cplusplus
}
#endif
#endif
