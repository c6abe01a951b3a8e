/* How a run that is gone on from differs from this one. */
#include "agent/models/config_json.h"
#include "agent/trainer/trainer_internal.h"

#include <string.h>

static void add_difference(struct lines *lines, const char *what, int64_t saved, int64_t now)
{
    if (saved != now)
        lines_add(lines, "%s: it had %lld, this one has %lld", what, (long long)saved,
                  (long long)now);
}

void trainer_compare_saved(struct trainer *t, const struct checkpoint_state *saved)
{
    struct lines lines;
    lines_init(&lines, t->arena);
    add_difference(&lines, "runtime.seed", (int64_t)saved->seed, t->config->runtime.seed);
    add_difference(&lines, "parallel.reduction_slots", saved->reduction_slots,
                   t->fixed_slots ? t->slots.count : 0);
    if (trainer_may_differ(t) != (saved->nondeterministic > 0))
        lines_add(&lines, "runtime.deterministic: it had %s, this one has %s",
                  saved->nondeterministic > 0 ? "false" : "true",
                  saved->nondeterministic > 0 ? "true" : "false");
    add_difference(&lines, "samples per step and micro-batch",
                   saved->batch_rows *
                       (saved->reduction_slots > 0 ? saved->reduction_slots : saved->world_size),
                   t->cursor.train->batch_rows * t->slots.count);
    add_difference(&lines, "training samples", saved->train_rows,
                   t->cursor.train->samples >= 0 ? t->cursor.train->samples : 0);
    if (lines.count > 0)
        t->listener->differs(t->listener->ctx, lines_join(&lines));
}

int trainer_check_saved(struct trainer *t, const char *path, struct checkpoint *checkpoint,
                        struct error *err)
{
    const struct checkpoint_state *saved = checkpoint_get_state(checkpoint);
    const char *model, *optimizer = optim_kind(t->config->optimizer.name)->name;
    struct lines lines;
    lines_init(&lines, t->arena);
    if (checkpoint_read_text(checkpoint, CHECKPOINT_MODEL_CONFIG, &model, err))
        return -1;
    if (model && t->checkpointer.of.model_config)
        config_json_compare(model, t->checkpointer.of.model_config, &lines);
    if (model && !t->checkpointer.of.model_config)
        lines_add(&lines,
                  "model.type mnist_cnn (saved: a language model, whose config.json is there)");
    if (!model && t->checkpointer.of.model_config)
        lines_add(
            &lines,
            "a language model (saved: mnist_cnn, as there is no config.json in the checkpoint)");
    if (saved->optimizer[0] && strcmp(saved->optimizer, optimizer) != 0)
        lines_add(&lines, "optimizer.name %s (saved: %s)", optimizer, saved->optimizer);
    if (lines.count == 0)
        return trainer_check_slots(t, path, saved->reduction_slots, err);
    return error_set(err, ERR_CONFIG,
                     "%s: saved from another model or optimizer: %s; give what was saved, or start "
                     "anew in another checkpoint.dir",
                     path, lines_join(&lines));
}
