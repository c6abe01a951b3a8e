/* How far this rank is in its sequence of collectives: of all communicators together, as all ranks
 * call the same ones. What carries collectives out writes it, any thread reads it. */
#ifndef SHOAL_AGENT_COMM_COLLECTIVE_PROGRESS_H
#define SHOAL_AGENT_COMM_COLLECTIVE_PROGRESS_H

#include <pthread.h>
#include <stdint.h>

enum { COLLECTIVE_OP_BYTES = 24, COLLECTIVE_UNIT_BYTES = 48 };

struct collective_state {
    uint64_t entered, ended; /* so far; entered > ended: the rank is in one */
    /* Of the last one entered. "": none yet; a unit is whose tensors it moves, "": of none. */
    char op[COLLECTIVE_OP_BYTES], unit[COLLECTIVE_UNIT_BYTES];
};

struct collective_progress {
    pthread_mutex_t mutex; /* guards the state */
    struct collective_state state;
};

void collective_progress_init(struct collective_progress *progress);
void collective_progress_destroy(struct collective_progress *progress);

/* progress NULL: nobody reads it. unit NULL: none. Both texts are copied. */
void collective_progress_enter(struct collective_progress *progress, const char *op,
                               const char *unit);
void collective_progress_end(struct collective_progress *progress, uint64_t count);

struct collective_state collective_progress_read(struct collective_progress *progress);
#endif
