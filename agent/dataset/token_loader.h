/* One rank's batches of windows, made ready ahead of the step by a thread of its own (the source
 * tokenizes with more). Row j of rank r's batch is sample j * W + r of the global batch; all ranks
 * have equally many batches. Which rows they are depends on no thread. */
#ifndef SHOAL_AGENT_DATASET_TOKEN_LOADER_H
#define SHOAL_AGENT_DATASET_TOKEN_LOADER_H

#include "agent/dataset/token_position.h"
#include "agent/dataset/token_source.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { TOKEN_LOADER_MAX_BATCHES = 4096 };
#define TOKEN_LOADER_MAX_BYTES ((int64_t)8 << 30) /* of all batches of a rank */

struct token_loader_options {
    int rank, world_size; /* W */
    int64_t batch_rows;   /* B, of a rank */
    int64_t window;       /* T, the source's */
    int64_t held;         /* batches that are in use at once, >= 1 */
    int64_t ahead;        /* batches that are made ready beyond those, >= 1 */
    double timeout_s;     /* for one batch; 0: none */
    bool drop_last;       /* an epoch's last batch is left out if it is not full on all ranks */
    bool may_be_small;    /* fewer samples than one global batch are no error */
};

struct token_batch {
    const int32_t *ids, *targets; /* [B, T] */
    int64_t rows;                 /* that are samples; the others come last and have no targets */
    int64_t samples;              /* of all ranks */
    int64_t counted;              /* targets that are not ignored */
};

struct token_loader;

/* Takes the source over, also if it fails. Errors: ERR_CONFIG if the buffers would be beyond the
 * caps; ERR_INPUT for an epoch that is known to be smaller than one global batch. */
int token_loader_open(struct token_source *source, const struct token_loader_options *options,
                      struct token_loader **ret_loader, struct error *err);
/* NULL-safe; waits until the text that is being tokenized is done. */
void token_loader_close(struct token_loader *loader);

struct token_source *token_loader_source(struct token_loader *loader); /* its constant facts only */

/* Begins to make ready the epoch's batches, behind its first `samples` of all ranks; batches handed
 * out before are given back. */
int token_loader_start(struct token_loader *loader, int64_t epoch, int64_t samples,
                       struct error *err);
/* The same from a position. */
int token_loader_resume(struct token_loader *loader, const struct token_position *position,
                        struct error *err);

/* Waits for the next batch, which stays valid until token_loader_release; at most `held` may be
 * out. *ret_end: the epoch is over. Errors: what the source has; ERR_TIMEOUT saying what takes so
 * long; ERR_INPUT if the whole epoch is smaller than one global batch. */
int token_loader_next(struct token_loader *loader, struct token_batch *ret_batch, bool *ret_end,
                      struct error *err);
void token_loader_release(struct token_loader *loader); /* all batches that are out */

/* The position behind the batch handed out last, on all ranks the same. */
void token_loader_tell(const struct token_loader *loader, struct token_position *ret_position);
#endif
