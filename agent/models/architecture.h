/* Which model: a Llama, a GPT-2, a T5 or a BERT with all its sizes, from a name, a config.json or
 * both. */
#ifndef SHOAL_AGENT_MODELS_ARCHITECTURE_H
#define SHOAL_AGENT_MODELS_ARCHITECTURE_H

#include "agent/models/bert.h"
#include "agent/models/gpt2.h"
#include "agent/models/llama.h"
#include "agent/models/t5.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum architecture_kind {
    ARCHITECTURE_LLAMA,
    ARCHITECTURE_GPT2,
    ARCHITECTURE_T5,
    ARCHITECTURE_BERT,
    ARCHITECTURE_KINDS,
};
enum { ARCHITECTURE_MAX_EOS = 4 };

struct architecture {
    enum architecture_kind kind;
    struct llama_config llama;          /* of ARCHITECTURE_LLAMA: Mistral too */
    struct gpt2_config gpt2;            /* of ARCHITECTURE_GPT2 */
    struct t5_config t5;                /* of ARCHITECTURE_T5 */
    struct bert_config bert;            /* of ARCHITECTURE_BERT */
    int64_t bos_token_id, pad_token_id; /* -1: none */
    int64_t eos_token_ids[ARCHITECTURE_MAX_EOS];
    int eos_count;
};

const char *architecture_kind_name(enum architecture_kind kind); /* "llama", "gpt2", .. */

/* The defaults of a kind. */
struct architecture architecture_default(enum architecture_kind kind);

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

#ifdef __cplusplus
}
#endif
#endif
