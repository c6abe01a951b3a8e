/* In step k = 0 .. S - 1 rank r exchanges with rank (k - r) mod S, whose partner is then r: each
 * step pairs the ranks off (who is its own partner copies), and all steps meet everyone. Every
 * rank goes through the steps in this order, so no two wait for each other in different steps. */
#include "agent/comm/ring_pairs.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    struct ring *ring; /* NULL: not open */
    char id[96];
    int world_ranks[2];
};

struct ring_pairs {
    struct ring_options options;
    struct pair *pairs;    /* [size], by the other rank */
    pthread_mutex_t mutex; /* guards `ring` of each pair while it is opened, and: */
    char reason[256];      /* why they were aborted; "": they were not */
};

struct ring_pairs *ring_pairs_open(const struct ring_options *options)
{
    struct ring_pairs *p = xcalloc(1, sizeof *p);
    p->options = *options;
    p->pairs = xcalloc((size_t)options->size, sizeof *p->pairs);
    pthread_mutex_init(&p->mutex, NULL);
    return p;
}

void ring_pairs_close(struct ring_pairs *p)
{
    if (!p)
        return;
    for (int r = 0; r < p->options.size; r++)
        ring_close(p->pairs[r].ring);
    pthread_mutex_destroy(&p->mutex);
    free(p->pairs);
    free(p);
}

void ring_pairs_abort(struct ring_pairs *p, const char *reason)
{
    pthread_mutex_lock(&p->mutex);
    snprintf(p->reason, sizeof p->reason, "%s", reason);
    for (int r = 0; r < p->options.size; r++)
        if (p->pairs[r].ring)
            ring_abort(p->pairs[r].ring, reason);
    pthread_mutex_unlock(&p->mutex);
}

/* The smaller rank of the two is the pair's rank 0. */
static int member_of(const struct ring_pairs *p, int other)
{
    return p->options.rank < other ? 0 : 1;
}

static int open_pair(struct ring_pairs *p, int other, struct error *err)
{
    struct pair *pair = &p->pairs[other];
    const struct ring_options *o = &p->options;
    int me = member_of(p, other), low = me == 0 ? o->rank : other;
    int high = me == 0 ? other : o->rank;
    struct ring_options options = *o;
    struct ring *ring;
    snprintf(pair->id, sizeof pair->id, "%s/pair/%d-%d", o->id, low, high);
    pair->world_ranks[0] = o->world_ranks[low];
    pair->world_ranks[1] = o->world_ranks[high];
    options.id = pair->id;
    options.rank = me;
    options.size = 2;
    options.world_ranks = pair->world_ranks;
    if (ring_open(&options, &ring, err))
        return error_wrap(err, "connect with rank %d", o->world_ranks[other]);
    pthread_mutex_lock(&p->mutex);
    pair->ring = ring;
    if (p->reason[0]) /* meanwhile */
        ring_abort(ring, p->reason);
    pthread_mutex_unlock(&p->mutex);
    return 0;
}

int ring_pairs_exchange(struct ring_pairs *p, void *recv, const void *send, int64_t bytes,
                        int64_t stride, const int *places, struct error *err)
{
    int size = p->options.size, rank = p->options.rank;
    for (int step = 0; step < size; step++) {
        int other = (step - rank + size) % size;
        char *to = (char *)recv + other * bytes;
        const char *from = (const char *)send + (places ? places[other] : other) * stride;
        if (other == rank) {
            memcpy(to, from, (size_t)bytes);
            continue;
        }
        if (!p->pairs[other].ring && open_pair(p, other, err))
            return -1;
        const struct ring_pass pass = {.name = "all_to_all",
                                       .data = to,
                                       .send = from,
                                       .total = 2 * bytes,
                                       .element_bytes = 1,
                                       .chunks = 2,
                                       .start = member_of(p, other),
                                       .out_steps = 1,
                                       .in_steps = 1};
        if (ring_run(p->pairs[other].ring, &pass, err))
            return -1;
    }
    return 0;
}
