/* Data sets that Hugging Face's save_to_disk wrote: per split a directory with state.json, which
 * names the .arrow files. A row is a sample: input_ids, labels (not shifted) and maybe an
 * attention_mask, whose zeros, at the row's end only, are no targets. */
#ifndef SHOAL_AGENT_DATASET_ARROW_FOLDER_H
#define SHOAL_AGENT_DATASET_ARROW_FOLDER_H

#include "agent/dataset/token_index.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdbool.h>

/* Whether the directory is one saved split. */
bool arrow_folder_is(const char *directory);

/* The .arrow files of a saved split, in the order of the rows. Memory from `arena`. Errors:
 * ERR_INPUT for a state.json that is damaged or names files elsewhere, ERR_UNSUPPORTED for one
 * with indices beside the rows. */
int arrow_folder_list(const char *directory, struct arena *arena, const char ***ret_paths,
                      int *ret_count, struct error *err);

/* Maps and checks the files. The paths must outlive the documents, which are the rows. */
int arrow_folder_open(const char *const *paths, int count, struct id_documents *ret_documents,
                      struct error *err);
#endif
