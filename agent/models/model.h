/* A model: its module tree and its forward pass. Knows the tape; does not know ranks, units or
 * files. Each architecture is a file of agent/models/. */
#ifndef SHOAL_AGENT_MODELS_MODEL_H
#define SHOAL_AGENT_MODELS_MODEL_H

#include "agent/nn/module.h"
#include "agent/nn/tape.h"

enum { MODEL_MAX_SUMS = 6 };

/* What a model learns, so what it reads of a batch. X(TASK, HEAD), with AND between two rows; HEAD:
 * what model.head says. */
#define MODEL_TASKS(X, AND)                                                                        \
    X(MODEL_NEXT_TOKEN, "causal_lm")       /* tokens, target: Llama, GPT-2 */                      \
    AND X(MODEL_TRANSLATION, "seq2seq_lm") /* source, source_counts, tokens, target: T5 */         \
        AND                                                                                        \
        X(MODEL_MASKED, "masked_lm") /* tokens, token_counts, token_types, target */               \
        AND                                                                                        \
        X(MODEL_PRETRAINING,                                                                       \
          "pretraining") /* likewise, and labels: 0 where the second sentence is the next */       \
        AND                                                                                        \
        X(MODEL_CLASSES,                                                                           \
          "sequence_classification") /* tokens, token_counts, token_types, labels */               \
        AND                                                                                        \
        X(MODEL_IMAGES, "image_classification") /* input, target */
enum model_task {
#define MODEL_TASK(task, head) task
#define COMMA                  ,
    MODEL_TASKS(MODEL_TASK, COMMA)
#undef COMMA
#undef MODEL_TASK
};
const char *model_task_name(enum model_task task); /* "causal_lm" */

/* A batch on the device. Ids are below the vocabulary's size. Padding is behind what a row has,
 * never before it: any valid id. What a task does not read is 0 and NULL. */
struct batch {
    int64_t rows;          /* samples: images, or sequences */
    void *input;           /* images: [rows, H, W, C], of the tape's dtype */
    const int32_t *tokens; /* [rows, T]. MODEL_TRANSLATION: what the decoder reads, the labels
                              shifted right (model_shift_right) */
    const int32_t *target; /* images: [rows]; else [rows, T]: the token to predict at this place,
                              below 0 where nothing is to be learned. Which token that is, the next
                              one or the one behind a mask, is up to the data */
    int64_t T;             /* tokens of a row; 0 for images */
    const int32_t *token_counts; /* [rows], 1 .. T: how many tokens of the row are no padding; NULL:
                                    all. The others are seen by none */
    const int32_t *token_types;  /* [rows, T], below the model's token_types: which sentence; NULL:
                                    all 0 */
    const int32_t *source;       /* [rows, T_source]: what the encoder reads */
    int64_t T_source;
    const int32_t *source_counts; /* [rows], 1 .. T_source, as token_counts, or NULL */
    const int32_t *labels; /* [rows]: the row's class, below the model's `classes`; below 0: none to
                              be learned */
    float label_scale;     /* MODEL_PRETRAINING, in training: loss_scale for labels */
    float *logits; /* NULL; or [rows * T, V] (MODEL_CLASSES: [rows, classes]): language models in
                      evaluation write all logits there (to draw tokens from), and need no target */
    float *label_logits; /* MODEL_PRETRAINING with logits: [rows, 2], or NULL */
};

/* What the decoder of a MODEL_TRANSLATION reads of labels [rows, T]: each row one to the right
 * behind start_id, its last label dropped, pad_id for labels below 0. Host memory; may not
 * overlap. */
void model_shift_right(int32_t *ret_tokens, const int32_t *labels, int64_t rows, int64_t T,
                       int32_t start_id, int32_t pad_id);

/* A language model's sizes, for plans, FLOPs and data. */
struct language_shape {
    int64_t V;          /* vocabulary */
    int64_t max_tokens; /* the most of a sequence */
    int64_t L, D;
    int64_t L_decoder;   /* MODEL_TRANSLATION: blocks of the decoder, L being the encoder's */
    int64_t token_types; /* BERT: kinds of sentences; else 0 */
    int32_t start_id;    /* MODEL_TRANSLATION: what the decoder begins with */
    int32_t pad_id;      /* likewise, and BERT: the tokenizer's padding */
    int64_t heads, kv_heads, hd;
    int64_t I;          /* width of the feed-forward's middle */
    bool gated;         /* the feed-forward has a gate */
    bool sees_all;      /* each token sees all others of its sequence; else those before it */
    int64_t embeddings; /* parameters that are looked up, not multiplied with (FLOPs); or with one
                           token of a row */
    int64_t target_parameters; /* MODEL_TRANSLATION: multiplied with what the decoder reads; the
                                  others with what the encoder does */
    bool tied;                 /* the head is the embedding */
    /* What else decides the kernels of a step, for plans of its time. */
    bool biases;           /* of linear layers and norms */
    bool rope;             /* queries and keys are rotated; else: */
    bool positions;        /* learned ones are added; */
    bool distance_bias;    /* or scores have a bias of the distance */
    bool post_norm;        /* norms are behind the residuals */
    bool packed_qkv;       /* one matrix gives queries, keys and values */
    bool gelu_in_products; /* the feed-forward is nn_conv1d_mlp(), with GELU's tanh form */
    bool dropout;          /* in training */
};

/* Another name of a parameter, under which files of weights may have it, too: tied weights. */
struct model_tie {
    const char *name;
    const struct param *param;
};
enum { MODEL_MAX_TIES = 3 };

struct model {
    const char *type; /* "mnist_cnn", "llama", "gpt2", "t5", "bert" */
    enum model_task task;
    struct module *root;
    int64_t input_shape[3]; /* H, W, C of a sample; 0 for language models */
    int64_t sample_count; /* image models: activations of a sample at an evaluation's worst moment;
                             in training there are as many gradients beside them */
    double sample_flops;  /* image models: forward's of a sample */
    int64_t pass_kernels; /* image models: of a forward and a backward pass */
    int64_t classes;      /* images, and labels of MODEL_PRETRAINING and _CLASSES */
    const char *label_names;        /* of MODEL_CLASSES, separated by commas; NULL: none */
    struct language_shape language; /* V is 0 for image models */
    struct model_tie ties[MODEL_MAX_TIES];
    int tie_count;
    /* Forward, and the loss: sums (device double[3]) += loss, correct, rows (language models:
     * targets that count; MODEL_CLASSES: labels); MODEL_PRETRAINING, whose loss is the sum of two
     * means, adds the labels' three numbers behind them (double[6]). In training the gradient is
     * that of `loss_scale` times the summed loss. Failures stay on the tape. */
    void (*forward)(struct model *model, struct tape *tape, const struct batch *batch,
                    float loss_scale, double *sums);
};
#endif
