/* Samples for language models: from a path or a known name to one global sequence of windows of T
 * token ids. The sequence depends on the files, the options and the epoch only, never on how many
 * ranks or threads read it: rank r of W takes the samples r, r + W, ... and skips the others, which
 * costs nothing for files of ids and the tokenizing for streams of text.
 *
 *   format    a row is      a sample's targets
 *   jsonl     a line        streams of text (plain or gzip). concat: the T - 1 ids that follow
 *   text      a paragraph   within the window; per_document, none: the document's next ids
 *   llmc      a window      .bin of ids (llm.c): all T, a window shares its last id with the next
 *   megatron  a sequence    .bin/.idx of ids: concat as llmc, else the sequence's next ids
 *   arrow     a row         save_to_disk folder: column labels shifted by one, within the row
 *
 * Streams are shuffled in blocks of shuffle_buffer rows, and their files among each other; files of
 * ids as a whole. Knows files, not models, ranks or devices. One thread at a time uses a source. */
#ifndef SHOAL_AGENT_DATASET_TOKEN_SOURCE_H
#define SHOAL_AGENT_DATASET_TOKEN_SOURCE_H

#include "agent/dataset/token_dataset.h"
#include "agent/dataset/token_position.h"
#include "agent/text/tokens.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOKENS_IGNORED = -100,              /* a target that is not counted */
    TOKENS_MAX_FILES = 65536,           /* of one split */
    TOKENS_MAX_WINDOW = 1 << 24,        /* ids */
    TOKENS_MAX_WINDOWS = 1 << 30,       /* of shuffled files of ids: 8 bytes of memory each */
    TOKENS_MAX_BLOCK_BYTES = 256 << 20, /* a shuffle block ends early when it is this large */
    TOKENS_MAX_BUFFER = 1 << 20,        /* shuffle_buffer */
    TOKENS_DEFAULT_BUFFER = 1000,
    TOKENS_MAX_THREADS = 256,
    TOKENS_BAD_LINES_FREE = 10,      /* so many bad lines of an epoch are forgiven anyway ... */
    TOKENS_BAD_LINES_PERCENT = 1,    /* ... and so many of a hundred after that, ... */
    TOKENS_BAD_LINES_SAMPLE = 10000, /* ... counted as of so many lines while there are fewer */
    TOKENS_BAD_LINES_KEPT = 10,      /* are named, the others counted */
};

/* A tokenizer, as this room sees it. Must outlive the source. */
struct token_encoder {
    void *ctx;
    /* Adds the ids of the text, none in front or behind. Called by several threads at once. */
    int (*encode)(void *ctx, const char *text, size_t bytes, struct tokens *ids, struct error *err);
    int32_t bos, eos, pad, unk, mask; /* -1: it has none */
    int32_t vocabulary;               /* its highest id + 1 */
    bool adds_bos, adds_eos; /* what "auto" means; concat always ends a document with eos */
};

struct token_options {
    struct token_dataset source; /* the columns but text_column are not read here */
    /* "train", "validation", "train[:1000]", "train[90%:]": N rows or P percent of them. "valid",
     * "val", "dev", "test" and "eval" are tried for one another, the given one first. */
    const char *split;
    int64_t max_rows; /* at most so many rows of the split; 0: all */
    int64_t window;   /* T */
    bool shuffle;
    uint64_t seed;
    bool strict;                  /* the first bad line is an error */
    int64_t vocab_size;           /* ids must be below; 0: not checked */
    int threads;                  /* that tokenize beside the caller's; 0: none */
    struct token_encoder encoder; /* used for text only; encode NULL: there is none */
};

struct token_bad_lines {
    int64_t bad, lines; /* as the position has them, behind all that was read, ahead too */
    int kept;
    char why[TOKENS_BAD_LINES_KEPT][sizeof((struct error *)0)->msg]; /* of different lines */
};

struct token_source;

/* Finds, opens and checks the files; the source stands at epoch 0's first sample. The options'
 * strings must outlive it. Errors: ERR_NOT_FOUND for a data set or split that is not there, listing
 * what was tried; ERR_NOT_FOUND for one without a window, where the source knows it without reading
 * all; ERR_CONFIG for options out of range, or that do not go with the format; ERR_INPUT naming
 * file and place for damaged files; ERR_UNSUPPORTED for formats that are known but not read. */
int token_source_open(const struct token_options *options, struct token_source **ret_source,
                      struct error *err);
void token_source_close(struct token_source *source); /* NULL-safe */

enum token_format token_source_format(const struct token_source *source);
/* Samples per epoch; -1: not known (streams). */
int64_t token_source_samples(const struct token_source *source);
/* A name for people: the split's files, "FILE" or "FIRST and N more". */
const char *token_source_name(const struct token_source *source);

/* Goes before the epoch's first sample. */
int token_source_set_epoch(struct token_source *source, int64_t epoch, struct error *err);

/* The next sample: ids and targets [T] each. ids[i] within the vocabulary; targets[t] is the id
 * that follows ids[t] or TOKENS_IGNORED; a window that is not full ends with eos (or 0) as ids and
 * ignored targets. Both NULL: the sample is skipped. *ret_end: the epoch is over, nothing written.
 * Errors name file and line (or row): ERR_INPUT; ERR_NOT_FOUND for a stream without a window. */
int token_source_next(struct token_source *source, int32_t *ids, int32_t *targets, bool *ret_end,
                      struct error *err);

/* Skips `count` samples; *ret_skipped is less only at the epoch's end. */
int token_source_skip(struct token_source *source, int64_t count, int64_t *ret_skipped,
                      struct error *err);

/* Where the source stands: valid for any world size and number of threads. */
void token_source_tell(const struct token_source *source, struct token_position *ret_position);

/* Goes there. Errors: ERR_INPUT if the position is of other files or options, and what
 * token_source_next has. */
int token_source_seek(struct token_source *source, const struct token_position *position,
                      struct error *err);

/* The lines that were left out. May be called from another thread, as token_source_activity. */
void token_source_bad_lines(struct token_source *source, struct token_bad_lines *ret_lines);

/* What the source is doing, for messages about a stall: "tokenizing FILE:LINE". */
void token_source_activity(struct token_source *source, char *out, size_t out_bytes);
#endif
