/* Between the trainer and its checkpoints: slices and optimizer state as named pieces in host
 * memory, the position as a checkpoint's state, and which checkpoint to go on from. */
#include "agent/agree.h"
#include "agent/checkpoint.h"
#include "agent/trainer_parts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_STATES = 2 }; /* tensors an optimizer keeps per parameter */

/* ---- this rank's slices in host memory ---- */

/* Buffers for one unit's slice: its values, then each optimizer state. */
struct host_unit {
    float *tensor[1 + MAX_STATES];
};

struct host_state {
    struct arena *arena;
    struct host_unit *units;
    int tensors; /* 1 + the optimizer's states */
    struct checkpoint_pieces parts[CHECKPOINT_PARTS];
};

static float *device_tensor(const struct trainer *t, int unit, int tensor)
{
    return tensor == 0 ? shard_get_unit(t->shard, unit)->value
                       : optim_state(t->optim, unit, tensor - 1);
}

static struct checkpoint_piece piece_of(const struct trainer *t, const struct host_state *host,
                                        const struct shard_piece *piece, int tensor)
{
    const struct param *param = piece->param;
    struct checkpoint_piece out = {
        .name = param->name,
        .dims = param->dims,
        .first = piece->param_offset,
        .count = piece->count,
        .data = host->units[piece->unit].tensor[tensor] + piece->shard_offset,
    };
    memcpy(out.shape, param->shape, (size_t)param->dims * sizeof param->shape[0]);
    if (tensor > 0)
        out.name =
            arena_printf(host->arena, "%s.%s", param->name, optim_state_name(t->optim, tensor - 1));
    return out;
}

/* Buffers for all of this rank's slices, and the pieces that lie in them. The arena owns all but
 * the buffers. */
static void host_state_open(const struct trainer *t, struct host_state *host)
{
    host->arena = arena_open();
    host->tensors = 1 + optim_state_count(t->optim);
    int unit_count = shard_unit_count(t->shard);
    host->units = arena_array(host->arena, struct host_unit, unit_count);
    for (int u = 0; u < unit_count; u++)
        for (int i = 0; i < host->tensors; i++)
            host->units[u].tensor[i] =
                arena_array(host->arena, float, shard_get_unit(t->shard, u)->shard_count);
    int count = 0, filled = 0;
    const struct shard_piece *pieces = shard_pieces(t->shard, &count);
    struct checkpoint_piece *items =
        arena_array(host->arena, struct checkpoint_piece, count * host->tensors);
    for (int i = 0; i < host->tensors; i++)
        for (int p = 0; p < count; p++)
            items[filled++] = piece_of(t, host, &pieces[p], i);
    host->parts[CHECKPOINT_MODEL] = (struct checkpoint_pieces){items, count};
    host->parts[CHECKPOINT_OPTIMIZER] =
        (struct checkpoint_pieces){items + count, count * (host->tensors - 1)};
}

static void host_state_close(struct host_state *host)
{
    arena_close(host->arena);
}

enum direction { TO_HOST, TO_DEVICE };

static int copy_state(const struct trainer *t, const struct host_state *host, enum direction way,
                      struct error *err)
{
    struct stream *home = shard_home_stream(t->shard);
    for (int u = 0; u < shard_unit_count(t->shard); u++) {
        size_t bytes = (size_t)shard_get_unit(t->shard, u)->shard_count * sizeof(float);
        for (int i = 0; i < host->tensors; i++) {
            float *there = device_tensor(t, u, i), *here = host->units[u].tensor[i];
            stream_copy(home, way == TO_HOST ? here : there, way == TO_HOST ? there : here, bytes);
        }
    }
    return shard_sync(t->shard, err);
}

/* ---- saving ---- */

static struct checkpoint_state state_of(const struct trainer *t, const double sums[3])
{
    struct checkpoint_state state = {
        .epoch = t->position.epoch,
        .epoch_samples = t->position.epoch_samples,
        .step = t->position.step,
        .micro_batches = t->position.micro_batches,
        .optimizer_steps = optim_steps(t->optim),
        .epoch_loss_sum = sums[0],
        .epoch_correct = sums[1],
        .epoch_rows = sums[2],
        .seed = (uint64_t)t->config->runtime.seed,
        .learning_rate = t->lr,
        .world_size = t->place.world->size,
        .train_rows = t->train->samples >= 0 ? t->train->samples : 0,
        .batch_rows = t->train->batch_rows,
        .data = t->train->fn->state(t->train),
    };
    static const char *const names[] = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                                        "HYBRID_SHARD_ZERO2"};
    snprintf(state.strategy, sizeof state.strategy, "%s", names[t->config->parallel.strategy]);
    return state;
}

