/* Which language model: its family and all its sizes, from a name, a config.json or both. */
#ifndef SHOAL_AGENT_MODELS_ARCHITECTURE_H
#define SHOAL_AGENT_MODELS_ARCHITECTURE_H

#include "agent/models/bert.h"
#include "agent/models/gpt2.h"
#include "agent/models/llama.h"
#include "agent/models/t5.h"
#include "base/error.h"

struct model_family; /* agent/models/families.h */

enum { ARCHITECTURE_MAX_EOS = 4 };

struct architecture {
    const struct model_family *family;
    struct llama_config llama; /* of Llama and Mistral */
    struct gpt2_config gpt2;
    struct t5_config t5;
    struct bert_config bert;
    int64_t bos_token_id, pad_token_id; /* -1: none */
    int64_t eos_token_ids[ARCHITECTURE_MAX_EOS];
    int eos_count;
};

/* The defaults of a family. */
struct architecture architecture_default(const struct model_family *family);

/* A model by its name, "llama3_2_1b" or "gpt2": the published sizes. Hugging Face's way to write
 * it, "google-t5/t5-small" or "meta-llama/Meta-Llama-3-8B", is the same name. False if there is
 * none. */
bool architecture_find(const char *name, struct architecture *ret_architecture);
/* The names, for messages: i = 0, 1, ..; NULL behind the last. */
const char *architecture_name(int i);

/* Whether the sizes make a model. Errors: ERR_CONFIG naming the field and its value. */
int architecture_check(const struct architecture *architecture, struct error *err);

/* All memory from `arena`. architecture: passed architecture_check(). */
struct model *architecture_build(struct arena *arena, const struct architecture *architecture);
#endif
