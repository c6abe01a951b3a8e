/* Rows for T5 and BERT, and what the ranks of a world read of them, as text. */
#ifndef SHOAL_TESTS_AGENT_SOURCE_ROWS_H
#define SHOAL_TESTS_AGENT_SOURCE_ROWS_H

#include "agent/batches/batch_source.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SOURCE_ROWS_MASK = 258, /* byte 255, which no text has */
    SOURCE_ROWS = 11,       /* of each data set of source_rows_write() */
    SOURCE_ROWS_MAX = 64,   /* that a world may read */
};

/* A file of a data set, which lie below `root`. */
void source_rows_write_file(const char *root, const char *name, const char *text);
/* "rows", for T5 and to tell classes, and "lines", to find hidden words in. */
void source_rows_write(const char *root);

const struct agent_config *source_rows_configure(struct arena *arena, const char *root,
                                                 const char *flags);

/* One rank's source on its own stream. */
struct source_rows_rank {
    struct device *device;
    struct stream *stream;
    struct model model;
    struct batch_source *source;
};

/* mask: the tokenizer's, or -1. To be closed even if it fails. */
int source_rows_open(const struct agent_config *config, enum model_task task, int rank, int size,
                     int32_t mask, struct source_rows_rank *ret_rank, struct error *err);
void source_rows_close(struct source_rows_rank *rank);

/* What all ranks of a world read. A row is " source=... tokens=... target=...", as far as there
 * are, where '_' is padding, '.' no target, '?' a hidden word, '<' and '>' begin and end. */
struct source_rows_seen {
    char *rows[SOURCE_ROWS_MAX]; /* in the order of the epoch, from where they began */
    int64_t count;
    int64_t targets, labels, tokens;
};

/* Reads an epoch behind its first `samples`, at most `most` batches of each rank; rows with their
 * padding or without. Fails the test if that fails. */
struct source_rows_seen source_rows_read(const struct agent_config *config, enum model_task task,
                                         int size, int64_t epoch, int64_t samples, int64_t most,
                                         bool padded);
void source_rows_free(struct source_rows_seen *seen);

#endif
