/* What one optimizer of torch.optim is. Adding one takes a file optim_NAME.c that defines
 * optim_NAME, and its row in OPTIM_KINDS; the configuration's choices follow from the row. Knows
 * one flat range of weights; does not know units, slices or ranks. */
#ifndef SHOAL_AGENT_SHARD_OPTIM_KIND_H
#define SHOAL_AGENT_SHARD_OPTIM_KIND_H

#include "agent/nn/module.h"
#include "kernels/device.h"
#include "kernels/dtype.h"
#include "kernels/ops.h"

#include <stdbool.h>
#include <stdint.h>

struct str;

/* X(NAME, SPELLINGS), with AND between two rows. SPELLINGS: what optimizer.name may say, the first
 * of them NAME: "adamw=adamw_torch". optimizer.name is an index into these rows. */
#define OPTIM_KINDS(X, AND)                                                                        \
    X(adadelta, "adadelta")                                                                        \
    AND X(sgd, "sgd") AND X(adam, "adam") AND X(adamw, "adamw=adamw_torch=adamw_torch_fused")

enum { OPTIM_MAX_STATES = 2 };

/* Which fields of struct optim_config an optimizer reads. */
enum optim_use {
    OPTIM_USES_MOMENTUM = 1, /* nesterov, too */
    OPTIM_USES_RHO = 2,
    OPTIM_USES_BETAS = 4,
    OPTIM_USES_EPS = 8,
};

struct optim_config {
    const struct optim_kind *kind;
    float rho;
    float momentum;
    bool nesterov; /* needs momentum > 0 */
    float beta1, beta2;
    float eps;
    float weight_decay;

    /* Whether a parameter's weights decay; NULL: all do. Asked once, by optim_open(). */
    bool (*decays)(void *ctx, const struct param *p);
    void *decays_ctx;

    float grad_clip; /* most that the L2 norm of all gradients may be; 0: not clipped */
    uint64_t seed;   /* of stochastic rounding */
};

/* A flat range of one parameter or several: what one step reads and writes. */
struct optim_range {
    struct stream *stream;
    enum dtype dtype; /* of weights and states */
    void *weights;
    const float *gradient;
    void *states[OPTIM_MAX_STATES]; /* NULL where there is none */
    int64_t count;
    float lr;
    float weight_decay;
    int64_t step;   /* from 1 */
    uint64_t key;   /* of stochastic rounding */
    uint64_t first; /* the first element's place within its parameter */
    struct update_extras extras;
};

struct optim_kind {
    const char *name;                     /* "adamw" */
    const char *states[OPTIM_MAX_STATES]; /* as torch.optim's state_dict names them */
    /* How many of the states these settings keep; NULL: all. */
    int (*state_count)(const struct optim_config *config);
    unsigned uses; /* enum optim_use */
    /* The weight shrinks by lr * weight_decay itself; else weight_decay is an L2 penalty, added to
     * the gradient. */
    bool decoupled;
    double rho, beta1, beta2, eps, weight_decay; /* PyTorch's defaults */
    /* Queues one step of the range. */
    void (*step)(const struct optim_config *config, const struct optim_range *range);
};

#define OPTIM_EXTERN(name, spellings) extern const struct optim_kind optim_##name
OPTIM_KINDS(OPTIM_EXTERN, ;);
#undef OPTIM_EXTERN

/* The row; index: that of optimizer.name. NULL: there are no more. */
const struct optim_kind *optim_kind(int64_t index);

/* For messages, the optimizers that read what `use` says: "adam or adamw". */
void optim_users(enum optim_use use, struct str *out);
/* For the help, how they take weight_decay: "decoupled with adamw; below 0: 0.01 with adamw, else
 * 0". */
void optim_describe_weight_decay(struct str *out);
#endif
