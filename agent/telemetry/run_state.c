#include "agent/telemetry/run_state.h"

#include "agent/telemetry/flops.h"

#include <math.h>

const double histogram_bounds_s[HISTOGRAM_BOUNDS] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1,
                                                     2,     5,     10,   30,   60,  120, 600};

void histogram_add(struct histogram *h, double seconds)
{
    int i = 0;
    while (i < HISTOGRAM_BOUNDS && seconds > histogram_bounds_s[i])
        i++;
    h->counts[i]++;
    h->count++;
    h->sum_s += seconds;
}

void run_state_init(struct run_state *s, const struct run_facts *facts, int64_t wall_us)
{
    /* NaN is "not known": such a field is left out, where 0 would be drawn as a value. */
    const double unknown = (double)NAN;
    *s = (struct run_state){
        .facts = *facts,
        .last = {.loss = unknown, .grad_norm = unknown, .lr = unknown, .next_lr = unknown},
        .eval = {.loss = unknown, .perplexity = unknown, .accuracy = unknown},
        .perplexity = unknown,
        .checkpoint_age_s = unknown,
        .start_wall_us = wall_us,
        .process_wall_us = wall_us,
        .progress_wall_us = wall_us,
    };
    for (int c = 0; c < FLOPS_CONVENTIONS; c++)
        s->flops_per_s[c] = s->utilization[c] = unknown;
    s->device_flops_per_s = unknown;
}

/* Something ended: the times that follow from it. */
static void move_on(struct run_state *s, int64_t wall_us)
{
    s->progress_wall_us = wall_us;
    s->elapsed_s = (double)(wall_us - s->start_wall_us) / 1e6;
    if (s->saved_wall_us > 0)
        s->checkpoint_age_s = (double)(wall_us - s->saved_wall_us) / 1e6;
}

static void add_to_window(struct rate_window *w, const struct run_numbers *n)
{
    int64_t i = w->steps++ % RATE_STEPS;
    w->seconds[i] = n->step_s;
    w->samples[i] = n->samples;
    w->tokens[i] = n->tokens;
}

static void derive_rates(struct run_state *s)
{
    const struct rate_window *w = &s->window;
    const struct run_facts *f = &s->facts;
    int64_t steps = w->steps < RATE_STEPS ? w->steps : RATE_STEPS;
    double seconds = 0, samples = 0, tokens = 0;
    for (int64_t i = 0; i < steps; i++) {
        seconds += w->seconds[i];
        samples += (double)w->samples[i];
        tokens += (double)w->tokens[i];
    }
    bool known = seconds > 0;
    s->steps_per_s = known ? (double)steps / seconds : 0;
    s->samples_per_s = known ? samples / seconds : 0;
    s->tokens_per_s = known ? tokens / seconds : 0;
    s->device_samples_per_s = s->samples_per_s / f->world_size;
    s->device_tokens_per_s = s->tokens_per_s / f->world_size;
    for (int c = 0; c < FLOPS_CONVENTIONS; c++) {
        double per_s = s->tokens_per_s * f->flops_per_token[c];
        s->flops_per_s[c] = per_s > 0 ? per_s : (double)NAN;
        double share = flops_utilization(s->tokens_per_s, f->flops_per_token[c], f->world_size,
                                         f->peak_flops_per_s);
        s->utilization[c] = share > 0 ? share : (double)NAN;
    }
    s->device_flops_per_s = s->flops_per_s[FLOPS_FULL] / f->world_size;
}

void run_state_step(struct run_state *s, const struct run_numbers *n, int64_t wall_us)
{
    s->last = *n;
    if (n->steps > 0)
        s->facts.steps = n->steps;
    s->steps++;
    s->samples += n->samples;
    s->tokens += n->tokens;
    s->train_s += n->step_s;
    for (int p = 0; p < RUN_STEP_PHASES; p++)
        s->phase_s[p] += n->phase_s[p];
    s->perplexity = s->facts.predicts_tokens ? exp(n->loss) : (double)NAN;
    histogram_add(&s->step_durations, n->step_s);
    add_to_window(&s->window, n);
    derive_rates(s);
    move_on(s, wall_us);
}

void run_state_eval(struct run_state *s, const struct run_eval *eval, int64_t wall_us)
{
    s->eval = *eval;
    s->phase_s[PHASE_EVAL] += eval->seconds;
    move_on(s, wall_us);
}

void run_state_save(struct run_state *s, const struct run_save *save, int64_t wall_us)
{
    s->phase_s[PHASE_CHECKPOINT] += save->stall_s;
    s->tried_step = save->step;
    if (save->failed) {
        s->failed_saves++;
        s->failed_in_a_row++;
    } else {
        s->saves++;
        s->failed_in_a_row = 0;
        s->saved_step = save->step;
        s->saved_bytes = save->bytes;
        s->saved_wall_us = wall_us;
        histogram_add(&s->save_durations, save->seconds);
    }
    move_on(s, wall_us);
}
