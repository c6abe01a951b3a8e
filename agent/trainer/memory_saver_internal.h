/* Memory that outlives the ranks, as the parts of agent/trainer/memory_saver.c share it. Private to
 * these. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_SAVER_INTERNAL_H
#define SHOAL_AGENT_TRAINER_MEMORY_SAVER_INTERNAL_H

#include "agent/trainer/memory_saver.h"

enum { MEMORY_TEXT_BYTES = 16 * 1024 }; /* of checkpoint_state as JSON: its texts are short */

/* A payload: this, then the tensors. */
struct payload {
    struct step_sums sums;
    char state[MEMORY_TEXT_BYTES];
    _Alignas(64) char tensors[];
};

/* `what`, and why. */
void memory_saver_notify(const struct memory_saver *saver, struct error *why, const char *what);
/* Lets go of the mapped memory. What is in it stays. */
void memory_saver_unmap(struct memory_saver *saver);
/* Lays the memory out for the group of buddies that the plan has now: this rank's own snapshots
 * stay. No memory and no error as below. Collective. */
int memory_saver_move(struct memory_saver *saver, struct error *err);
/* Maps the memory and lays the snapshots out. beside: behind those that are cut anew, which stay;
 * in their place if the system refuses that. No memory and no error: the run goes on without.
 * Collective. */
int memory_saver_lay_out(struct memory_saver *saver, bool beside, struct error *err);

/* ---- memory_saver_take.c ---- */

struct memory_snapshots *memory_saver_own(struct memory_saver *saver);
/* Once the memory is laid out. */
int memory_saver_open_beside(struct memory_saver *saver, struct error *err);
/* Waits for the snapshot that is under way on all ranks, then begins this one. Collective. */
int memory_saver_take(struct memory_saver *saver, int64_t step, struct error *err);
/* Sends the snapshot that was found, which stays where it is, to those that are to keep it, and
 * waits until they have it. None is under way. Collective. */
int memory_saver_send_found(struct memory_saver *saver, struct error *err);
/* Whether the one that is under way has failed. Does not wait. */
int memory_saver_look(struct memory_saver *saver, struct error *err);
/* Lets go of what is under way. */
void memory_saver_abandon(struct memory_saver *saver);
#endif
