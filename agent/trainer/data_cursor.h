/* Where a run is in its data, and how long it is: the source of batches, the position, and when an
 * epoch and the run are over. Fetches nothing by itself; knows no model and no device. */
#ifndef SHOAL_AGENT_TRAINER_DATA_CURSOR_H
#define SHOAL_AGENT_TRAINER_DATA_CURSOR_H

#include "agent/batches/batch_source.h"
#include "agent/config/config.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Together with the configuration it names the next batch. */
struct data_position {
    int64_t epoch;         /* whole epochs done */
    int64_t epoch_samples; /* samples of all shares done in the current epoch */
    int64_t step;          /* optimizer steps done */
    int64_t micro_batches; /* micro-batches of each share done; names dropout's random numbers */
    bool owes_evaluation;  /* which was due here, and was left out as the run was to stop */
};

struct data_cursor {
    const struct agent_config *config; /* not owned */
    int shares;                        /* that divide an epoch: of ranks, or of reduction slots */
    struct batch_source *train, *test; /* test: NULL without evaluation */
    struct data_position position;
    bool epoch_ended; /* train had nothing more in the epoch of `position` */
    /* train's, to go on with after a resume; NULL: it is at the position. Not owned */
    const char *state;
};

void data_cursor_close(struct data_cursor *cursor); /* the sources */

/* Optimizer steps; 0: not known. */
int64_t data_cursor_epoch_steps(const struct data_cursor *cursor); /* of all the run's epochs */
int64_t data_cursor_steps(const struct data_cursor *cursor);       /* of the whole run */

/* Whether an epoch of so many micro-batches of each rank (below 0: not known) has a step at all.
 * Errors: ERR_CONFIG. */
int data_cursor_check_epoch(const struct data_cursor *cursor, int64_t batches, struct error *err);

/* Where train is at the position, for batch_source_seek(). */
const char *data_cursor_state(const struct data_cursor *cursor);
/* Brings train to the position. */
int data_cursor_begin_epoch(struct data_cursor *cursor, struct error *err);
/* train gave `batches` for the next step: too few of them end the epoch. Errors: so do too few at
 * an epoch's beginning, which would never train. */
int data_cursor_fetched(struct data_cursor *cursor, int64_t batches, struct error *err);
/* To the beginning of the next epoch. */
void data_cursor_next_epoch(struct data_cursor *cursor);

bool data_cursor_epoch_done(const struct data_cursor *cursor);
/* Whether the current epoch has one more step, once so many of the whole run are done. */
bool data_cursor_has_next_step(const struct data_cursor *cursor, int64_t steps);
bool data_cursor_run_done(const struct data_cursor *cursor);
/* Passes over the data, with the part of the current one that is done. */
double data_cursor_epochs(const struct data_cursor *cursor);
#endif
