/* How a family writes the fields of its config.json. */
#ifndef SHOAL_AGENT_MODELS_CONFIG_JSON_WRITE_H
#define SHOAL_AGENT_MODELS_CONFIG_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

struct json;
struct rope;

/* Each sets a field of the object. */
void config_json_set_size(struct json *object, const char *key, int64_t value); /* 0: null */
void config_json_set_real(struct json *object, const char *key, double value);
void config_json_set_bool(struct json *object, const char *key, bool value);
void config_json_set_null(struct json *object, const char *key);
void config_json_set_rope(struct json *object, const char *key, const struct rope *rope);
/* id2label, label2id and problem_type. names: separated by commas; else, if they are not `count`,
 * labels have numbers for names: the data knows what they mean. */
void config_json_set_labels(struct json *object, int64_t count, const char *names);
#endif
