/* What a job's time went to, piece after piece, in a bounded number of pieces: of more, the
 * shortest goes to a neighbour. An account of time tells how much of each kind there was, not when:
 * what lies between two looks comes in the order of a job's life. What lay before the first look is
 * known as sums alone, and is marked. Pure. */
#ifndef SHOAL_BASE_TIMELINE_H
#define SHOAL_BASE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/page.h"

struct json;

enum { TIMELINE_KINDS_MAX = 16 };

/* The kinds that an account of time has. */
struct timeline_kinds {
    int count;
    const int *order; /* [count]: all of them, as a job and then a process goes through them */
    const char *(*name)(int kind);
};

/* 8 bytes: there may be as many as PAGE_SEGMENTS_MAX of each job. */
struct timeline_piece {
    int64_t until_ms : 56; /* since the beginning */
    uint64_t kind : 7;
    uint64_t summed : 1; /* nobody saw in which order it came, or how often */
};

/* All zero: empty. */
struct timeline {
    struct timeline_piece *pieces; /* [size]; owned; NULL: none yet */
    int count, size;
    int most; /* pieces, at least 3; the owner may change it at any time; 0: PAGE_SEGMENTS_MAX */
    int64_t seen_ms[TIMELINE_KINDS_MAX]; /* of each kind */
};

void timeline_free(struct timeline *timeline); /* also empties */

/* The account as it was found: others saw how it came to that. Once, before what is told. */
void timeline_found(struct timeline *timeline, const struct timeline_kinds *kinds,
                    const int64_t *ms);
/* The account as it is now: ms[kinds->count]. */
void timeline_told(struct timeline *timeline, const struct timeline_kinds *kinds,
                   const int64_t *ms);

/* [{"kind":...,"from":...,"to":...}], in seconds since 1970, from its beginning on, and with
 * "summed":true where that is so; NULL without a piece. */
struct json *timeline_json(const struct timeline *timeline, const struct timeline_kinds *kinds,
                           int64_t begin_ms);
#endif
