/* Which checkpoint to go on from, and going on from it. */
#include "agent/checkpoint/checkpoint.h"
#include "agent/comm/agree.h"
#include "agent/launch/rank_note.h"
#include "agent/trainer/fatal_step.h"
#include "agent/trainer/trainer_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which checkpoint ---- */

/* Rank 0's answer, sent to all: the same checkpoint for everyone, or the same error. */
struct choice {
    struct outcome outcome;
    char path[PATH_MAX]; /* "": start anew */
    char dir[PATH_MAX];  /* the directory of which it is the latest; "": asked for by name */
    bool own_only;       /* of those that this run saved */
    int64_t step;        /* if it is the latest of a directory */
    bool from_memory;    /* the ranks' memory has more steps than all of that */
};

static bool has_file(const char *path, const char *name)
{
    auto_free char *file = xasprintf("%s/%s", path, name);
    return access(file, F_OK) == 0;
}

/* A folder "model" is no sign: a finished run's directory has one, its export. */
bool trainer_is_checkpoint(const char *path)
{
    return has_file(path, "COMPLETE") || has_file(path, "state.json");
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
    struct checkpoint_skipped skipped;
    lines_init(&skipped.paths, t->arena);
    lines_init(&skipped.reasons, t->arena);
    struct checkpoint_found found = {0};
    struct error err;
    const char *run = choice->own_only ? t->checkpointer.run : NULL;
    int result = checkpoint_find_latest(dir, run, NULL, &skipped, &found, &err);
    for (size_t i = 0; i < skipped.paths.count; i++)
        trainer_event(t, RUN_INCOMPLETE, skipped.paths.items[i]);
    if (skipped.reasons.count > 0)
        t->listener->skipped(t->listener->ctx, lines_join(&skipped.reasons));
    if (result == 0)
        take_found(choice, dir, &found);
    else if (must || err.code != ERR_NOT_FOUND)
        outcome_set(&choice->outcome, result, &err);
}

/* Trainer raises an error where its True finds nothing. */
static void choose_own_latest(struct trainer *t, bool must, struct choice *choice)
{
    const char *dir = t->config->checkpoint.dir;
    struct error err;
    choose_latest(t, dir, false, choice);
    if (!must || choice->path[0] || choice->outcome.failed)
        return;
    error_set(
        &err, ERR_NOT_FOUND,
        "resume_from_checkpoint=True: no valid checkpoint found in output directory %s, which "
        "is an error in Trainer, too: leave it out at a first start, or give latest, which "
        "then trains from the beginning",
        dir);
    outcome_set(&choice->outcome, -1, &err);
}

/* Whether two paths name one directory; one that is not there is compared by its name. */
static bool is_same_directory(const char *a, const char *b)
{
    char real_a[PATH_MAX], real_b[PATH_MAX];
    if (realpath(a, real_a) && realpath(b, real_b))
        return strcmp(real_a, real_b) == 0;
    return strcmp(a, b) == 0;
}

/* What a run that starts anew does to the checkpoints that its directory has already. */
static void notify_other_checkpoints(struct trainer *t)
{
    const struct agent_config *c = t->config;
    struct checkpoint_found found;
    struct error ignored;
    if (checkpoint_find_latest(c->checkpoint.dir, NULL, NULL, NULL, &found, &ignored))
        return;
    t->listener->notice(
        t->listener->ctx,
        arena_printf(t->arena,
                     "%s has checkpoints of another run, the latest %s: this run starts anew, "
                     "replaces those whose names its own get%s; to go on from them instead, give "
                     "--resume_from_checkpoint=%s",
                     c->checkpoint.dir, found.path,
                     c->checkpoint.keep_last > 0
                         ? ", and removes those of fewer steps (checkpoint.keep_last)"
                         : " and leaves the rest",
                     c->checkpoint.dir));
    free(found.path);
}

/* Whether this run has saved something before. That shows a restart of which nobody else knows: a
 * kubelet starts a container again with the variables of its first start. */
