/* What lies beside the weights in a Hugging Face directory, and how a model's parameters are listed
 * for it: alike for a run that ends and for a checkpoint that is exported. */
#ifndef SHOAL_AGENT_CHECKPOINT_EXPORT_TEXTS_H
#define SHOAL_AGENT_CHECKPOINT_EXPORT_TEXTS_H

#include "agent/checkpoint/export.h"
#include "agent/models/architecture.h"
#include "agent/text/tokenizer.h"
#include "base/error.h"
#include "base/mem.h"

enum { EXPORT_TEXTS_MAX = 2 + TOKENIZER_FILES_MAX }; /* the model's two, and a tokenizer's */

struct export_texts {
    struct export_text items[EXPORT_TEXTS_MAX];
    int count;
};

/* Names and shapes. Memory from `arena`. */
struct export_tensor *export_tensors_of(struct arena *arena, struct param *const *params,
                                        int count);

const char *export_dtype_name(enum dtype dtype); /* as config.json has it: "float32" */
/* config.json and generation_config.json. Memory from `arena`. */
void export_texts_add_model(struct export_texts *texts, struct arena *arena,
                            const struct architecture *architecture, enum dtype dtype);
/* A tokenizer's files, under the names by which they are found again (tokenizer_list_files). A path
 * that is not there adds none. Memory from `arena`. */
int export_texts_add_tokenizer(struct export_texts *texts, struct arena *arena, const char *path,
                               struct error *err);
#endif
