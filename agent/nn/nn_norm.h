/* Normalisation over the last dimension. */
#ifndef SHOAL_AGENT_NN_NN_NORM_H
#define SHOAL_AGENT_NN_NN_NORM_H

#include "agent/nn/module.h"
#include "agent/nn/tape.h"

/* weight 1. class_name: "LlamaRMSNorm". */
struct module *nn_rms_norm_new(struct arena *arena, struct module *parent, const char *name,
                               const char *class_name, uint64_t *next_index, int64_t D, double eps);
/* torch.nn.LayerNorm: weight 1, bias 0. */
struct module *nn_layer_norm_new(struct arena *arena, struct module *parent, const char *name,
                                 uint64_t *next_index, int64_t D, double eps);

/* x: [..., D]. eps: as declared. The norm makes a sum that was left to it (nn_add_later). */
struct tensor *nn_rms_norm(struct tape *tape, struct module *m, struct tensor *x, float eps);
struct tensor *nn_layer_norm(struct tape *tape, struct module *m, struct tensor *x, float eps);
/* The norm of nn_add_later(x, y): x is the residual stream, y a layer's output. *ret_sum: the
 * residual stream from then on; NULL: nobody else reads it. */
struct tensor *nn_add_rms_norm(struct tape *tape, struct module *m, struct tensor *x,
                               struct tensor *y, struct tensor **ret_sum, float eps);
struct tensor *nn_add_layer_norm(struct tape *tape, struct module *m, struct tensor *x,
                                 struct tensor *y, struct tensor **ret_sum, float eps);
#endif
