#include "agent/trainer/data_cursor.h"

#include "agent/plan/trainer_settings.h"

#include <math.h>

void data_cursor_close(struct data_cursor *c)
{
    batch_source_close(c->train);
    batch_source_close(c->test);
}

/* Optimizer steps of one epoch. */
static int64_t steps_of_one(const struct data_cursor *c)
{
    int64_t group = c->config->optimizer.gradient_accumulation_steps;
    bool drops = c->config->optimizer.drop_incomplete;
    return (c->train->batches + (drops ? 0 : group - 1)) / group;
}

/* A part of an epoch rounds up, as Transformers' Trainer does. */
int64_t data_cursor_epoch_steps(const struct data_cursor *c)
{
    if (c->train->batches < 0)
        return 0;
    return (int64_t)ceil((double)steps_of_one(c) * c->config->schedule.epochs);
}

int64_t data_cursor_steps(const struct data_cursor *c)
{
    int64_t most = c->config->schedule.max_steps, steps = data_cursor_epoch_steps(c);
    return steps == 0 || (most > 0 && most < steps) ? most : steps;
}

int data_cursor_check_epoch(const struct data_cursor *c, int64_t batches, struct error *err)
{
    int64_t group = c->config->optimizer.gradient_accumulation_steps;
    if (batches == 0)
        return error_set(err, ERR_CONFIG,
                         "data.drop_last: %s has too few samples for one batch of %lld on each "
                         "rank: nothing would be trained",
                         c->train->what, (long long)c->train->batch_rows);
    if (batches < 0 || batches >= group || !c->config->optimizer.drop_incomplete)
        return 0;
    return error_set(err, ERR_CONFIG,
                     "optimizer.gradient_accumulation_steps: %lld micro-batches make a step, but "
                     "an epoch has only %lld on each rank: nothing would be trained; take fewer, "
                     "or optimizer.drop_incomplete_accumulation=false",
                     (long long)group, (long long)batches);
}

const char *data_cursor_state(const struct data_cursor *c)
{
    return c->state ? c->state : batch_source_state(c->train);
}

int data_cursor_begin_epoch(struct data_cursor *c, struct error *err)
{
    const char *state = c->state ? c->state : "";
    if (batch_source_seek(c->train, c->position.epoch, c->position.epoch_samples, state, err))
        return -1;
    c->state = NULL;
    c->epoch_ended = false;
    return 0;
}

int data_cursor_fetched(struct data_cursor *c, int64_t batches, struct error *err)
{
    int64_t group = c->config->optimizer.gradient_accumulation_steps;
    c->epoch_ended = batches == 0 || (batches < group && c->config->optimizer.drop_incomplete);
    if (!c->epoch_ended || c->position.epoch_samples > 0)
        return 0;
    return data_cursor_check_epoch(c, batches, err);
}

void data_cursor_next_epoch(struct data_cursor *c)
{
    c->position.epoch++;
    c->position.epoch_samples = 0;
}

/* Whether this is a last epoch that is to be done in part only, and that part is done: in samples,
 * which mean the same after a resume with other batches. */
static bool fraction_done(const struct data_cursor *c)
{
    double epochs = c->config->schedule.epochs;
    if (epochs == floor(epochs) || c->position.epoch < (int64_t)epochs)
        return false;
    int64_t steps = data_cursor_epoch_steps(c) - (int64_t)epochs * steps_of_one(c);
    int64_t step_samples =
        c->config->optimizer.gradient_accumulation_steps * c->train->batch_rows * c->shares;
    return c->position.epoch_samples >= steps * step_samples;
}

/* Once so many steps are done. */
static bool steps_are_over(const struct data_cursor *c, int64_t steps)
{
    int64_t most = c->config->schedule.max_steps;
    return (most > 0 && steps >= most) || fraction_done(c);
}

bool data_cursor_epoch_done(const struct data_cursor *c)
{
    return c->epoch_ended ||
           (c->train->samples >= 0 && c->position.epoch_samples >= c->train->samples);
}

bool data_cursor_has_next_step(const struct data_cursor *c, int64_t steps)
{
    return !data_cursor_epoch_done(c) && !steps_are_over(c, steps);
}

bool data_cursor_run_done(const struct data_cursor *c)
{
    int64_t epochs = trainer_epochs(c->config);
    return (epochs > 0 && c->position.epoch >= epochs) || steps_are_over(c, c->position.step);
}

/* An epoch whose last batch is filled up has more samples than the data. */
double data_cursor_epochs(const struct data_cursor *c)
{
    double fraction = 0;
    if (c->train->samples > 0)
        fraction = fmin((double)c->position.epoch_samples / (double)c->train->samples, 1);
    return (double)c->position.epoch + fraction;
}
