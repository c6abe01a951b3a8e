/* What to say of steps whose loss or gradient is no number: that the training diverged, or that
 * runtime.nan_policy=skip has left steps out. Pure. */
#ifndef SHOAL_AGENT_REPORT_NONFINITE_WATCH_H
#define SHOAL_AGENT_REPORT_NONFINITE_WATCH_H

#include "agent/telemetry/run_numbers.h"
#include "base/str.h"

/* All zero: no step yet. */
struct nonfinite_watch {
    int64_t since;         /* the loss is no number from this step on; 0: the last one was */
    double lr;             /* of that step */
    int64_t skipped_steps; /* as of the last step */
    bool has_warned_skipped, has_warned_diverged;
};

/* Adds the warning that this step asks for, without a newline; each of the two kinds once. */
void nonfinite_watch_step(struct nonfinite_watch *watch, const struct run_numbers *step,
                          struct str *out);
/* Adds the lines for the end of the run: of nothing else than numbers none. */
void nonfinite_watch_end(const struct nonfinite_watch *watch, struct str *out);
#endif
