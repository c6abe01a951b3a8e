#include "agent/telemetry/log_lines.h"

/* AWS's sample counts batches from 0, and prints those that `every` divides. */
static bool step_is_due(const struct log_setting *setting, int64_t step)
{
    if (setting->every <= 0 || setting->style == STYLE_T5)
        return setting->every > 0;
    return (setting->style == STYLE_ADT ? step - 1 : step) % setting->every == 0;
}

/* Our own styles print the last step, too: a run shorter than `every` has a loss. The others do as
 * the trainers that they stand in for. */
static bool prints_last_step(const struct log_setting *setting)
{
    return setting->every > 0 && (setting->style == STYLE_PLAIN || setting->style == STYLE_FABRIC);
}

/* Printed at once: lines of a save and of the model's file follow. */
static bool is_last_step(const struct log_setting *setting, const struct run_state *state)
{
    return prints_last_step(setting) && state->last.step == state->facts.steps;
}

/* Of a run that ended before its time, or whose length is not known: printed at its end. */
static bool step_is_owed(const struct log_setting *setting, const struct run_state *state)
{
    return prints_last_step(setting) && state->steps > 0 &&
           !step_is_due(setting, state->last.step) && !is_last_step(setting, state);
}

void log_lines(const struct log_setting *setting, const struct run_moment *moment,
               const struct run_state *state, struct str *out)
{
    if (moment->event == RUN_STEP && !step_is_due(setting, state->last.step) &&
        !is_last_step(setting, state))
        return;
    if ((moment->event == RUN_LOAD_BEGIN || moment->event == RUN_LOAD_DONE) && !moment->path)
        return;
    if (moment->event == RUN_END && step_is_owed(setting, state)) {
        const struct run_moment step = {.event = RUN_STEP, .wall_us = moment->wall_us};
        log_lines_plain(&step, state, out);
    }
    switch (setting->style) {
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
    case STYLE_T5:
        log_lines_t5(moment, state, setting, out);
        break;
    }
}
