/* What training adds up on the device: loss, hits and rows of this rank, and of all ranks. With a
 * step's totals travels what the ranks must agree on between two steps, so that it costs no
 * collective of its own. Knows no model, data or clock. */
#ifndef SHOAL_AGENT_TRAINER_STEP_TOTALS_H
#define SHOAL_AGENT_TRAINER_STEP_TOTALS_H

#include "agent/comm/comm.h"
#include "agent/models/model.h"
#include "agent/shard/shard.h"
#include "base/error.h"
#include "kernels/device.h"

#include <stdbool.h>

/* The totals of a step: the model's sums, then how many ranks want to stop, and on how many a save
 * has ended. Last come the targets and labels that the ranks have fetched for the next step; NaN if
 * one of them has not fetched. */
enum { TOTAL_STOP = MODEL_MAX_SUMS, TOTAL_SAVED, TOTAL_TARGETS, TOTAL_LABELS, TOTALS };

/* What goes to and from the device at every step, in memory it can copy beside the host. */
struct step_numbers {
    double sums[MODEL_MAX_SUMS];  /* the device's, as of the last fetch */
    double totals[TOTALS];        /* likewise */
    double mine[TOTALS];          /* this rank's part, from TOTAL_STOP on, as last sent */
    double first[MODEL_MAX_SUMS]; /* the device's, with reduction slots */
    double number;                /* step_totals_sum()'s */
};

struct step_totals {
    struct device *device; /* these four are not owned */
    struct stream *stream;
    struct comm *world;
    struct shard *shard;
    double *sums;   /* device double[MODEL_MAX_SUMS], of this rank since they were last set: loss,
                       hits, rows; of MODEL_PRETRAINING the step's labels, too. The model adds to
                       it */
    double *totals; /* device double[TOTALS], of all ranks; of language models */
    double *number; /* device double[1] */
    bool has_slots; /* the two below are used: */
    double *part;   /* device double[MODEL_MAX_SUMS], of one micro-batch */
    double *first;  /* likewise, of this step and the rank's first slot; and as many behind them */
    struct step_numbers *host;
};

/* With reduction slots: before a step, and before and after each of its micro-batches, which adds
 * to totals->part. Its sums are added to totals->sums in a way that depends on no order, or
 * forgotten; is_first: to totals->first as well. */
void step_totals_begin_step(struct step_totals *totals);
void step_totals_begin_part(struct step_totals *totals);
void step_totals_add_part(struct step_totals *totals, bool is_first);

/* Allocates; the sums are not set yet. After an error step_totals_close() is due all the same. */
int step_totals_open(struct step_totals *totals, struct device *device, struct stream *stream,
                     struct comm *world, struct shard *shard, bool has_slots, struct error *err);
void step_totals_close(struct step_totals *totals); /* also one that is all zero */

/* Sets the device's sums, ordered before what is queued from now on, and the host's totals. */
void step_totals_set(struct step_totals *totals, double loss, double correct, double samples);
/* Sets the totals of all ranks as rank 0's share, so that going on counts nothing twice. */
void step_totals_set_share(struct step_totals *totals, const double sums[3]);

/* The sums as they stand on one rank between two steps; and back, bit by bit. */
struct step_sums {
    double sums[MODEL_MAX_SUMS], totals[MODEL_MAX_SUMS];
};
void step_totals_keep(const struct step_totals *totals, struct step_sums *ret_sums);
void step_totals_restore(struct step_totals *totals, const struct step_sums *sums);

/* Waits for all queued work, but for an update beside the next pass, and fetches the sums. */
int step_totals_fetch(struct step_totals *totals, struct error *err);
/* The sums over all ranks since they were last set; they are then rank 0's share. Collective;
 * waits. */
int step_totals_reduce(struct step_totals *totals, double ret_sums[3], struct error *err);

/* *number = the sum of all ranks' numbers. Collective; waits. */
int step_totals_sum(struct step_totals *totals, double *number, struct error *err);
/* Whether it is so on any rank. Collective; waits. */
int step_totals_any(struct step_totals *totals, bool mine, bool *ret_any, struct error *err);

/* What a rank sends the others with a step's sums. */
struct step_votes {
    bool stop;      /* it was asked to stop */
    bool saved;     /* its part of the save has ended */
    double targets; /* that it has fetched for the next step; NaN: nothing yet */
    double labels;  /* likewise, of MODEL_PRETRAINING */
};
/* Queues the sums of all ranks, with their votes, to host->totals. has_labels: MODEL_PRETRAINING.
 * Collective; step_totals_fetch() waits for it. */
void step_totals_queue(struct step_totals *totals, const struct step_votes *votes, bool has_labels);

/* x as the device's op exact_add (kernels/ops.h) adds it, to the nearest whole number of 2^-20:
 * sums of such numbers below 2^33 depend on no order. */
double step_totals_part(double x);

/* MODEL_PRETRAINING: makes the sums of labels a part of the tokens' loss, so that it is one sum as
 * any other's: their mean weighs as much as that of `tokens` targets, of all ranks. all: the sums
 * of all ranks; sums: those to change. */
void step_totals_fold_labels(double sums[MODEL_MAX_SUMS], const double all[MODEL_MAX_SUMS],
                             double tokens);
/* The same for a step that was fetched, on host and device. before: host->totals before it. */
void step_totals_fold_step(struct step_totals *totals, const double before[TOTALS]);
#endif
