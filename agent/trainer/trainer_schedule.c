/* The learning-rate schedule of the run that saved, and whether this one takes it. */
#include "agent/trainer/trainer_internal.h"

#include <stdio.h>
#include <string.h>

/* Of a schedule, in the order and the words of AnnealingLR. */
struct schedule_values {
    double lr, min_lr, warmup;
    double decay_steps; /* 0: the type has no end */
    const char *type;
};

static struct schedule_values schedule_values_of(const struct schedule *s)
{
    double warmup =
        s->warmup_steps > 0 ? (double)s->warmup_steps : s->warmup_ratio * (double)s->decay_steps;
    return (struct schedule_values){s->lr, s->min_lr, warmup,
                                    schedule_has_end(s->type) ? (double)s->decay_steps : 0,
                                    schedule_type_name(s->type)};
}

/* How each value is printed: in full, as Python prints it, as short as it can be. */
static void notify_resumed_schedule(struct trainer *t, const struct schedule_values *c)
{
    const struct {
        double value;
        const char *name;
    } rows[] = {{c->lr, "learning rate"},
                {c->min_lr, "minimum learning rate"},
                {c->warmup, "warmup iterations"},
                {c->decay_steps, "total number of iterations"}};
    for (size_t i = 0; i < array_length(rows); i++)
        trainer_event(t, RUN_VALUE_TAKEN,
                      arena_printf(t->arena, "%.10g for %s", rows[i].value, rows[i].name));
    trainer_event(t, RUN_VALUE_TAKEN, arena_printf(t->arena, "%s for decay style", c->type));
}

static void notify_schedule_difference(struct trainer *t, const struct schedule_values *saved,
                                       const struct schedule_values *now)
{
    struct lines lines;
    lines_init(&lines, t->arena);
    const struct {
        const char *name;
        double saved, now;
    } rows[] = {{"optimizer.lr", saved->lr, now->lr},
                {"schedule.min_lr", saved->min_lr, now->min_lr},
                {"warm-up steps", saved->warmup, now->warmup},
                {"steps that the rate falls over (schedule.decay_steps, or the run's)",
                 saved->decay_steps, now->decay_steps}};
    for (size_t i = 0; i < array_length(rows); i++)
        if (rows[i].saved != rows[i].now)
            lines_add(&lines, "%s: it had %.10g, this one has %.10g", rows[i].name, rows[i].saved,
                      rows[i].now);
    if (strcmp(saved->type, now->type) != 0)
        lines_add(&lines, "schedule.type: it had %s, this one has %s", saved->type, now->type);
    if (lines.count > 0)
        t->listener->differs(t->listener->ctx, lines_join(&lines));
}

void trainer_schedule_resume(struct trainer *t, const struct checkpoint_state *state)
{
    struct schedule saved = t->schedule;
    if (!schedule_type_find(state->schedule_type, &saved.type))
        return; /* a type of a later version */
    saved.lr = state->peak_lr;
    saved.min_lr = state->min_lr;
    saved.warmup_ratio = state->warmup_ratio;
    saved.warmup_steps = state->warmup_steps;
    saved.decay_steps = state->decay_steps;
    const struct schedule_values before = schedule_values_of(&saved),
                                 now = schedule_values_of(&t->schedule);
    if (t->config->schedule.resume == SCHEDULE_OF_CHECKPOINT) {
        t->schedule = saved;
        notify_resumed_schedule(t, &before);
    } else {
        notify_schedule_difference(t, &before, &now);
    }
}
