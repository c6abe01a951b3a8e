/* What the files of the trainer share. Private to agent/trainer*.c. */
#ifndef SHOAL_AGENT_TRAINER_PARTS_H
#define SHOAL_AGENT_TRAINER_PARTS_H

#include "agent/optim.h"
#include "agent/schedule.h"
#include "agent/shard.h"
#include "agent/source.h"
#include "agent/trainer.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct trainer {
    const struct agent_config *config;
    struct trainer_place place;
    const struct trainer_listener *listener;

    struct arena *arena; /* the model and texts */
    struct device *device;
    struct device *home; /* of slices and optimizer state: the device itself, or the host */
    struct stream *compute;
    struct model *model;
    struct shard *shard;
    struct optim *optim;
    struct tape *tape;
    struct schedule schedule;

    struct source *train, *test; /* test: NULL without evaluation */
    bool epoch_ended;            /* train had nothing more in the epoch of `position` */
    const char *data_state;      /* train's, to go on with after a resume; "" else */

    double *sums; /* device double[3]: loss, hits, rows of this rank since they were last set */
    double *flag; /* device double[1]: does any rank want to stop */
    double host_sums[3]; /* sums as of the last sync */

    struct trainer_position position;
    double lr;          /* of the last step */
    int64_t saved_step; /* the step of the last checkpoint; -1: none */
};

/* trainer_resume.c. Both are collective. */
/* Writes a checkpoint of the current position, unless one was written at this very step. */
int trainer_save(struct trainer *t, struct error *err);
/* Loads what the configuration asks for, if anything; else leaves the initial values. */
int trainer_resume(struct trainer *t, struct error *err);

/* *number = the sum of all ranks' numbers. Collective; waits. */
int trainer_sum(struct trainer *t, double *number, struct error *err);
/* Whether it is so on any rank. Collective. */
int trainer_any(struct trainer *t, bool mine, bool *ret_any, struct error *err);

/* Sets the device's sums; ordered before what is queued from now on. */
void trainer_set_sums(struct trainer *t, double loss, double correct, double samples);
/* Waits for all queued work and fetches the sums. */
int trainer_sync(struct trainer *t, struct error *err);
/* Sets the totals of all ranks as rank 0's share, so that going on counts nothing twice. */
void trainer_set_share(struct trainer *t, const double sums[3]);
/* The sums over all ranks since they were last set. Collective; they are then rank 0's share. */
int trainer_total_sums(struct trainer *t, double ret_sums[3], struct error *err);

#ifdef __cplusplus
}
#endif
#endif
