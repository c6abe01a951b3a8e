/* A checkpoint of a language model as a Hugging Face directory, by one process and without the run
 * that saved it. Holds the tensors of one file at a time. */
#ifndef SHOAL_AGENT_EXPORT_CHECKPOINT_H
#define SHOAL_AGENT_EXPORT_CHECKPOINT_H

#include "agent/checkpoint/export.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct export_request {
    const char *checkpoint; /* a checkpoint, or a directory of them: the newest */
    const char *directory;  /* as export_directory() */
    const char *config;     /* the model's config.json; "": the checkpoint's */
    const char *tokenizer;  /* a directory whose files go along; "": the one that the run had, as
                               the checkpoint tells, if it is there */
    enum export_dtype dtype;
    int64_t max_file_bytes;
};

/* Errors: ERR_NOT_FOUND without a checkpoint, a config.json or a tokenizer that is named; those of
 * checkpoint_load() and export_directory(). */
int export_checkpoint(const struct export_request *request, struct error *err);

/* Adds a tokenizer's files to texts[0 .. *count), which has room for EXPORT_TOKENIZER_FILES more:
 * what a directory has of them, or the one file that the path is, under the name by which it is
 * found again. A path that is not there adds none. Memory from `arena`. */
enum { EXPORT_TOKENIZER_FILES = 8 };
int export_add_tokenizer(struct arena *arena, const char *path, struct export_text *texts,
                         int *count, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
