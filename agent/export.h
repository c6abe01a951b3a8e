/* The whole model in one safetensors file, by PyTorch's names: what Hugging Face's and PyTorch's
 * loaders read. Ranks gather one tensor after the other, so no rank ever holds more than one. Knows
 * names and a function that gathers; not the shard engine. */
#ifndef SHOAL_AGENT_EXPORT_H
#define SHOAL_AGENT_EXPORT_H

#include "agent/comm.h"
#include "agent/durable.h"
#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EXPORT_MAX_DIMS = 4 };

struct export_tensor {
    const char *name;
    int dims;
    int64_t shape[EXPORT_MAX_DIMS];
};

struct export_model {
    const struct file_ops *files;
    const char *path; /* "mnist_cnn.safetensors"; directories above it are made */
    const struct export_tensor *tensors;
    int count;
    /* Fills values with all of tensors[i], fp32, on every rank. Collective. */
    int (*gather)(void *ctx, int i, float *values, struct error *err);
    void *ctx;
    struct comm *comm;
    struct stream *stream; /* for the collectives; waited for */
};

/* Whether a file can be put there: the directories above it are made, and can be written to. For
 * one rank, before hours of work. Errors: ERR_EXISTS if it is a directory, and of the system. */
int export_try(const struct file_ops *files, const char *path, struct error *err);

/* Writes the file on rank 0. Collective: all ranks gather in the same order, and succeed or fail
 * together. A file of that name is replaced in one step or, on failure, left as it was; a directory
 * of that name is ERR_EXISTS. What a killed process left of such a file is removed. */
int export_model(const struct export_model *what, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
