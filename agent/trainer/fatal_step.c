#include "agent/trainer/fatal_step.h"

#include <inttypes.h>

void fatal_step_describe_end(int64_t step, struct str *out)
{
    str_printf(out, "behind step %" PRId64 ", which was done: in an evaluation or as it saved",
               step);
}

void fatal_step_describe(const struct data_cursor *c, int64_t step, struct str *out)
{
    int64_t samples = c->train->samples, epoch = c->position.epoch;
    int64_t first = c->position.epoch_samples;
    int64_t step_samples =
        c->config->optimizer.gradient_accumulation_steps * c->train->batch_rows * c->shares;
    for (int64_t done = c->position.step;; done++) {
        if (samples >= 0 && first >= samples) {
            first = 0;
            epoch++;
        }
        if (done + 1 >= step)
            break;
        first += step_samples;
    }
    int64_t last = first + step_samples;
    if (samples >= 0 && last > samples)
        last = samples;
    str_printf(out,
               "in step %" PRId64 ", which trains on samples %" PRId64 " to %" PRId64
               " of epoch %" PRId64 ", in the order of the epoch",
               step, first + 1, last, epoch + 1);
}