static bool has_saved_checkpoint(const struct trainer *t)
{
    struct checkpoint_found found;
    struct error ignored;
    if (!t->checkpointer.run[0] ||
        checkpoint_find_latest(t->config->checkpoint.dir, t->checkpointer.run, NULL, NULL, &found,
                               &ignored))
        return false;
    free(found.path);
    return true;
}

/* t5-fsdp.py looks into a directory of this name, whatever its --save_path is. */
static void choose_scripts(struct trainer *t, struct choice *choice)
{
    const char *path = arena_printf(t->arena, "checkpoint_%s", shard_strategy_name(t->strategy));
    if (t->config->logging.style != STYLE_T5)
        return;
    if (has_file(path, "COMPLETE"))
        snprintf(choice->path, sizeof choice->path, "%s", path);
    else if (has_file(path, ".metadata"))
        t->listener->notice(t->listener->ctx,
                            arena_printf(t->arena,
                                         "%s: a checkpoint of PyTorch's, whose pickles are not "
                                         "read: it is passed over",
                                         path));
}

/* What memory holds is this run's own, and from behind what it began with: only a later one of a
 * directory's is newer. */
static bool memory_is_newest(const struct trainer *t, const struct choice *choice)
{
    bool is_latest = choice->path[0] && choice->dir[0];
    int64_t step = t->memory_saver.found.step;
    return step >= 0 && !(is_latest && choice->step > step);
}

/* A restart without a word of where from goes on only with what its own run saved, if it is known
 * which that is. */
static void choose(struct trainer *t, bool any_restarted, struct choice *choice)
{
    const struct agent_config *c = t->config;
    const char *asked = c->checkpoint.resume;
    bool has_memory = t->memory_saver.found.step >= 0;
    bool must = strcmp(asked, "true") == 0 && !has_memory;
    if (strcmp(asked, "true") == 0 || strcmp(asked, "latest") == 0) {
        choose_own_latest(t, must, choice);
        if (!choice->path[0] && !choice->outcome.failed)
            choose_scripts(t, choice);
    } else if (asked[0] && trainer_is_checkpoint(asked)) {
        snprintf(choice->path, sizeof choice->path, "%s", asked);
    } else if (asked[0]) { /* a run that saves where it resumes from has to begin somewhere */
        choose_latest(t, asked, !is_same_directory(asked, c->checkpoint.dir), choice);
    } else if (c->checkpoint.auto_resume && c->checkpoint.dir[0] &&
               (any_restarted || has_saved_checkpoint(t))) {
        choice->own_only = t->checkpointer.run[0] != 0;
        choose_latest(t, c->checkpoint.dir, false, choice);
    }
    choice->from_memory = memory_is_newest(t, choice);
    if (choice->path[0] || choice->outcome.failed || !c->checkpoint.dir[0] || has_memory)
        return;
    if (asked[0])
        t->listener->began_anew(t->listener->ctx, c->checkpoint.dir);
    else
        notify_other_checkpoints(t);
}

/* Pods with a launcher each, and nobody above them who names the run, have no name in common.
 * Collective. */
static int agree_on_run(struct trainer *t, struct error *err)
{
    char run[64] = "", first[sizeof run];
    bool differs = false;
    snprintf(run, sizeof run, "%s", t->env.run ? t->env.run : "");
    memcpy(first, run, sizeof first);
    if (agree_broadcast(t->world, t->compute, first, sizeof first, err) ||
        step_totals_any(&t->totals, strcmp(run, first) != 0, &differs, err))
        return -1;
    t->checkpointer.run = differs ? "" : arena_strdup(t->arena, run);
    return 0;
}

/* Collective. */
static int agree_on_checkpoint(struct trainer *t, struct choice *choice, struct error *err)
{
    bool any_restarted = false;
    if (step_totals_any(&t->totals, t->env.restarted, &any_restarted, err))
        return -1;
    if (t->world->rank == 0)
        choose(t, any_restarted, choice);
    if (agree_broadcast(t->world, t->compute, choice, sizeof *choice, err))
        return -1;
    return outcome_get(&choice->outcome, 0, err);
}

/* ---- loading ---- */

