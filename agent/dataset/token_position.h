/* A position in a sequence of samples: what a checkpoint remembers of the data. */
#ifndef SHOAL_AGENT_DATASET_TOKEN_POSITION_H
#define SHOAL_AGENT_DATASET_TOKEN_POSITION_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { TOKEN_POSITION_MAX_BYTES = 1024 }; /* of its text */

struct token_position {
    int64_t epoch;
    int64_t sample; /* samples of the epoch before this position */
    /* Streams only: the shuffle block that the next window's first id is in ... */
    int64_t block;  /* blocks of the epoch before it */
    int64_t file;   /* where it begins: index in the epoch's order of files, */
    int64_t offset; /* bytes (of a .gz: unpacked) */
    int64_t line;   /* and lines of that file before it */
    int64_t row;    /* rows of the epoch before it */
    /* ... and where in it. */
    int64_t document; /* index in the block's shuffled order */
    int64_t token;    /* ids of that document that were used */
    /* Counters since the start of the run. */
    int64_t documents;    /* documents taken */
    int64_t tokens;       /* ids handed out or skipped */
    int64_t bad_lines;    /* lines left out */
    int64_t lines;        /* rows taken, bad ones too */
    uint64_t fingerprint; /* of the files and options that the position is in */
};

/* As one line of JSON. The caller frees. */
char *token_position_print(const struct token_position *position);

/* Errors: ERR_INPUT naming the field that is missing or wrong. `name` is for errors. */
int token_position_parse(const char *name, const char *text, size_t bytes,
                         struct token_position *ret_position, struct error *err);
#endif
