#include "agent/telemetry/log_lines.h"

/* AWS's sample counts batches from 0, and prints those that `every` divides. */
static bool step_is_due(enum log_style style, int64_t step, int64_t every)
{
    if (every <= 0)
        return false;
    return (style == STYLE_ADT ? step - 1 : step) % every == 0;
}

void log_lines(enum log_style style, const struct run_moment *moment, const struct run_state *state,
               int64_t every, struct str *out)
{
    if (moment->event == RUN_STEP && !step_is_due(style, state->last.step, every))
        return;
    switch (style) {
    case STYLE_NONE:
        break;
    case STYLE_PLAIN:
        log_lines_plain(moment, state, out);
        break;
    case STYLE_ADT:
        log_lines_adt(moment, state, out);
        break;
    case STYLE_FABRIC:
        log_lines_fabric(moment, state, out);
        break;
    }
}
