#include "agent/report/nonfinite_watch.h"

#include <math.h>

static void add_diverged(const struct nonfinite_watch *w, struct str *out)
{
    str_printf(
        out,
        "the loss is no number any more since step %lld (lr %.6g): the training diverged and "
        "the model is of no use; try a smaller learning rate",
        (long long)w->since, w->lr);
}

static void add_skipped(int64_t step, struct str *out)
{
    str_printf(
        out,
        "the loss or the gradient of step %lld is no number: the step is left out, as others "
        "like it will be (runtime.nan_policy=skip); look at its data",
        (long long)step);
}

/* Of a step that was left out the model knows nothing: it goes on as before. */
void nonfinite_watch_step(struct nonfinite_watch *w, const struct run_numbers *step,
                          struct str *out)
{
    bool is_skipped = step->skipped_steps > w->skipped_steps;
    w->skipped_steps = step->skipped_steps;
    if (is_skipped) {
        if (!w->has_warned_skipped)
            add_skipped(step->step, out);
        w->has_warned_skipped = true;
    } else if (!step->is_empty && isfinite(step->loss)) {
        w->since = 0;
    } else if (!step->is_empty && w->since == 0) {
        w->since = step->step;
        w->lr = step->lr;
        if (!w->has_warned_diverged)
            add_diverged(w, out);
        w->has_warned_diverged = true;
    }
}

void nonfinite_watch_end(const struct nonfinite_watch *w, struct str *out)
{
    if (w->skipped_steps > 0)
        str_printf(out,
                   "Warning: %lld step%s left out, as the loss or the gradient was no number "
                   "(runtime.nan_policy=skip)\n",
                   (long long)w->skipped_steps, w->skipped_steps == 1 ? " was" : "s were");
    if (w->since > 0) {
        str_add(out, "Warning: ");
        add_diverged(w, out);
        str_add(out, "\n");
    }
}
