/* The numbers of a run as Weights & Biases keeps them: a folder that `wandb sync` uploads from
 * where there is a network; nothing is sent from here. What is reported at one step is one row,
 * written when the next step is reported: a process that is killed loses the last one. */
#ifndef SHOAL_AGENT_TELEMETRY_WANDB_H
#define SHOAL_AGENT_TELEMETRY_WANDB_H

#include "agent/telemetry/fields.h"
#include "agent/telemetry/wandb_record.h"
#include "base/error.h"

struct wandb_setting {
    const char *dir; /* where the folder "wandb" is; "": here */
    /* id "": one of the time and the process's number. start_wall_us: set by wandb_open(). */
    struct wandb_run run;
    bool logs_models;       /* a row names the checkpoint that was saved, too */
    enum field_words words; /* WORDS_FABRIC or WORDS_TAGS */
};

struct wandb;

/* Makes DIR/wandb/offline-run-TIME-ID/run-ID.wandb; where there is one of that second, as of a run
 * that was started again at once, TIME is the next one that is free. Errors: of the system. */
int wandb_open(struct wandb **ret_wandb, const struct wandb_setting *setting, int64_t wall_us,
               struct error *err);
/* Adds what the event reports; of an earlier step, to the row at hand. path: of a checkpoint; NULL:
 * none. Errors: of writing. */
int wandb_add_event(struct wandb *wandb, enum field_event event, const char *path,
                    const struct run_state *state, struct error *err);
/* Writes what is left, and how the run ended; what cannot be written is lost. NULL-safe. */
void wandb_close(struct wandb *wandb, int exit_code, const struct run_state *state);
#endif
