/* A model: its module tree and its forward pass. Knows the tape; does not know ranks, units or
 * files. Each architecture is a file of agent/models/. */
#ifndef SHOAL_AGENT_MODEL_H
#define SHOAL_AGENT_MODEL_H

#include "agent/module.h"
#include "agent/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A batch on the device. Image models read input, language models tokens. */
struct batch {
    int64_t rows;          /* samples: images, or sequences */
    float *input;          /* [rows, H, W, C] */
    const int32_t *tokens; /* [rows, T]: ids below the vocabulary's size */
    const int32_t *target; /* [rows]; language models [rows, T]: the token that follows, below 0
                              where nothing is to be learned */
    int64_t T;             /* tokens of a row; 0 for images */
    float *logits;         /* NULL; or [rows * T, V]: language models in evaluation write all logits
                              there (to draw tokens from), and need no target */
};

/* What a language model is, for plans, FLOPs and data. */
struct language_shape {
    int64_t V;          /* vocabulary */
    int64_t max_tokens; /* the most of a sequence */
    int64_t L, D;
    int64_t heads, kv_heads, hd;
    int64_t I;          /* width of the feed-forward's middle */
    int64_t embeddings; /* parameters that are looked up, not multiplied with (FLOPs) */
    bool tied;          /* the head is the embedding */
};

struct model {
    const char *type; /* "mnist_cnn", "llama", "gpt2" */
    struct module *root;
    int64_t input_shape[3];         /* H, W, C of a sample; 0 for language models */
    int64_t classes;                /* likewise */
    struct language_shape language; /* V is 0 for image models */
    /* Forward, and the loss: sums (device double[3]) += loss, correct, rows (language models:
     * targets that count); in training the gradient is that of `loss_scale` times the summed loss.
     * Failures stay on the tape. */
    void (*forward)(struct model *model, struct tape *tape, const struct batch *batch,
                    float loss_scale, double *sums);
};

#ifdef __cplusplus
}
#endif
#endif