static void go_to(struct trainer *t, const struct checkpoint_state *state)
{
    t->cursor.position = (struct data_position){
        .epoch = state->epoch,
        .epoch_samples = state->epoch_samples,
        .step = state->step,
        .micro_batches = state->micro_batches,
        .owes_evaluation = state->evaluation_owed > 0,
    };
    t->checkpointer.saved_step = state->step;
    t->cursor.state = arena_strdup(t->arena, state->data);
    optim_set_steps(t->optim, state->optimizer_steps);
    const double sums[3] = {state->epoch_loss_sum, state->epoch_correct, state->epoch_rows};
    step_totals_set_share(&t->totals, sums);
}

static int load_parts(struct trainer *t, const char *path, struct checkpoint *checkpoint,
                      struct error *err)
{
    static const enum run_event loaded[] = {RUN_LOAD_MODEL_DONE, RUN_LOAD_OPTIMIZER_DONE};
    struct host_state host;
    host_state_open(t->shard, t->optim, NULL, &host);
    int result = 0;
    for (int part = 0; part < CHECKPOINT_PARTS && result == 0; part++) {
        result = checkpoint_load(checkpoint, (enum checkpoint_part)part, &host.parts[part],
                                 t->config->checkpoint.allow_nonfinite, err);
        if (result == 0)
            trainer_event(t, loaded[part], path);
    }
    if (result == 0)
        result = host_state_copy(&host, TO_DEVICE, err);
    host_state_close(&host);
    if (result == 0)
        shard_values_changed(t->shard);
    return result;
}

/* Steps that ranks had done before they were started again. */
static int64_t steps_lost(const struct trainer *t, int64_t step)
{
    int64_t last = t->memory_saver.found.last_step;
    return last >= step ? last - step : -1;
}

static int load(struct trainer *t, const char *path, struct error *err)
{
    struct checkpoint *checkpoint = NULL;
    trainer_event(t, RUN_LOAD_BEGIN, path);
    int result = checkpoint_open(path, &checkpoint, err);
    if (result == 0)
        result = trainer_check_saved(t, path, checkpoint, err);
    if (result == 0)
        result = load_parts(t, path, checkpoint, err);
    result = agree_all(t->world, t->compute, result, err);
    if (result == 0) {
        const struct checkpoint_state *state = checkpoint_get_state(checkpoint);
        go_to(t, state);
        trainer_schedule_resume(t, state);
        trainer_event(t, RUN_LOAD_DONE, path);
        t->listener->resumed(t->listener->ctx, path, state->step, steps_lost(t, state->step));
        trainer_compare_saved(t, state);
    }
    checkpoint_close(checkpoint);
    return result;
}

static int load_memory(struct trainer *t, const struct choice *choice, struct error *err)
{
    struct checkpoint_state state;
    struct step_sums sums;
    trainer_event(t, RUN_LOAD_BEGIN, NULL);
    int result = memory_saver_load(&t->memory_saver, t->arena, &state, &sums, err);
    if (result == 0)
        result = trainer_check_slots(t, "the snapshot in memory", state.reduction_slots, err);
    if (agree_all(t->world, t->compute, result, err))
        return -1;
    const int sent = t->memory_saver.found.sent, before = t->memory_saver.recut.world_size;
    bool is_recut = t->memory_saver.recut.step >= 0;
    go_to(t, &state);
    if (!is_recut)
        step_totals_restore(&t->totals, &sums);
    bool is_saved = choice->path[0] && choice->dir[0] && choice->step == state.step;
    t->checkpointer.saved_step = is_saved ? state.step : -1;
    trainer_schedule_resume(t, &state);
    const char *path = TRAINER_MEMORY;
    if (is_recut)
        path =
            arena_printf(t->arena, TRAINER_MEMORY " of %d rank%s", before, before == 1 ? "" : "s");
    else if (sent > 0)
        path = arena_printf(t->arena, TRAINER_MEMORY ", for %d rank%s a buddy's", sent,
                            sent == 1 ? "" : "s");
    t->listener->resumed(t->listener->ctx, path, state.step, steps_lost(t, state.step));
    trainer_compare_saved(t, &state);
    return 0;
}

/* After `damage` was found in the latest of a directory: the one before it, or what memory holds.
 * If there is none, the damage stays the error: nobody asked to lose the run. Collective. */
