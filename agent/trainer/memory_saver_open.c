/* Opening the memory: what it holds already, whether there is room, and how it is laid out. */
#include "agent/launch/rank_memory.h"
#include "agent/trainer/memory_room.h"
#include "agent/trainer/memory_saver_internal.h"
#include "base/contract.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

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

void memory_saver_notify(const struct memory_saver *s, struct error *why, const char *what)
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

/* most: ranks that there will be. */
static int compare_claims(const struct memory_saver *s, const struct memory_claim *mine, int most,
                          struct error *err)
{
    struct comm *world = s->of.checkpointer->of.world;
    auto_free struct memory_claim *all = xcalloc((size_t)world->size, sizeof *all);
    if (agree_gather(world, s->of.stream, mine, all, sizeof *mine, err))
        return -1;
    int result = memory_room_check(all, world->size, world->rank, most, err);
    return agree_all(world, s->of.stream, result, err);
}

/* Whether all ranks can save to memory: one that cannot is enough, as a run goes on from what all
 * have. Errors: ERR_NOT_FOUND where there is none, ERR_MEMORY. */
static int check_memory(struct memory_saver *s, struct error *err)
{
    const struct checkpointer *c = s->of.checkpointer;
    struct comm *world = c->of.world;
    struct memory_claim mine = {0};
    int result = 0;
    s->bytes = memory_buddies_bytes(&s->buddies, payload_bytes(c));
    if (s->of.fd <= 0)
        result = error_set(err, ERR_NOT_FOUND,
                           "no launcher keeps memory for it: runtime.max_restarts is 0, or a "
                           "warning said why");
    if (agree_all(world, s->of.stream, result, err))
        return -1;
    claim_memory(s, world->rank, &mine);
    return compare_claims(s, &mine, world->size, err);
}

/* Whether there will be room once the run has as few ranks as it may: each has more of the state
 * then. Errors: ERR_MEMORY. */
static int check_fewest(const struct memory_saver *s, int64_t snapshots, struct error *err)
{
    const struct memory_fewest *fewest = &s->of.fewest;
    const int64_t used = rank_memory_used(s->of.fd);
    struct memory_claim mine = {0};
    claim_memory(s, s->of.checkpointer->of.world->rank, &mine);
    mine.snapshots = snapshots - used;
    mine.training = fewest->training;
    mine.held = fewest->held + used;
    if (compare_claims(s, &mine, fewest->ranks, err) == 0)
        return 0;
    return error_wrap(err, "once the run has shrunk to %d rank%s", fewest->ranks,
                      fewest->ranks == 1 ? "" : "s");
}

/* Whether the snapshots that are to be cut anew can stay meanwhile: nothing else comes beside them
 * then. */
static int check_room_beside(struct memory_saver *s, struct error *err)
{
    struct comm *world = s->of.checkpointer->of.world;
    struct memory_claim mine = {0};
    struct error why;
    int result = 0;
    claim_memory(s, world->rank, &mine);
    mine.snapshots = s->bytes;
    mine.training = 0;
    if (!rank_memory_gives_back(s->of.fd))
        result = error_set(&why, ERR_MEMORY, "the system takes no part of a memfd back");
    result = agree_all(world, s->of.stream, result, &why);
    if (result == 0)
        result = compare_claims(s, &mine, world->size, &why);
    s->has_room_beside = result == 0;
    if (result == 0 || why.code == ERR_MEMORY)
        return 0;
    *err = why;
    return -1;
}

/* Unless it was asked for by number, and memory is short, which is the error. */
static int go_on_without(const struct memory_saver *s, struct error *err)
{
    bool is_asked = s->of.every_steps != MEMORY_SAVER_AUTO;
    if (err->code == ERR_MEMORY && is_asked)
        return error_wrap(err, "checkpoint.memory_every_steps (0 saves none)");
    if (err->code != ERR_MEMORY && err->code != ERR_NOT_FOUND)
        return -1;
    if (err->code == ERR_MEMORY || is_asked)
        memory_saver_notify(
            s, err, "there will be no checkpoints in memory (checkpoint.memory_every_steps)");
    return 0;
}

