#include "agent/trainer/memory_saver.h"

#include "agent/launch/rank_memory.h"
#include "agent/trainer/memory_saver_internal.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_LOOK_STEPS = 2, /* the first step is slower than any other */
    FIRST_BYTES_PER_US = 1000,
};

void memory_saver_unmap(struct memory_saver *s)
{
    memory_saver_abandon(s);
    memory_copy_close(&s->copy);
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++) {
        host_state_close(&s->states[slot]);
        s->states[slot] = (struct host_state){0};
    }
    rank_memory_unmap(s->memory, s->bytes);
    s->memory = NULL;
}

void memory_saver_close(struct memory_saver *s)
{
    memory_saver_abandon(s);
    memory_copy_close(&s->copy);
    memory_buddies_close(&s->buddies);
    memory_recut_close(&s->recut);
    memory_saver_unmap(s);
    *s = (struct memory_saver){0};
}

/* ---- going on ---- */

int memory_saver_find(struct memory_saver *s, struct error *err)
{
    if (s->recut.step >= 0) {
        s->found = (struct memory_found){.step = s->recut.step};
        for (int m = 0; m < MEMORY_GROUP_MOST; m++)
            s->found.slots[m] = s->found.older[m] = -1;
    } else if (!s->memory) {
        return 0;
    } else if (memory_recovery_find(s->of.checkpointer->of.world, s->of.stream, &s->buddies.group,
                                    s->buddies.kept, &s->found, err)) {
        return -1;
    }
    if (s->recut.last_step > s->found.last_step)
        s->found.last_step = s->recut.last_step;
    struct error why;
    if (outcome_get(&s->found.refused, s->found.refused_rank, &why))
        memory_saver_notify(s, &why, "a checkpoint in memory is passed over");
    return 0;
}

static int load_recut(struct memory_saver *s, struct arena *arena,
                      struct checkpoint_state *ret_state, struct error *err)
{
    const struct checkpointer_run *of = &s->of.checkpointer->of;
    auto_free void *head = NULL;
    if (memory_recut_load(&s->recut, s->of.host, of->shard, of->optim,
                          (int64_t)offsetof(struct payload, tensors), &head, err))
        return -1;
    const struct payload *payload = head;
    return checkpoint_state_parse(arena, "the checkpoint in memory", payload->state,
                                  strnlen(payload->state, MEMORY_TEXT_BYTES), ret_state, err);
}

int memory_saver_load(struct memory_saver *s, struct arena *arena,
                      struct checkpoint_state *ret_state, struct step_sums *ret_sums,
                      struct error *err)
{
    if (s->recut.step >= 0)
        return load_recut(s, arena, ret_state, err);
    if (memory_buddies_fetch(&s->buddies, &s->found, err))
        return -1;
    int slot = s->found.slots[s->buddies.group.me];
    const struct payload *payload = memory_snapshot_payload(memory_saver_own(s), slot);
    if (checkpoint_state_parse(arena, "the checkpoint in memory", payload->state,
                               strnlen(payload->state, MEMORY_TEXT_BYTES), ret_state, err))
        return -1;
    *ret_sums = payload->sums;
    if (host_state_copy(&s->states[slot], TO_DEVICE, err))
        return -1;
    shard_values_changed(s->of.checkpointer->of.shard);
    return 0;
}

/* ---- saving ---- */

void memory_saver_step_begins(struct memory_saver *s, int64_t step)
{
    if (!s->memory)
        return;
    memory_snapshot_set_begun_step(memory_saver_own(s), step);
    if (s->of.every_steps == MEMORY_SAVER_AUTO)
        s->begin_us = s->of.now_us();
}

void memory_saver_step_is_none(struct memory_saver *s, int64_t last_step)
{
    if (s->memory)
        memory_snapshot_set_begun_step(memory_saver_own(s), last_step);
}

void memory_saver_before_update(struct memory_saver *s)
{
    memory_copy_before_update(&s->copy);
}

void memory_saver_step_ends(struct memory_saver *s, int64_t step)
{
    if (!s->memory)
        return;
    memory_snapshot_set_last_step(memory_saver_own(s), step);
    if (s->of.every_steps != MEMORY_SAVER_AUTO)
        return;
    s->late_us += s->of.now_us() - s->begin_us;
    s->late_steps++;
}

/* ---- where it begins ---- */

