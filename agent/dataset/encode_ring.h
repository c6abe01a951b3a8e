/* Texts that several threads tokenize at once, given out in the order they were put in: what comes
 * out does not depend on how many threads there are. One thread puts in and takes out. */
#ifndef SHOAL_AGENT_DATASET_ENCODE_RING_H
#define SHOAL_AGENT_DATASET_ENCODE_RING_H

#include "agent/dataset/token_position.h"
#include "agent/dataset/token_source.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ENCODE_RING_PER_THREAD = 8,         /* texts that are ahead */
    ENCODE_RING_KEEP_BYTES = 256 << 10, /* buffers that grew beyond are not kept */
};

/* A text on its way. Its buffers are used again for later ones. */
struct encode_job {
    char *text; /* [bytes] */
    size_t bytes, capacity;
    const char *path; /* where it is from: the owner must keep it */
    int64_t line;
    bool too_long;
    struct token_position position;
    struct tokens ids; /* the result, */
    bool bad;          /* or err says why the text is left out, */
    bool failed;       /* or why the reading ends */
    struct error err;
    bool done; /* guarded by the ring's lock */
};

/* Fills ids, or bad or failed and err, from the rest; ids is empty before. On any thread. */
typedef void (*encode_function)(void *ctx, struct encode_job *job);

struct encode_ring;

/* threads 0: the texts are encoded when they are taken. */
int encode_ring_open(int threads, encode_function encode, void *ctx, struct encode_ring **ret_ring,
                     struct error *err);
void encode_ring_close(struct encode_ring *ring); /* NULL-safe; waits for what is being encoded */

/* The next job to fill, or NULL: all are in use. */
struct encode_job *encode_ring_free(struct encode_ring *ring);
/* Copies a text into it. */
void encode_job_set_text(struct encode_job *job, const char *text, size_t bytes);
/* Puts in the job that encode_ring_free gave last. */
void encode_ring_submit(struct encode_ring *ring);

/* The oldest job, or NULL: there is none. It may not be done. */
struct encode_job *encode_ring_oldest(struct encode_ring *ring);
/* Waits until the oldest job is done. */
void encode_ring_wait(struct encode_ring *ring);
void encode_ring_release(struct encode_ring *ring); /* the oldest job, which is done */

/* Drops all jobs; waits for those being encoded. */
void encode_ring_clear(struct encode_ring *ring);
#endif