/* *ret_on: whether they save. */
static int agree_on_memory(struct memory_saver *s, bool *ret_on, struct error *err)
{
    const struct memory_buddy_plan *plan = &s->buddies.plan;
    int result = check_memory(s, err);
    if (result && err->code == ERR_MEMORY && plan->is_uneven && !plan->is_moving) {
        memory_saver_notify(s, err,
                            "ranks keep others' snapshots with no regard to nodes "
                            "(checkpoint.memory_buddies)");
        if (memory_buddies_level(&s->buddies, err))
            return -1;
        result = check_memory(s, err);
    }
    if (result && err->code == ERR_MEMORY && plan->has_groups) {
        memory_saver_notify(s, err,
                            "no rank keeps another's snapshots (checkpoint.memory_buddies)");
        memory_buddies_part(&s->buddies);
        result = check_memory(s, err);
    }
    *ret_on = result == 0;
    if (result)
        return go_on_without(s, err);
    return s->recut.step >= 0 ? check_room_beside(s, err) : 0;
}

/* What would be short only then is told now: with a number asked for, the run would end there. */
static int look_at_fewest(const struct memory_saver *s, struct error *err)
{
    const struct memory_fewest *fewest = &s->of.fewest;
    if (fewest->ranks <= 0 || fewest->ranks >= s->of.checkpointer->of.world->size)
        return 0;
    if (check_fewest(s, fewest->own, err))
        return go_on_without(s, err);
    if (!s->buddies.plan.has_groups || check_fewest(s, fewest->kept, err) == 0)
        return 0;
    if (err->code != ERR_MEMORY)
        return -1;
    memory_saver_notify(s, err, "no rank keeps another's snapshots (checkpoint.memory_buddies)");
    return 0;
}

/* where: gets where they are. */
static int open_buddies(struct memory_saver *s, struct str *where, struct error *err)
{
    struct memory_bound bounds[MEMORY_BOUNDS] = {0};
    struct error notice;
    auto_str struct str why;
    str_init(&why, sizeof notice.msg);
    if (s->of.fd > 0)
        s->of.memory_left(bounds);
    struct memory_place place = {.local_size = s->of.local_size,
                                 .node = s->of.node,
                                 .machine = bounds[MEMORY_OF_MACHINE].id};
    if (s->recut.step < 0)
        place.before = s->recut.neighbours;
    if (memory_buddies_open(&s->buddies, s->of.host, &place, s->of.has_buddies, &why, where, err))
        return -1;
    if (why.length == 0)
        return 0;
    error_set(&notice, ERR_CONFIG, "%s", str_text(&why));
    memory_saver_notify(s, &notice,
                        "no rank keeps another's snapshots (checkpoint.memory_buddies)");
    return 0;
}

/* This rank's snapshots, but for their layout. */
static struct memory_snapshot_id identify(const struct memory_saver *s)
{
    const struct checkpointer_run *of = &s->of.checkpointer->of;
    int size = of->world->size, slices = shard_group_size(of->shard);
    struct memory_snapshot_id id = {.world_size = size,
                                    .rank = of->world->rank,
                                    .slice = of->world->rank % slices,
                                    .slices = slices,
                                    .parts = shard_has_slots(of->shard) ? size : slices};
    snprintf(id.run, sizeof id.run, "%s", s->of.checkpointer->run);
    snprintf(id.program, sizeof id.program, "%s", SHOAL_VERSION);
    id.recipe =
        memory_recut_recipe(of->shard, of->optim, optim_kind(of->config->optimizer.name)->name,
                            of->model_config ? of->model_config : "");
    return id;
}

static int lay_out(struct memory_saver *s, struct error *err)
{
    const struct checkpointer *c = s->of.checkpointer;
    struct memory_snapshot_id id = identify(s);
    /* Only to find the slots: what is in them is looked at once their layout is known. */
    const struct memory_snapshots own = {.memory = s->memory, .payload_bytes = payload_bytes(c)};
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++) {
        struct payload *payload = memory_snapshot_payload(&own, slot);
        host_state_open(c->of.shard, c->of.optim, payload->tensors, &s->states[slot]);
    }
    id.layout = layout_of(&c->of, &s->states[0]);
    if (memory_buddies_lay_out(&s->buddies, s->memory, payload_bytes(c), &id, err))
        return -1;
    return memory_saver_open_beside(s, err);
}

