/* Weights of a Hugging Face directory: model.safetensors, or the files that
 * model.safetensors.index.json names, beside a config.json. Each rank reads only what lies in its
 * slices. Knows parameters and slices; not ranks. */
#ifndef SHOAL_AGENT_CHECKPOINT_PRETRAINED_H
#define SHOAL_AGENT_CHECKPOINT_PRETRAINED_H

#include "agent/models/model.h"
#include "agent/shard/shard.h"
#include "base/error.h"
#include "base/lines.h"

#include <stdbool.h>

/* Whether the directory holds weights, or the index of some: those too that pretrained_open()
 * refuses, PyTorch's pickles and other programs' formats. */
bool pretrained_exists(const char *dir);

struct pretrained;

/* Opens all files of the directory and reads their headers. Errors: ERR_NOT_FOUND if there are no
 * weights; ERR_UNSUPPORTED naming a file of weights that is not read; ERR_INPUT naming the file,
 * and the tensor that is not in it though the index says so. */
int pretrained_open(const char *dir, struct pretrained **ret_pretrained, struct error *err);
void pretrained_close(struct pretrained *pretrained); /* NULL-safe */

/* Finds every parameter of the model. Names may lack their first part ("model.", "transformer.",
 * "bert."), and norms may have gamma and beta. warnings: what a head lacks (module.is_head), and
 * tensors that no parameter wants, but for buffers that old files have; NULL: nobody wants to know.
 * Errors: ERR_INPUT naming the tensor that is missing, or that has another shape or a dtype other
 * than F32, F16 and BF16. */
int pretrained_check(const struct pretrained *pretrained, const struct model *model,
                     struct lines *warnings, struct error *err);

/* Whether the directory has two tensors of these names, with other values in their first million.
 * Errors: ERR_IO. */
int pretrained_tensors_differ(const struct pretrained *pretrained, const char *name,
                              const char *other, bool *ret_differ, struct error *err);

/* Fills this rank's slices, which have their initial values (shard_init_values()), and waits for
 * it. What is there twice (model.ties) must be equal. The model is checked first; errors as
 * pretrained_check(), and ERR_INPUT naming the tensor that has NaN or infinity, unless allowed. */
int pretrained_load(const struct pretrained *pretrained, const struct model *model,
                    struct shard *shard, bool allow_nonfinite, struct error *err);
#endif
