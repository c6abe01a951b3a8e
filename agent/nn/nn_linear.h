/* Matrix products: torch.nn.Linear, and GPT-2's Conv1D, whose weight is [in, out]. */
#ifndef SHOAL_AGENT_NN_NN_LINEAR_H
#define SHOAL_AGENT_NN_NN_LINEAR_H

#include "agent/nn/module.h"
#include "agent/nn/tape.h"

/* torch.nn.Linear with its default initial values: bias, and both uniform in +-1/sqrt(fan_in). */
struct module *nn_linear_new(struct arena *arena, struct module *parent, const char *name,
                             uint64_t *next_index, int64_t in, int64_t out);
/* The same with a weight drawn from N(0, stddev), and a bias, if it has one, of 0. */
struct module *nn_linear_normal_new(struct arena *arena, struct module *parent, const char *name,
                                    uint64_t *next_index, int64_t in, int64_t out, bool bias,
                                    float stddev);
/* A tied head: its weight is an embedding's, its bias (if it prints with one) another module's. It
 * has no parameter. */
struct module *nn_linear_tied_new(struct arena *arena, struct module *parent, const char *name,
                                  int64_t in, int64_t out, bool bias);
/* transformers' Conv1D(nf=out, nx=in): weight [in, out] from N(0, stddev), bias 0. */
struct module *nn_conv1d_new(struct arena *arena, struct module *parent, const char *name,
                             uint64_t *next_index, int64_t in, int64_t out, float stddev);

/* x: [..., in] -> [..., out]. relu: max(0, .) fused into the op. */
struct tensor *nn_linear(struct tape *tape, struct module *m, struct tensor *x, bool relu);
struct tensor *nn_conv1d(struct tape *tape, struct module *m, struct tensor *x);
/* down(gelu(up(x))), both as nn_conv1d(). tanh: GELU's approximation. The slope of that is a part
 * of down's backward product, and in a nondeterministic pass its value may be one of up's product
 * (kernels/ops.h): where nothing is made again, else of what was rounded. */
struct tensor *nn_conv1d_mlp(struct tape *tape, struct module *up, struct module *down,
                             struct tensor *x, bool tanh);
/* Several modules' products of one x, side by side: [..., the sum of their outs], a new tensor that
 * errors call `what`. On a GPU they are one product where the weights lie behind each other without
 * biases, as in a unit: then gradients are rounded once where they were added up. */
enum { NN_MOST_LINEARS = 3 };
/* Before that: when they are declared, one after the other. So who gathers them in fp8 knows which
 * are one matrix, which has one scale. */
void nn_linears_join(struct module *const *modules, int count);
struct tensor *nn_linears(struct tape *tape, struct module *const *modules, int count,
                          struct tensor *x, const char *what);
#endif
