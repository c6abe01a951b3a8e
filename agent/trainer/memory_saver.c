#include "agent/trainer/memory_saver.h"

#include "agent/checkpoint/nonfinite.h"
#include "agent/launch/rank_memory.h"
#include "agent/trainer/memory_room.h"
#include "base/contract.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    TEXT_BYTES = 16 * 1024, /* of checkpoint_state as JSON: its texts are short */
    FIRST_LOOK_STEPS = 2,   /* the first step is slower than any other */
    FIRST_BYTES_PER_US = 1000,
};

/* A payload: this, then the tensors. */
struct payload {
    struct step_sums sums;
    char state[TEXT_BYTES];
    _Alignas(64) char tensors[];
};

/* ---- opening ---- */

static void hash(uint64_t *at, const void *data, size_t bytes)
{
    *at = XXH3_64bits_withSeed(data, bytes, *at);
}

static void hash_text(uint64_t *at, const char *text)
{
    hash(at, text, strlen(text) + 1);
}

/* All that decides which number lies where, and what it is. */
static uint64_t layout_of(const struct checkpointer_run *run, const struct host_state *host)
{
    uint64_t at = 0;
    hash_text(&at, run->model_config ? run->model_config : "");
    hash_text(&at, optim_kind(run->config->optimizer.name)->name);
    hash_text(&at, run->strategy);
    for (int part = 0; part < CHECKPOINT_PARTS; part++)
        for (int i = 0; i < host->parts[part].count; i++) {
            const struct tensor_range *range = &host->parts[part].items[i];
            const int64_t numbers[] = {range->dims, range->first, range->count, range->dtype};
            hash_text(&at, range->name);
            hash(&at, numbers, sizeof numbers);
            hash(&at, range->shape, (size_t)range->dims * sizeof range->shape[0]);
        }
    return at;
}

static int64_t payload_bytes(const struct checkpointer *c)
{
    return (int64_t)sizeof(struct payload) + host_state_bytes(c->of.shard, c->of.optim);
}

static void notify(const struct memory_saver *s, struct error *why, const char *what)
{
    const struct trainer_listener *listener = s->of.checkpointer->of.listener;
    error_wrap(why, "%s", what);
    listener->notice(listener->ctx, why->msg);
}

/* Those of one launcher share, where nobody tells who does. */
static void claim_memory(const struct memory_saver *s, int rank, struct memory_claim *ret)
{
    s->of.memory_left(ret->bounds);
    for (int of = 0; of < MEMORY_BOUNDS; of++)
        if (ret->bounds[of].id == 0)
            ret->bounds[of].id = 1 + (uint64_t)(rank / s->of.local_size);
    ret->snapshots = s->bytes - rank_memory_used(s->of.fd);
    ret->training = s->of.bytes_to_come;
}

/* Whether all ranks can save to memory: one that cannot is enough, as a run goes on from what all
 * have. Errors: ERR_NOT_FOUND where there is none, ERR_MEMORY. */
static int check_memory(struct memory_saver *s, struct error *err)
{
    const struct checkpointer *c = s->of.checkpointer;
    struct comm *world = c->of.world;
    struct memory_claim mine = {0};
    auto_free struct memory_claim *all = xcalloc((size_t)world->size, sizeof *all);
    int result = 0;
    s->bytes = memory_buddies_bytes(&s->buddies, payload_bytes(c));
    if (s->of.fd <= 0)
        result = error_set(err, ERR_NOT_FOUND,
                           "no launcher keeps memory for it: runtime.max_restarts is 0, or a "
                           "warning said why");
    if (agree_all(world, s->of.stream, result, err))
        return -1;
    claim_memory(s, world->rank, &mine);
    if (agree_gather(world, s->of.stream, &mine, all, sizeof mine, err))
        return -1;
    return agree_all(world, s->of.stream, memory_room_check(all, world->size, world->rank, err),
                     err);
}

