#include "agent/telemetry/tensorboard.h"

#include "agent/telemetry/event_record.h"

#include <math.h>
#include <string.h>

void tensorboard_path(const char *dir, int64_t wall_us, const char *host, int64_t pid,
                      struct str *out)
{
    str_printf(out, "%s/events.out.tfevents.%010lld.%s.%lld.%lld", dir,
               (long long)(wall_us / 1000000), host, (long long)pid,
               (long long)(wall_us % 1000000));
}

void tensorboard_head(int64_t wall_us, struct str *out)
{
    event_version_record((double)wall_us / 1e6, out);
}

static int64_t step_of(enum field_event event, const struct run_state *state)
{
    switch (event) {
    case FIELD_STEP:
        return state->last.step;
    case FIELD_EVAL:
        return state->eval.step;
    case FIELD_SAVE:
        return state->tried_step;
    }
    return 0;
}

void tensorboard_row(enum field_event event, enum field_words words, const struct run_state *state,
                     struct str *out)
{
    struct event_scalar scalars[FIELDS_MAX];
    int count = 0;
    for (int i = 0; i < field_count(); i++) {
        const char *name = field_name(i, words);
        double value = field_value(i, state);
        if (field_is_of(i, event) && name && strcmp(name, "step") != 0 && !isnan(value))
            scalars[count++] = (struct event_scalar){name, (float)value};
    }
    if (count > 0)
        event_scalars_record((double)state->progress_wall_us / 1e6, step_of(event, state), scalars,
                             count, out);
}
