/* Elementwise layers. */
#ifndef SHOAL_AGENT_NN_NN_POINTWISE_H
#define SHOAL_AGENT_NN_NN_POINTWISE_H

#include "agent/nn/module.h"
#include "agent/nn/tape.h"

/* x + y, in y's memory: x is the residual stream, y a layer's output. No op may read y
 * in backward. */
struct tensor *nn_add(struct tape *tape, struct tensor *x, struct tensor *y);
/* The same sum with the same bits, made by the norm that reads it first: a pass over the memory
 * less. No other op may read it before; x stays until then. What nobody reads is never added. */
struct tensor *nn_add_later(struct tape *tape, struct tensor *x, struct tensor *y);
/* silu(gate) * up. x: [..., 2 I], gate before up -> [..., I] (Shazeer 2020). */
struct tensor *nn_swiglu(struct tape *tape, struct tensor *x);
/* gelu(gate) * up, likewise, with the approximation by a tanh. */
struct tensor *nn_geglu(struct tape *tape, struct tensor *x);
/* Gaussian error linear unit; tanh: its approximation. */
struct tensor *nn_gelu(struct tape *tape, struct tensor *x, bool tanh);
struct tensor *nn_tanh(struct tape *tape, struct tensor *x);
/* a * x, in x's memory. No op may read x in backward. */
struct tensor *nn_scale(struct tape *tape, struct tensor *x, float a);
/* The first token of each sequence: x: [B, T, D] -> [B, D]. D is even. */
struct tensor *nn_first_token(struct tape *tape, struct tensor *x);
#endif
