/* Hugging Face's config.json: reading one into an architecture, and writing one that
 * transformers reads back. This is the edge: behind it nothing knows JSON. */
#ifndef SHOAL_AGENT_MODELS_CONFIG_JSON_H
#define SHOAL_AGENT_MODELS_CONFIG_JSON_H

#include "agent/models/architecture.h"
#include "base/error.h"
#include "base/lines.h"
#include "base/mem.h"
#include "base/str.h"

enum { CONFIG_JSON_MAX_BYTES = 1 << 20 };

/* Reads a config.json of a family that agent/models/families.h lists. Texts go to `arena`. path:
 * for messages. notes: fields that are read but do nothing here; NULL: nobody wants to know.
 * Errors: ERR_CONFIG naming the file, each field that is wrong with its value, and what would be
 * right. */
int config_json_read(struct arena *arena, const char *path, const char *text, size_t bytes,
                     struct architecture *ret_architecture, struct lines *notes, struct error *err);

/* What transformers reads as config.json; dtype: of the weights beside it, "float32". */
void config_json_write(const struct architecture *architecture, const char *dtype, struct str *out);
/* The generation_config.json beside it: the special tokens. */
void config_json_write_generation(const struct architecture *architecture, struct str *out);

/* Adds to `differences` each field in which two texts of config_json_write() are different models:
 * "num_hidden_layers 2 (saved: 3)". What may change from one training to the next does not count:
 * dropout, initial values, special tokens, labels' names, how many positions there are (tensors of
 * that size say for themselves). A field that only one of them has, as an older version writes it,
 * is passed over. */
void config_json_compare(const char *saved, const char *now, struct lines *differences);
#endif
