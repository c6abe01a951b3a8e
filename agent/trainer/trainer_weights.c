/* Initial values that are not drawn: a Hugging Face directory's, or those of a checkpoint. */
#include "agent/checkpoint/checkpoint.h"
#include "agent/checkpoint/pretrained.h"
#include "agent/comm/agree.h"
#include "agent/trainer/trainer_internal.h"

/* The directory that the configuration takes values from: a model's, or a checkpoint; NULL: they
 * stay as drawn. */
static const char *weights_path(const struct agent_config *c)
{
    if (c->model.init_weights[0])
        return c->model.init_weights;
    if (c->model.init == INIT_RANDOM || !c->model.name_or_path[0])
        return NULL;
    bool must = c->model.init == INIT_PRETRAINED;
    bool has_values =
        pretrained_exists(c->model.name_or_path) || trainer_is_checkpoint(c->model.name_or_path);
    return must || has_values ? c->model.name_or_path : NULL;
}

static int load_pretrained(struct trainer *t, const char *path, struct lines *warnings,
                           struct error *err)
{
    struct pretrained *pretrained = NULL;
    int result = pretrained_open(path, &pretrained, err);
    if (result == 0)
        result = pretrained_check(pretrained, t->model, warnings, err);
    if (result == 0)
        result = pretrained_load(pretrained, t->model, t->shard,
                                 t->config->checkpoint.allow_nonfinite, err);
    pretrained_close(pretrained);
    return result;
}

/* Only the model's part: the rest of the run starts anew. */
static int load_checkpoint(struct trainer *t, const char *path, struct error *err)
{
    struct checkpoint *checkpoint = NULL;
    struct host_state host;
    host_state_open(t->shard, t->optim, NULL, &host);
    int result = host_state_copy(&host, TO_HOST, err); /* the optimizer's part stays */
    if (result == 0)
        result = checkpoint_open(path, &checkpoint, err);
    if (result == 0)
        result = checkpoint_load(checkpoint, CHECKPOINT_MODEL, &host.parts[CHECKPOINT_MODEL],
                                 t->config->checkpoint.allow_nonfinite, err);
    if (result == 0)
        result = host_state_copy(&host, TO_DEVICE, err);
    checkpoint_close(checkpoint);
    host_state_close(&host);
    if (result == 0)
        shard_values_changed(t->shard);
    return result;
}

/* Who names a directory may well expect its values. */
static void report_random_weights(struct trainer *t)
{
    const struct agent_config *c = t->config;
    bool expected = c->model.init == INIT_AUTO && c->model.name_or_path[0];
    const char *warnings = "";
    if (t->world->rank == 0 && expected)
        warnings =
            arena_printf(t->arena,
                         "%s has no weights (model.safetensors): the values are drawn, as with "
                         "model.init=random",
                         c->model.name_or_path);
    if (trainer_is_language(t))
        t->listener->weights(t->listener->ctx, NULL, warnings);
}

int trainer_load_weights(struct trainer *t, struct error *err)
{
    const char *path = weights_path(t->config);
    if (!path) {
        report_random_weights(t);
        return 0;
    }
    struct lines warnings;
    lines_init(&warnings, t->arena);
    bool is_named = path == t->config->model.init_weights;
    bool is_model = pretrained_exists(path) || (!is_named && !trainer_is_checkpoint(path));
    int result =
        is_model ? load_pretrained(t, path, &warnings, err) : load_checkpoint(t, path, err);
    if (agree_all(t->world, t->compute, result, err))
        return error_wrap(err, "initial weights");
    bool warns = t->world->rank == 0 && warnings.count > 0;
    t->listener->weights(t->listener->ctx, path, warns ? lines_join(&warnings) : "");
    return 0;
}
