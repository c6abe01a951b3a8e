/* The door to telemetry: the training loop reports what happened, and it goes wherever the
 * configuration says: lines on standard output, CSV, JSONL, TensorBoard, a record for W&B, HTTP.
 * Every rank opens one: rank 0 prints and writes files, the first rank of each node serves HTTP,
 * the others only count. All calls come from the loop's thread. Reporting never fails: a file that
 * cannot be written any more is logged once, and training goes on. */
#ifndef SHOAL_AGENT_TELEMETRY_TELEMETRY_H
#define SHOAL_AGENT_TELEMETRY_TELEMETRY_H

#include "agent/telemetry/gpu_hardware.h"
#include "agent/telemetry/gpu_metrics.h"
#include "agent/telemetry/log_lines.h"
#include "agent/telemetry/page_past.h"
#include "agent/telemetry/run_numbers.h"
#include "agent/telemetry/run_state.h"
#include "agent/telemetry/trainjob_status.h"
#include "agent/telemetry/wandb.h"
#include "base/error.h"

#include <stdio.h>

struct telemetry_setting {
    struct run_facts facts;
    struct log_setting lines; /* STYLE_FABRIC gives the files that trainer's names too */
    FILE *out;                /* where lines go */
    /* Files; "": none. */
    const char *csv, *jsonl;
    const char *tensorboard_dir;
    const struct wandb_setting *wandb; /* NULL: none; not kept */
    /* Somebody asked for it, not a preset alone: the run does not begin without. */
    bool needs_tensorboard, needs_wandb;
    const char *http_host; /* see serving_host(); NULL: not served */
    int http_port;         /* 0: likewise */
    bool http_port_moves;  /* where it is in use the next free one will do: nobody relies on it */
    /* The GPUs' metrics on the same page; place.driver is not read. */
    bool gpu_metrics;
    enum gpu_names gpu_names;
    struct gpu_labels gpu_labels;
    double gpu_interval_s;
    const struct time_account *account;      /* of this process; NULL: none is kept */
    bool watches_hardware;                   /* looks for bad GPUs, be they shown or not */
    struct trainjob_status_setting trainjob; /* rank 0's; url NULL: none */
    const char *termination_log;             /* likewise (termination_log.h); NULL: none */
    /* Who else is told what is written there, as often; NULL: nobody. Rank 0's, too. */
    void (*tell)(void *context, const char *numbers);
    void *tell_context;
    struct page_keeper page;  /* of what the live page shows of the time; its note is not kept */
    double healthy_within_s;  /* /healthz fails when nothing ended for so long: more than the first
                                 step, an evaluation or a save may take */
    int64_t (*wall_us)(void); /* since 1970 */
    int64_t (*steady_us)(void); /* monotonic */
};

struct telemetry;

/* Opens the files and the port. A port that is in use and may not move is a warning, as is a file
 * that only a preset asks for and that cannot be made: training matters more. Errors: another file
 * that cannot be opened, or has other columns. */
int telemetry_open(struct telemetry **ret_telemetry, const struct telemetry_setting *setting,
                   struct error *err);
/* The run ends by a failure, with that code and for this reason. */
void telemetry_failed(struct telemetry *telemetry, int exit_code, const char *why);
/* Tells the end (not that of a run that failed before its first step), writes what is left.
 * NULL-safe. */
void telemetry_close(struct telemetry *telemetry);

/* What has lines of its own only: everything but the three below. moment->wall_us is not read. */
void telemetry_event(struct telemetry *telemetry, const struct run_moment *moment);

/* After each optimizer step, evaluation and save (a failed one too). */
void telemetry_step(struct telemetry *telemetry, const struct run_numbers *numbers);
void telemetry_eval(struct telemetry *telemetry, const struct run_eval *eval);
void telemetry_checkpoint(struct telemetry *telemetry, const struct run_save *save);

/* What rank 0 knows of all ranks. Copies. From any thread, also while the loop stands still. */
struct telemetry_health {
    const char *ranks_json;   /* an array, an object for each */
    int hung, straggling;     /* so many ranks */
    int hung_rank, hung_node; /* who hangs, and its pod's node rank; -1: nobody */
    const char *last_hang;    /* TRAINING_LAST_HANG's object (contract.h); "": none so far */
};
void telemetry_health(struct telemetry *telemetry, const struct telemetry_health *health);

/* Whether a GPU of this node is bad, and why; "last": the run has failed, and what GPUs report now
 * is waited for. Only where the setting says so. */
bool telemetry_bad_hardware(struct telemetry *telemetry, bool last, char ret_sign[GPU_SIGN_BYTES]);

/* The port it serves at; 0: none. */
int telemetry_port(const struct telemetry *telemetry);

/* Where people of this machine see it; "": nowhere. */
enum { TELEMETRY_URL_BYTES = 128 };
void telemetry_url(const struct telemetry *telemetry, char ret_url[TELEMETRY_URL_BYTES]);
#endif
