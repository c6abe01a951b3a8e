/* A model: its module tree and its forward pass. Knows the tape; does not know ranks, units or
 * files. */
#ifndef SHOAL_AGENT_MODEL_H
#define SHOAL_AGENT_MODEL_H

#include "agent/module.h"
#include "agent/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A batch on the device. */
struct batch {
    float *input;          /* [rows, H, W, C] */
    const int32_t *target; /* [rows] */
    int64_t rows;
};

struct model {
    const char *type; /* "mnist_cnn" */
    struct module *root;
    int64_t input_shape[3]; /* H, W, C of a sample */
    int64_t classes;
    /* Forward, and the loss: sums (device double[3]) += loss, correct, rows; in training the
     * gradient is that of `loss_scale` times the summed loss. Failures stay on the tape. */
    void (*forward)(struct model *model, struct tape *tape, const struct batch *batch,
                    float loss_scale, double *sums);
};

/* Sizes of the MNIST network. Defaults (the FSDP tutorial's): 28x28x1, 32 and 64 channels, 128
 * hidden. */
struct mnist_shape {
    int64_t height, width, channels1, channels2, hidden, classes;
    float dropout1, dropout2;
};
extern const struct mnist_shape mnist_default_shape;
/* All memory from `arena`. */
struct model *model_mnist_new(struct arena *arena, const struct mnist_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
