/* All a run knows of itself at one moment: its facts, the last numbers, and what follows from all
 * of them so far: totals, rates over the last steps, model FLOPs utilisation, distributions of
 * durations. Every sink writes from this. Pure: time is an argument. */
#ifndef SHOAL_AGENT_TELEMETRY_RUN_STATE_H
#define SHOAL_AGENT_TELEMETRY_RUN_STATE_H

#include "agent/telemetry/run_numbers.h"
#include "agent/telemetry/time_account.h"

enum {
    RATE_STEPS = 20, /* rates are means over so many of the last steps */
    HISTOGRAM_BOUNDS = 14,
};

/* How often a duration was at most a bound. Prometheus' histogram, not yet cumulative. */
struct histogram {
    int64_t counts[HISTOGRAM_BOUNDS + 1]; /* the last: above all bounds */
    int64_t count;
    double sum_s;
};
extern const double histogram_bounds_s[HISTOGRAM_BOUNDS]; /* 1 ms .. 10 min, ascending */
void histogram_add(struct histogram *h, double seconds);

/* The last steps' durations and amounts. */
struct rate_window {
    double seconds[RATE_STEPS];
    int64_t samples[RATE_STEPS], tokens[RATE_STEPS];
    int64_t steps; /* seen */
};

struct run_state {
    struct run_facts facts;
    struct run_numbers last; /* all zero and NaN before the first step */
    struct run_eval eval;    /* the last; loss NaN before the first */

    /* this process's; a resumed run starts at 0 again */
    int64_t steps, samples, tokens;
    double train_s; /* in steps */
    double phase_s[RUN_PHASES];
    struct histogram step_durations, save_durations;
    struct rate_window window;

    double samples_per_s, tokens_per_s, steps_per_s; /* of all ranks; 0: not known */
    double flops_per_s[FLOPS_CONVENTIONS];           /* of all ranks; NaN: not known */
    double utilization[FLOPS_CONVENTIONS];           /* MFU, 0..1; NaN: not known */
    double device_samples_per_s, device_tokens_per_s, device_flops_per_s;
    double perplexity; /* exp(loss) of the last step; NaN: the loss is not of tokens */

    const struct time_account *account; /* of the process's time; NULL: none is kept */
    int64_t process_wall_us;            /* when the process started, and that account begins */
    int64_t start_wall_us;              /* when this state was made: after its initialization */
    int64_t progress_wall_us; /* when the last step, evaluation or save ended; or the start */
    double elapsed_s;         /* from the start to that */
    int64_t saved_wall_us;    /* when the last checkpoint became durable; 0: none in this process */
    double checkpoint_age_s;  /* at progress_wall_us; NaN: none */
    int64_t saved_step, saved_bytes;
    int64_t tried_step; /* of the last save, durable or not */
    int64_t saves, failed_saves;
    int64_t failed_in_a_row; /* since the last that did not */
};

void run_state_init(struct run_state *state, const struct run_facts *facts, int64_t wall_us);
/* Something ended at wall_us. */
void run_state_step(struct run_state *state, const struct run_numbers *numbers, int64_t wall_us);
void run_state_eval(struct run_state *state, const struct run_eval *eval, int64_t wall_us);
void run_state_save(struct run_state *state, const struct run_save *save, int64_t wall_us);
#endif
