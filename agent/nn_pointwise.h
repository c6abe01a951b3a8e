/* What works element by element. */
#ifndef SHOAL_AGENT_NN_POINTWISE_H
#define SHOAL_AGENT_NN_POINTWISE_H

#include "agent/module.h"
#include "agent/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x + y, where y was: x is a residual stream, y what a layer adds to it. No op may read y in
 * backward. */
struct tensor *nn_add(struct tape *tape, struct tensor *x, struct tensor *y);
/* silu(gate) * up. x: [..., 2 I], gate before up -> [..., I] (Shazeer 2020). */
struct tensor *nn_swiglu(struct tape *tape, struct tensor *x);
/* Gaussian error linear unit; tanh: its approximation. */
struct tensor *nn_gelu(struct tape *tape, struct tensor *x, bool tanh);

#ifdef __cplusplus
}
#endif
#endif