/* is_recut: the ranks are others than before. That ended the run, and no step of it. */
static void begin(struct memory_saver *s, int64_t step, bool is_recut)
{
    memory_buddies_keep(&s->buddies, &s->found, step);
    bool is_ours = !s->found.refused.failed || s->found.refused.code != ERR_CONFLICT;
    if (is_recut || !is_ours)
        memory_snapshot_forget_ends(memory_saver_own(s));
    else if (s->found.last_step >= 0)
        s->ends = memory_snapshot_count_end(memory_saver_own(s), s->found.last_step);
    memory_snapshot_set_last_step(memory_saver_own(s), step);
    memory_snapshot_set_begun_step(memory_saver_own(s), step);
    s->due_step = step + FIRST_LOOK_STEPS;
    s->only_looks = true;
    s->cost.save_us = s->bytes / MEMORY_SNAPSHOT_SLOTS / FIRST_BYTES_PER_US;
}

/* Snapshots of another cut are forgotten once there is one of this. */
static int begin_recut(struct memory_saver *s, int64_t step, struct error *err)
{
    bool is_from_there = s->recut.step == step;
    if (memory_saver_lay_out(s, is_from_there && s->has_room_beside, err))
        return -1;
    if (!s->memory)
        return 0;
    begin(s, step, true);
    if (is_from_there && (memory_saver_take(s, step, err) || memory_saver_finish(s, err)))
        return -1;
    const int64_t end = rank_memory_size(s->of.fd);
    rank_memory_keep(s->of.fd, end - s->bytes, end);
    return 0;
}

/* Pods are on other nodes than at the last start, so others are buddies now. What was found is sent
 * to them at once. */
static int begin_moved(struct memory_saver *s, int64_t step, struct error *err)
{
    if (memory_saver_move(s, err))
        return -1;
    if (!s->memory)
        return 0;
    begin(s, step, false);
    return s->found.step == step && (memory_saver_take(s, step, err) || memory_saver_finish(s, err))
               ? -1
               : 0;
}

/* Who was to keep a copy may have been lost, or the copy have been on its way when ranks were: the
 * next loss may come before the next snapshot. Until it is there, the steps before are kept. */
static int begin_again(struct memory_saver *s, int64_t step, struct error *err)
{
    begin(s, step, false);
    return s->found.step == step && s->found.lacking > 0 ? memory_saver_send_found(s, err) : 0;
}

int memory_saver_start(struct memory_saver *s, int64_t step, struct error *err)
{
    int result = 0;
    if (s->is_on && s->recut.step >= 0)
        result = begin_recut(s, step, err);
    else if (s->memory && s->buddies.plan.is_moving)
        result = begin_moved(s, step, err);
    else if (s->memory)
        result = begin_again(s, step, err);
    memory_recut_close(&s->recut);
    return result;
}

/* ---- every so many steps ---- */

/* When the next one is due, the same on all ranks. Counts what it costs to find out. */
static int look_ahead(struct memory_saver *s, int64_t step, struct error *err)
{
    struct comm *world = s->of.checkpointer->of.world;
    auto_free struct memory_cost *all = xcalloc((size_t)world->size, sizeof *all);
    s->cost.steps_us += s->late_us;
    if (s->late_steps > 0)
        s->cost.step_us = s->late_us / s->late_steps;
    s->late_us = s->late_steps = 0;
    if (agree_gather(world, s->of.stream, &s->cost, all, sizeof s->cost, err))
        return -1;
    s->due_step = step + memory_interval(all, world->size);
    s->only_looks = false;
    return 0;
}

static int save_when_cheap(struct memory_saver *s, int64_t step, struct error *err)
{
    if (step < s->due_step)
        return 0;
    int64_t begin_us = s->of.now_us();
    if (!s->only_looks) {
        if (memory_saver_take(s, step, err))
            return -1;
        s->cost.save_us = s->of.now_us() - begin_us + s->beside_us;
        s->cost.spent_us += s->cost.save_us;
        begin_us += s->cost.save_us - s->beside_us;
    }
    if (look_ahead(s, step, err))
        return -1;
    s->cost.spent_us += s->of.now_us() - begin_us;
    return 0;
}

int memory_saver_save(struct memory_saver *s, int64_t step, struct error *err)
{
    if (!s->memory)
        return 0;
    if (memory_saver_look(s, err))
        return -1;
    if (s->of.every_steps == MEMORY_SAVER_AUTO)
        return save_when_cheap(s, step, err);
    return step % s->of.every_steps == 0 ? memory_saver_take(s, step, err) : 0;
}

/* Of use where a buddy keeps it, as whose pod goes takes its memory along; or where other ranks
 * take the place of these. */
int memory_saver_save_last(struct memory_saver *s, int64_t step, struct error *err)
{
    if (!s->memory)
        return 0;
    memory_snapshot_end_was_asked(memory_saver_own(s));
    bool is_of_use = s->of.has_buddies || s->of.fewest.ranks > 0;
    if (is_of_use && s->saved_step != step && memory_saver_take(s, step, err))
        return -1;
    return memory_saver_finish(s, err);
}
