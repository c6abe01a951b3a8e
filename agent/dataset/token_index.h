/* Samples from documents that are ids already and can be reached in any order: which ids sample i
 * of an epoch has is a pure function of (seed, epoch, i). */
#ifndef SHOAL_AGENT_DATASET_TOKEN_INDEX_H
#define SHOAL_AGENT_DATASET_TOKEN_INDEX_H

#include "agent/dataset/token_reader.h"
#include "agent/dataset/token_source.h"
#include "agent/dataset/token_split.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* What a format has to give. Lengths are checked when it is opened. */
struct id_documents {
    void *ctx;
    int64_t count;
    const char *unit;      /* what a document is called in messages: "row" */
    bool rows_are_windows; /* a document is a whole file: a split's rows are windows of it */
    bool one_window_each;  /* documents are samples already: with TOKENS_CONCAT each is a window */
    int64_t (*length)(const void *ctx, int64_t document);
    /* Copies `count` ids of a document from `first` on, and their labels (NULL: labels are the
     * ids). What is beyond int32 becomes its largest or smallest number. */
    int (*read)(const void *ctx, int64_t document, int64_t first, int64_t count, int32_t *ids,
                int32_t *labels, struct error *err);
    bool has_labels;
    /* The file that a document is in and its number there, for errors. */
    const char *(*locate)(const void *ctx, int64_t document, int64_t *ret_number);
    void (*close)(void *ctx);
};

/* Takes the documents over, also if it fails. `pad`: the id behind a document's end in a window
 * that is not full. Errors: ERR_NOT_FOUND if the split has no window, ERR_CONFIG if there is no
 * such packing. */
int token_index_open(const struct id_documents *documents, const struct token_options *options,
                     const struct token_split *split, const char *name, int32_t pad,
                     struct token_reader **ret_reader, struct error *err);
#endif
