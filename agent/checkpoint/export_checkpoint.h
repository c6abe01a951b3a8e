/* A checkpoint of a language model as a Hugging Face directory, by one process and without the run
 * that saved it. Holds the tensors of one file at a time. */
#ifndef SHOAL_AGENT_CHECKPOINT_EXPORT_CHECKPOINT_H
#define SHOAL_AGENT_CHECKPOINT_EXPORT_CHECKPOINT_H

#include "agent/checkpoint/export.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct export_request {
    const char *checkpoint; /* a checkpoint, or a directory of them: the newest */
    const char *directory;  /* as export_directory() */
    const char *config;     /* the model's config.json; "": the checkpoint's */
    const char *tokenizer;  /* a directory whose files go along; "": the one that the run had, as
                               the checkpoint names, if it is there */
    bool as_saved;          /* dtype is the checkpoint's own */
    enum dtype dtype;       /* else, of what is written */
    int64_t max_file_bytes;
    bool allow_nonfinite; /* NaN and infinity are read and written too */
};

/* *ret_tokenizer: a tokenizer's files went along. Errors: ERR_NOT_FOUND without a checkpoint, a
 * config.json or a tokenizer that is named; those of checkpoint_load() and export_directory(). */
int export_checkpoint(const struct export_request *request, bool *ret_tokenizer, struct error *err);
#endif