static int write_checkpoint(struct trainer *t, const struct host_state *host, struct error *err)
{
    double sums[3];
    if (trainer_total_sums(t, sums, err))
        return -1;
    const struct checkpoint_state state = state_of(t, sums);
    char name[64];
    snprintf(name, sizeof name, "%s-%lldsteps", t->model->type, (long long)t->position.step);
    struct checkpoint_save save = {
        .files = &file_ops_system,
        .dir = t->config->checkpoint.dir,
        .name = name,
        .state = &state,
        .comm = t->place.world,
        .stream = t->compute,
    };
    if (shard_owns_copy(t->shard))
        memcpy(save.parts, host->parts, sizeof save.parts);
    if (checkpoint_save(&save, err))
        return -1;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", t->config->checkpoint.dir, name);
    t->listener->saved(t->listener->ctx, path, t->position.step);
    return 0;
}

int trainer_save(struct trainer *t, struct error *err)
{
    const struct agent_config *c = t->config;
    if (!c->checkpoint.dir[0] || t->saved_step == t->position.step)
        return 0;
    struct host_state host;
    host_state_open(t, &host);
    int result = copy_state(t, &host, TO_HOST, err);
    if (result == 0)
        result = write_checkpoint(t, &host, err);
    host_state_close(&host);
    if (result)
        return error_wrap(err, "checkpoint at step %lld", (long long)t->position.step);
    t->saved_step = t->position.step;
    if (c->checkpoint.keep_last > 0 && t->place.world->rank == 0)
        return checkpoint_prune(&file_ops_system, c->checkpoint.dir, t->position.step,
                                (int)c->checkpoint.keep_last, err);
    return 0;
}

/* ---- which checkpoint ---- */

/* Rank 0's answer, sent to all: the same checkpoint for everyone, or the same error. */
struct choice {
    struct outcome outcome;
    char path[PATH_MAX]; /* "": start anew */
    char dir[PATH_MAX];  /* the directory of which it is the latest; "": asked for by name */
    int64_t step;        /* if it is the latest of a directory */
};

static bool is_checkpoint(const char *path)
{
    static const char *const parts[] = {"COMPLETE", "state.json", "model"};
    for (size_t i = 0; i < array_length(parts); i++) {
        auto_free char *part = xasprintf("%s/%s", path, parts[i]);
        if (access(part, F_OK) == 0)
            return true;
    }
    return false;
}

static void take_found(struct choice *choice, const char *dir, struct checkpoint_found *found)
{
    snprintf(choice->path, sizeof choice->path, "%s", found->path);
    if (dir != choice->dir)
        snprintf(choice->dir, sizeof choice->dir, "%s", dir);
    choice->step = found->step;
    free(found->path);
}

/* The newest complete checkpoint of a directory. Nothing there is an error only if it was asked for
 * by name. */
static void choose_latest(struct trainer *t, const char *dir, bool must, struct choice *choice)
{
    struct lines skipped;
    lines_init(&skipped, t->arena);
    struct checkpoint_found found = {0};
    struct error err;
    int result = checkpoint_find_latest(dir, INT64_MAX, &skipped, &found, &err);
    if (skipped.count > 0)
        t->listener->skipped(t->listener->ctx, lines_join(&skipped));
    if (result == 0)
        take_found(choice, dir, &found);
    else if (must || err.code != ERR_NOT_FOUND)
        outcome_set(&choice->outcome, result, &err);
}

static void choose(struct trainer *t, bool any_restarted, struct choice *choice)
{
    const struct agent_config *c = t->config;
    const char *asked = c->checkpoint.resume;
    if (strcmp(asked, "latest") == 0)
        choose_latest(t, c->checkpoint.dir, false, choice);
    else if (asked[0] && is_checkpoint(asked))
        snprintf(choice->path, sizeof choice->path, "%s", asked);
    else if (asked[0])
        choose_latest(t, asked, true, choice);
    else if (c->checkpoint.auto_resume && c->checkpoint.dir[0] && any_restarted)
        choose_latest(t, c->checkpoint.dir, false, choice);
}

/* Collective. */
static int agree_on_checkpoint(struct trainer *t, struct choice *choice, struct error *err)
{
    bool any_restarted = false;
    if (trainer_any(t, t->place.restarted, &any_restarted, err))
        return -1;
    if (t->place.world->rank == 0)
        choose(t, any_restarted, choice);
    if (agree_broadcast(t->place.world, t->compute, choice, sizeof *choice, err))
        return -1;
    return outcome_get(&choice->outcome, 0, err);
}