/* *ret_on: whether they save. */
static int agree_on_memory(struct memory_saver *s, bool *ret_on, struct error *err)
{
    bool is_asked = s->of.every_steps != MEMORY_SAVER_AUTO;
    int result = check_memory(s, err);
    if (result && err->code == ERR_MEMORY && s->buddies.group.count > 1) {
        notify(s, err, "no rank keeps another's snapshots (checkpoint.memory_buddies)");
        memory_buddies_part(&s->buddies);
        result = check_memory(s, err);
    }
    *ret_on = result == 0;
    if (result == 0)
        return 0;
    if (err->code == ERR_MEMORY && is_asked)
        return error_wrap(err, "checkpoint.memory_every_steps (0 saves none)");
    if (err->code != ERR_MEMORY && err->code != ERR_NOT_FOUND)
        return -1;
    if (err->code == ERR_MEMORY || is_asked)
        notify(s, err, "there will be no checkpoints in memory (checkpoint.memory_every_steps)");
    return 0;
}

static int open_buddies(struct memory_saver *s, struct error *err)
{
    const char *why;
    struct error notice;
    if (memory_buddies_open(&s->buddies, s->of.host, s->of.local_size, s->of.has_buddies, &why,
                            err))
        return -1;
    if (!why[0])
        return 0;
    error_set(&notice, ERR_CONFIG, "%s", why);
    notify(s, &notice, "no rank keeps another's snapshots (checkpoint.memory_buddies)");
    return 0;
}

static int lay_out(struct memory_saver *s, struct error *err)
{
    const struct checkpointer *c = s->of.checkpointer;
    struct memory_snapshot_id id = {.world_size = c->of.world->size, .rank = c->of.world->rank};
    /* Only to find the slots: what is in them is looked at once their layout is known. */
    const struct memory_snapshots own = {.memory = s->memory, .payload_bytes = payload_bytes(c)};
    snprintf(id.run, sizeof id.run, "%s", c->run);
    snprintf(id.program, sizeof id.program, "%s", SHOAL_VERSION);
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++) {
        struct payload *payload = memory_snapshot_payload(&own, slot);
        host_state_open(c->of.shard, c->of.optim, payload->tensors, &s->states[slot]);
    }
    id.layout = layout_of(&c->of, &s->states[0]);
    return memory_buddies_lay_out(&s->buddies, s->memory, payload_bytes(c), &id, err);
}

int memory_saver_open(struct memory_saver *s, const struct memory_saver_run *run, struct error *err)
{
    bool is_on;
    const struct checkpointer *c = run->checkpointer;
    *s = (struct memory_saver){.of = *run, .found = {.step = -1, .last_step = -1}};
    if (run->every_steps == MEMORY_SAVER_OFF)
        return 0;
    if (open_buddies(s, err) || agree_on_memory(s, &is_on, err))
        return -1;
    if (!is_on)
        return 0;
    int result = rank_memory_map(run->fd, s->bytes, &s->memory, err);
    if (agree_all(c->of.world, run->stream, result, err))
        return -1;
    return agree_all(c->of.world, run->stream, lay_out(s, err), err);
}

void memory_saver_close(struct memory_saver *s)
{
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++)
        host_state_close(&s->states[slot]);
    memory_buddies_close(&s->buddies);
    rank_memory_unmap(s->memory, s->bytes);
    *s = (struct memory_saver){0};
}

/* ---- going on ---- */

static struct memory_snapshots *own(struct memory_saver *s)
{
    return &s->buddies.kept[s->buddies.group.me];
}

int memory_saver_find(struct memory_saver *s, struct error *err)
{
    if (!s->memory)
        return 0;
    if (memory_recovery_find(s->of.checkpointer->of.world, s->of.stream, &s->buddies.group,
                             s->buddies.kept, &s->found, err))
        return -1;
    struct error why;
    if (outcome_get(&s->found.refused, s->found.refused_rank, &why))
        notify(s, &why, "a checkpoint in memory is passed over");
    return 0;
}

