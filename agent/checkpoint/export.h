/* The whole model by PyTorch's names, in one safetensors file or in a Hugging Face directory: what
 * Hugging Face's and PyTorch's loaders read. Ranks gather one tensor after the other, so no rank
 * ever holds more than one. Knows names and a function that gathers; not the shard engine. */
#ifndef SHOAL_AGENT_CHECKPOINT_EXPORT_H
#define SHOAL_AGENT_CHECKPOINT_EXPORT_H

#include "agent/comm/comm.h"
#include "base/durable.h"
#include "base/error.h"

#include <stdint.h>

enum { EXPORT_MAX_DIMS = 4 };

struct export_tensor {
    const char *name;
    int dims;
    int64_t shape[EXPORT_MAX_DIMS];
};

struct export_model {
    const struct file_ops *files;
    const char *path; /* "mnist_cnn.safetensors", or a directory; those above it are made */
    const struct export_tensor *tensors;
    int count;
    /* Fills values with all of tensors[i], fp32, on every rank. Collective. */
    int (*gather)(void *ctx, int i, float *values, struct error *err);
    void *ctx;
    struct comm *comm;
    struct stream *stream; /* for the collectives; waited for */
    enum dtype dtype;      /* of what is written */
    bool allow_nonfinite;  /* NaN and infinity are written too */
};

/* Whether a file can be put there: the directories above it are made, and can be written to. For
 * one rank, before hours of work. Errors: ERR_EXISTS if it is a directory, and of the system. */
int export_try(const struct file_ops *files, const char *path, struct error *err);

/* Writes the file on rank 0. Collective: all ranks gather in the same order, and succeed or fail
 * together; ERR_DIVERGED names the tensor that has NaN or infinity, unless they are allowed. A file
 * of that name is replaced in one step or, on failure, left as it was; a directory
 * of that name is ERR_EXISTS. What a killed process left of such a file is removed. */
int export_model(const struct export_model *what, struct error *err);

/* A small file beside the weights: config.json, a tokenizer. */
struct export_text {
    const char *name; /* without '/' */
    const void *data;
    size_t bytes;
};

struct export_directory {
    struct export_model model;
    const struct export_text *texts;
    int text_count;
    int64_t max_file_bytes; /* of tensors in one file, or a single larger one; 0: all in one */
};

/* Writes the directory on rank 0: model.safetensors, or model-00001-of-0000N.safetensors with
 * model.safetensors.index.json, and the texts. It appears as a whole by one rename, and so replaces
 * an older export. Collective, as export_model(). Errors: ERR_EXISTS if the directory holds other
 * files than such an export; then nothing is changed. */
int export_directory(const struct export_directory *what, struct error *err);
/* As export_try(), for a directory. */
int export_try_directory(const struct export_directory *what, struct error *err);
#endif