/* What is to be cut anew stays. */
static void give_memory_back(struct memory_saver *s)
{
    memory_saver_unmap(s);
    if (s->recut.end > 0)
        rank_memory_keep(s->of.fd, s->recut.begin, s->recut.end);
    else
        rank_memory_empty(s->of.fd);
}

/* The system may refuse what seemed to be left. One rank without is enough for none to save, and
 * the others' is given back. */
static int map_memory(struct memory_saver *s, int64_t offset, struct error *err)
{
    int result = rank_memory_map(s->of.fd, offset, s->bytes, &s->memory, err);
    if (agree_all(s->of.checkpointer->of.world, s->of.stream, result, err) == 0)
        return 0;
    give_memory_back(s);
    return -1;
}

int memory_saver_lay_out(struct memory_saver *s, bool beside, struct error *err)
{
    struct comm *world = s->of.checkpointer->of.world;
    const int64_t page = sysconf(_SC_PAGESIZE), first = s->recut.begin;
    const int64_t behind = s->recut.end > 0 ? (s->recut.end + page - 1) / page * page : first;
    int result = beside ? map_memory(s, behind, err) : -1;
    if (result && beside && err->code != ERR_MEMORY)
        return -1;
    if (result) {
        memory_recut_close(&s->recut);
        result = map_memory(s, first, err);
    }
    if (result)
        return go_on_without(s, err);
    if (agree_all(world, s->of.stream, lay_out(s, err), err) == 0)
        return 0;
    /* One rank's GPU has no page-locked memory for its copies. */
    if (err->code == ERR_MEMORY)
        give_memory_back(s);
    return go_on_without(s, err);
}

int memory_saver_move(struct memory_saver *s, struct error *err)
{
    const int own = s->found.slots[s->buddies.group.me];
    bool is_on;
    memory_saver_unmap(s);
    if (memory_buddies_move(&s->buddies, err) || agree_on_memory(s, &is_on, err))
        return -1;
    for (int m = 0; m < MEMORY_GROUP_MOST; m++) {
        s->found.slots[m] = m == s->buddies.group.me ? own : -1;
        s->found.older[m] = -1;
    }
    return is_on ? memory_saver_lay_out(s, false, err) : 0;
}

static void tell_places(const struct memory_saver *s, const char *where)
{
    const struct trainer_listener *listener = s->of.checkpointer->of.listener;
    if (s->buddies.plan.is_exposed)
        listener->notice(listener->ctx, where);
    else
        listener->info(listener->ctx, where);
}

int memory_saver_open(struct memory_saver *s, const struct memory_saver_run *run, struct error *err)
{
    const struct checkpointer *c = run->checkpointer;
    auto_str struct str where;
    str_init(&where, 4096);
    *s = (struct memory_saver){
        .of = *run, .found = {.step = -1, .last_step = -1}, .recut = {.step = -1, .last_step = -1}};
    if (run->every_steps == MEMORY_SAVER_OFF)
        return 0;
    const struct memory_snapshot_id id = identify(s);
    if (memory_recut_find(c->of.world, run->stream, run->fd, &id, &s->recut, err) ||
        open_buddies(s, &where, err))
        return -1;
    const bool is_uneven = s->buddies.plan.is_uneven;
    if (agree_on_memory(s, &s->is_on, err))
        return -1;
    if (s->is_on && s->buddies.plan.has_groups && s->buddies.plan.is_uneven == is_uneven)
        tell_places(s, str_text(&where));
    if (s->is_on && look_at_fewest(s, err))
        return -1;
    /* What is to be cut anew is loaded first. */
    return s->is_on && s->recut.step < 0 ? memory_saver_lay_out(s, false, err) : 0;
}