int memory_saver_load(struct memory_saver *s, struct arena *arena,
                      struct checkpoint_state *ret_state, struct step_sums *ret_sums,
                      struct error *err)
{
    if (memory_buddies_fetch(&s->buddies, &s->found, err))
        return -1;
    int slot = s->found.slots[s->buddies.group.me];
    const struct payload *payload = memory_snapshot_payload(own(s), slot);
    if (checkpoint_state_parse(arena, "the checkpoint in memory", payload->state,
                               strnlen(payload->state, TEXT_BYTES), ret_state, err))
        return -1;
    *ret_sums = payload->sums;
    if (host_state_copy(&s->states[slot], TO_DEVICE, err))
        return -1;
    shard_values_changed(s->of.checkpointer->of.shard);
    return 0;
}

void memory_saver_start(struct memory_saver *s, int64_t step)
{
    if (!s->memory)
        return;
    memory_buddies_keep(&s->buddies, &s->found, step);
    memory_snapshot_set_last_step(own(s), step);
    s->due_step = step + FIRST_LOOK_STEPS;
    s->only_looks = true;
    s->cost.save_us = s->bytes / MEMORY_SNAPSHOT_SLOTS / FIRST_BYTES_PER_US;
}

/* ---- saving ---- */

void memory_saver_step_begins(struct memory_saver *s)
{
    if (s->memory && s->of.every_steps == MEMORY_SAVER_AUTO)
        s->begin_us = s->of.now_us();
}

void memory_saver_step_ends(struct memory_saver *s, int64_t step)
{
    if (!s->memory)
        return;
    memory_snapshot_set_last_step(own(s), step);
    if (s->of.every_steps != MEMORY_SAVER_AUTO)
        return;
    s->late_us += s->of.now_us() - s->begin_us;
    s->late_steps++;
}

/* One rank that does not commit ends the run, as on disk: a step that one of them lacks is of no
 * use to the others. */
static int check_finite(const struct memory_saver *s, const struct host_state *host,
                        struct error *err)
{
    int result = 0;
    if (s->of.checkpointer->of.config->checkpoint.allow_nonfinite)
        return 0;
    for (int part = 0; part < CHECKPOINT_PARTS && result == 0; part++)
        result = nonfinite_check(&host->parts[part], err);
    return result;
}

static int copy(struct memory_saver *s, int64_t step, struct error *err)
{
    const struct checkpointer *c = s->of.checkpointer;
    struct checkpoint_state state;
    int slot;
    struct payload *payload = memory_snapshot_begin(own(s), &slot);
    if (host_state_copy(&s->states[slot], TO_HOST, err) || check_finite(s, &s->states[slot], err))
        return -1;
    step_totals_keep(c->of.totals, &payload->sums);
    auto_arena struct arena *arena = arena_open();
    checkpointer_describe(c, payload->sums.totals, arena, &state);
    auto_free char *text = checkpoint_state_print(&state);
    if (strlen(text) >= sizeof payload->state)
        return error_set(err, ERR_LIMIT, "the state of the run is longer than %d bytes",
                         TEXT_BYTES);
    snprintf(payload->state, sizeof payload->state, "%s", text);
    memory_snapshot_commit(own(s), step, own(s)->payload_bytes);
    return memory_buddies_exchange(&s->buddies, step, err);
}

static int take_snapshot(struct memory_saver *s, int64_t step, struct error *err)
{
    enum rank_phase before = activity_enter(s->of.activity, RANK_SNAPSHOT);
    int result = copy(s, step, err);
    activity_enter(s->of.activity, before);
    return result;
}

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
        if (take_snapshot(s, step, err))
            return -1;
        s->cost.save_us = s->of.now_us() - begin_us;
        s->cost.spent_us += s->cost.save_us;
        begin_us += s->cost.save_us;
    }
    if (look_ahead(s, step, err))
        return -1;
    s->cost.spent_us += s->of.now_us() - begin_us;
    return 0;
}

int memory_saver_save(struct memory_saver *s, int64_t step, struct error *err)
{
    int result = 0;
    if (!s->memory)
        return 0;
    if (s->of.every_steps == MEMORY_SAVER_AUTO)
        result = save_when_cheap(s, step, err);
    else if (step % s->of.every_steps == 0)
        result = take_snapshot(s, step, err);
    return result ? error_wrap(err, "checkpoint in memory at step %" PRId64, step) : 0;
}