static int choose_older(struct trainer *t, struct choice *choice, const struct error *damage,
                        struct error *err)
{
    if (t->world->rank == 0) {
        struct checkpoint_found found;
        struct error ignored;
        const char *run = choice->own_only ? t->checkpointer.run : NULL;
        auto_free char *damaged = xstrdup(choice->path);
        const struct checkpoint_listed before = {damaged, choice->step};
        choice->path[0] = '\0';
        if (checkpoint_find_latest(choice->dir, run, &before, NULL, &found, &ignored) == 0)
            take_found(choice, choice->dir, &found);
        choice->from_memory = memory_is_newest(t, choice);
        if (choice->path[0] || choice->from_memory)
            t->listener->skipped(t->listener->ctx, damage->msg);
    }
    if (agree_broadcast(t->world, t->compute, choice, sizeof *choice, err))
        return -1;
    if (choice->path[0] || choice->from_memory)
        return 0;
    *err = *damage; /* all ranks have the same */
    return -1;
}

static int load_choice(struct trainer *t, struct choice *choice, struct error *err)
{
    while (!choice->from_memory && load(t, choice->path, err)) {
        const struct error damage = *err;
        bool may_pass = damage.code == ERR_INPUT || damage.code == ERR_NOT_FOUND;
        if (!choice->dir[0] || !damage.shared || !may_pass)
            return -1;
        if (choose_older(t, choice, &damage, err))
            return -1;
    }
    return choice->from_memory ? load_memory(t, choice, err) : 0;
}

/* Another run's steps are not this one's. */
static void report_lost_steps(const struct trainer *t)
{
    const struct memory_found *found = &t->memory_saver.found;
    char text[160];
    if (found->last_step <= 0 || (found->refused.failed && found->refused.code == ERR_CONFLICT))
        return;
    snprintf(
        text, sizeof text,
        "training starts from the beginning (%lld step%s lost): neither memory nor a directory "
        "has a checkpoint for all ranks",
        (long long)found->last_step, found->last_step == 1 ? "" : "s");
    t->listener->notice(t->listener->ctx, text);
}

static int begin_anew(struct trainer *t, struct error *err)
{
    report_lost_steps(t);
    trainer_event(t, RUN_NO_CHECKPOINT, NULL);
    shard_init_values(t->shard, (uint64_t)t->config->runtime.seed);
    return trainer_load_weights(t, err);
}

static void report_fatal_step(const struct trainer *t)
{
    const struct memory_saver *memory = &t->memory_saver;
    char notice[1024];
    auto_str struct str where;
    str_init(&where, 512);
    const int64_t last = memory->found.last_step;
    if (memory->ends < 2 || last < t->cursor.position.step)
        return;
    if (memory->found.begun_step <= last)
        fatal_step_describe_end(last, &where);
    else if (!data_cursor_run_done(&t->cursor))
        fatal_step_describe(&t->cursor, last + 1, &where);
    else
        return;
    snprintf(notice, sizeof notice, RANK_NOTE_ENDS, memory->ends, str_text(&where));
    t->listener->notice(t->listener->ctx, notice);
}

int trainer_resume(struct trainer *t, struct error *err)
{
    step_totals_set(&t->totals, 0, 0, 0);
    struct choice *choice = arena_new(t->arena, struct choice);
    if (agree_on_run(t, err) || trainer_open_memory_saver(t, err) ||
        agree_on_checkpoint(t, choice, err))
        return error_wrap(err, "resume");
    bool anew = !choice->path[0] && !choice->from_memory;
    if (anew && begin_anew(t, err))
        return -1;
    if (!anew && load_choice(t, choice, err)) {
        bool damaged = err->code == ERR_INPUT;
        return error_wrap(err, damaged ? "resume (move the checkpoint away, or name another one)"
                                       : "resume");
    }
    if (memory_saver_start(&t->memory_saver, t->cursor.position.step, err))
        return error_wrap(err, "resume");
    if (choice->from_memory) /* a snapshot of what was cut anew is part of it */
        trainer_event(t, RUN_LOAD_DONE, NULL);
    report_fatal_step(t);
    return 0;
}
