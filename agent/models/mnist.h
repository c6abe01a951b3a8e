/* The network of PyTorch's MNIST examples and of its FSDP tutorial. */
#ifndef SHOAL_AGENT_MODELS_MNIST_H
#define SHOAL_AGENT_MODELS_MNIST_H

#include "agent/models/model.h"

/* Sizes of the network. Defaults (the FSDP tutorial's): 28x28x1, 32 and 64 channels, 128 hidden. */
struct mnist_shape {
    int64_t height, width, channels1, channels2, hidden, classes;
    float dropout1, dropout2;
};
extern const struct mnist_shape mnist_default_shape;
/* All memory from `arena`. */
struct model *model_mnist_new(struct arena *arena, const struct mnist_shape *shape);
#endif
