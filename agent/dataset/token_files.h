/* From what a user calls a data set to the files of one split and their format. */
#ifndef SHOAL_AGENT_DATASET_TOKEN_FILES_H
#define SHOAL_AGENT_DATASET_TOKEN_FILES_H

#include "agent/dataset/token_dataset.h"
#include "agent/dataset/token_split.h"
#include "base/error.h"
#include "base/mem.h"

struct token_files {
    const char **paths; /* sorted by name; of arrow and megatron: see their headers */
    int count;
    enum token_format format; /* never TOKENS_AUTO */
};

/* Looks for source->dataset as it is, then below root; a directory may have a subdirectory named
 * by source->dataset_config_name, and "data" below that. In a directory of files those whose names
 * have the split's name as a word are taken ("c4-train.00000-of-01024.json.gz"). A file, a glob and
 * a directory where no file's name has any split's name are the split train, or with
 * source->any_split whichever is asked for. Memory from `arena`. Errors as token_source_open. */
int token_files_find(const struct token_dataset *source, const struct token_split *split,
                     struct arena *arena, struct token_files *ret_files, struct error *err);
#endif