/* ---- loading ---- */

static void go_to(struct trainer *t, const struct checkpoint_state *state)
{
    t->position = (struct trainer_position){
        .epoch = state->epoch,
        .epoch_samples = state->epoch_samples,
        .step = state->step,
        .micro_batches = state->micro_batches,
    };
    t->saved_step = state->step;
    t->data_state = arena_strdup(t->arena, state->data);
    optim_set_steps(t->optim, state->optimizer_steps);
    const double sums[3] = {state->epoch_loss_sum, state->epoch_correct, state->epoch_rows};
    trainer_set_share(t, sums);
}

static int load_parts(struct trainer *t, struct checkpoint *checkpoint, struct error *err)
{
    struct host_state host;
    host_state_open(t, &host);
    int result = 0;
    for (int part = 0; part < CHECKPOINT_PARTS && result == 0; part++)
        result = checkpoint_load(checkpoint, (enum checkpoint_part)part, &host.parts[part], err);
    if (result == 0)
        result = copy_state(t, &host, TO_DEVICE, err);
    host_state_close(&host);
    if (result == 0)
        shard_values_changed(t->shard);
    return result;
}

static void add_difference(struct lines *lines, const char *what, int64_t saved, int64_t now)
{
    if (saved != now)
        lines_add(lines, "%s %lld was %lld", what, (long long)now, (long long)saved);
}

/* What makes the rest another run than the one that saved. The number of ranks may change, but the
 * samples of a step with it. */
static void compare(struct trainer *t, const struct checkpoint_state *saved)
{
    struct lines lines;
    lines_init(&lines, t->arena);
    add_difference(&lines, "runtime.seed", (int64_t)saved->seed, t->config->runtime.seed);
    add_difference(&lines, "samples per step and micro-batch",
                   saved->batch_rows * saved->world_size,
                   t->train->batch_rows * t->place.world->size);
    add_difference(&lines, "training samples", saved->train_rows,
                   t->train->samples >= 0 ? t->train->samples : 0);
    if (lines.count > 0)
        t->listener->differs(t->listener->ctx, lines_join(&lines));
}

static int load(struct trainer *t, const char *path, struct error *err)
{
    struct checkpoint *checkpoint = NULL;
    int result = checkpoint_open(path, &checkpoint, err);
    if (result == 0)
        result = load_parts(t, checkpoint, err);
    result = agree_all(t->place.world, t->compute, result, err);
    if (result == 0) {
        const struct checkpoint_state *state = checkpoint_get_state(checkpoint);
        go_to(t, state);
        t->listener->resumed(t->listener->ctx, path, state->step);
        compare(t, state);
    }
    checkpoint_close(checkpoint);
    return result;
}

/* After `damage` was found in the latest of a directory: the one before it. If there is none, the
 * damage stays the error: nobody asked to lose the run. Collective. */
static int choose_older(struct trainer *t, struct choice *choice, const struct error *damage,
                        struct error *err)
{
    if (t->place.world->rank == 0) {
        struct checkpoint_found found;
        struct error ignored;
        if (checkpoint_find_latest(choice->dir, choice->step, NULL, &found, &ignored) == 0) {
            t->listener->skipped(t->listener->ctx, damage->msg);
            take_found(choice, choice->dir, &found);
        } else {
            outcome_set(&choice->outcome, -1, damage);
        }
    }
    if (agree_broadcast(t->place.world, t->compute, choice, sizeof *choice, err))
        return -1;
    return outcome_get(&choice->outcome, 0, err);
}

static int load_choice(struct trainer *t, struct choice *choice, struct error *err)
{
    while (load(t, choice->path, err)) {
        const struct error damage = *err;
        bool may_pass = damage.code == ERR_INPUT || damage.code == ERR_NOT_FOUND;
        if (!choice->dir[0] || !damage.shared || !may_pass)
            return -1;
        if (choose_older(t, choice, &damage, err))
            return -1;
    }
    return 0;
}

int trainer_resume(struct trainer *t, struct error *err)
{
    trainer_set_sums(t, 0, 0, 0);
    struct choice *choice = arena_new(t->arena, struct choice);
    if (agree_on_checkpoint(t, choice, err))
        return error_wrap(err, "resume");
    if (!choice->path[0] || load_choice(t, choice, err) == 0)
        return 0;
    bool damaged = err->code == ERR_INPUT;
    return error_wrap(err, damaged ? "resume (move the checkpoint away, or name another one)"
                                   : "resume");
}
