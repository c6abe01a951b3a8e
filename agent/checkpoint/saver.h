/* Saves checkpoints beside the training: the trainer hands over a snapshot in host memory and goes
 * on; a thread writes it, over a communicator and a stream of its own. One save at a time. Knows
 * checkpoints; not what is in them. */
#ifndef SHOAL_AGENT_CHECKPOINT_SAVER_H
#define SHOAL_AGENT_CHECKPOINT_SAVER_H

#include "agent/checkpoint/checkpoint.h"
#include "agent/comm/comm.h"
#include "base/error.h"

#include <stdbool.h>

struct saver;

/* Collective. world: used until saver_close(), not owned. */
int saver_open(struct comm *world, struct saver **ret_saver, struct error *err);
void saver_close(struct saver *saver); /* NULL-safe; waits for the save that runs */

/* Starts checkpoint_save() with all of `save` but comm and stream, which are the saver's; what it
 * points to must stay as it is until saver_finish(). None may be running. Every rank does so at the
 * same step. Errors: no thread is to be had. */
int saver_start(struct saver *saver, const struct checkpoint_save *save, struct error *err);

/* Whether a save was started that saver_finish() has not been called for; *ret_ended: it would not
 * wait. */
bool saver_is_running(struct saver *saver, bool *ret_ended);

/* Waits for the save that runs, and returns what checkpoint_save() did. */
int saver_finish(struct saver *saver, int64_t *ret_bytes, struct error *err);
#endif
