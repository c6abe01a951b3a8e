/* Tables of T5's buckets by distance: what a stack's position bias is looked up with. */
#ifndef SHOAL_AGENT_MODELS_T5_BIAS_H
#define SHOAL_AGENT_MODELS_T5_BIAS_H

#include "agent/nn/tape.h"
#include "base/mem.h"

/* Of one stack; zero, but for the first four. */
struct t5_buckets {
    struct arena *arena; /* owns the tables */
    bool bidirectional;
    int64_t buckets, max_distance;
    int32_t *table; /* the largest so far; NULL: none */
    int64_t reach;  /* it covers distances -reach .. reach */
};

/* Device [2 T - 1]: the bucket of distance i - (T - 1), for T tokens; 16-byte aligned. NULL if the
 * tape has failed. */
const int32_t *t5_buckets_get(struct t5_buckets *buckets, struct tape *tape, int64_t T);
#endif
