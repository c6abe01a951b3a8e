/* A GPU's memory: reserved by the run's plan before its first tensor, and what to say when it is
 * too small, then or later. */
#include "agent/comm/agree.h"
#include "agent/comm/comm_device.h"
#include "agent/comm/nccl_api.h"
#include "agent/plan/run_plan_facts.h"
#include "agent/shard/window_plan.h"
#include "agent/trainer/trainer_internal.h"
#include "base/gigabytes.h"

#include <stdio.h>
#include <string.h>

/* What saves how much, by the plan, if there is a model to plan. */
static const char *hints_of(const struct trainer *t)
{
    static const char least[] = "a smaller model or more GPUs";
    if (!t->model)
        return least;
    const struct run_plan_world world = {t->world->size, t->group_size,
                                         device_compute_capability(t->device), NULL};
    struct error ignored;
    auto_str struct str text;
    str_init(&text, 512);
    if (run_plan_savings(t->config, t->model, &world, t->strategy, &text, &ignored))
        return least;
    return arena_strdup(t->arena, str_text(&text));
}

int trainer_memory_fits(const char *strategy, int64_t needed, const struct memory_share *share,
                        const char *hints, struct error *err)
{
    char others[64] = "";
    if (needed <= share->bytes)
        return 0;
    if (share->ranks > 1)
        snprintf(others, sizeof others, " for each of the %d ranks that share it", share->ranks);
    return error_set(err, ERR_MEMORY,
                     "%s needs at least %.2f GB of the GPU's memory (shoal plan lists it), "
                     "but %.2f of its %.2f GB are free%s: %.2f GB are missing; %s",
                     strategy, gigabytes(needed), gigabytes(share->bytes),
                     gigabytes(share->total_bytes), others, gigabytes(needed - share->bytes),
                     hints);
}

/* What a rank sends the others before any of them reserves. */
struct reading {
    char gpu[DEVICE_UUID_BYTES];
    int64_t free_bytes;
};

static int share_memory(const struct trainer *t, struct arena *arena, struct memory_share *ret,
                        struct error *err)
{
    const int size = t->world->size;
    struct reading mine = {0}, *all = arena_array(arena, struct reading, size);
    struct memory_share share = {0};
    mine.free_bytes = device_memory_free_bytes(t->device, &share.total_bytes);
    snprintf(mine.gpu, sizeof mine.gpu, "%s", device_uuid(t->device));
    if (agree_gather(t->world, t->compute, &mine, all, sizeof mine, err))
        return -1;
    share.bytes = mine.free_bytes;
    for (int r = 0; r < size; r++) {
        if (strcmp(all[r].gpu, mine.gpu) != 0)
            continue;
        share.ranks++;
        share.bytes = all[r].free_bytes < share.bytes ? all[r].free_bytes : share.bytes;
    }
    /* Ranks that share a GPU each see all of its free memory, and would reserve it twice. */
    share.bytes /= share.ranks;
    *ret = share;
    return 0;
}

_Static_assert((int)WINDOW_GRANULE == (int)NCCL_MEMORY_GRANULE, "the plan counts them");

static bool uses_nccl(const struct trainer *t)
{
    return t->world != t->env.world && t->config->runtime.collectives != COMM_DEVICE_HOST;
}

static bool registers_with_nccl(const struct trainer *t)
{
    return t->config->runtime.register_buffers != REGISTER_NOTHING && uses_nccl(t);
}

/* NCCL's memory has whole granules: one more if there is room, else what is left of the last one is
 * done without. */
static int64_t round_to_granule(int64_t bytes, int64_t most)
{
    const int64_t down = bytes / NCCL_MEMORY_GRANULE * NCCL_MEMORY_GRANULE;
    return down == bytes || down + NCCL_MEMORY_GRANULE > most ? down : down + NCCL_MEMORY_GRANULE;
}

/* NCCL's rule: what one rank passes registered, all do; and in NCCL 2.27 a rank that cannot
 * register its memory leaves where the others wait for it. */
static int agree_whose_memory(const struct trainer *t, bool is_lent, struct error *err)
{
    const int size = t->world->size;
    int32_t mine = is_lent;
    auto_free int32_t *all = xcalloc((size_t)size, sizeof *all);
    if (agree_gather(t->world, t->compute, &mine, all, sizeof mine, err))
        return -1;
    int other = 1;
    while (other < size && all[other] == all[0])
        other++;
    if (other >= size)
        return 0;
    error_set(err, ERR_MEMORY,
              "runtime.register_buffers: NCCL has memory (ncclMemAlloc) for rank %d and none for "
              "rank %d, and registers that of all ranks or of none: make room there, or leave it "
              "out",
              all[0] ? 0 : other, all[0] ? other : 0);
    err->shared = true;
    return -1;
}

static int tell_whose_memory(const struct trainer *t, struct error *err)
{
    struct memory_use use;
    device_memory_use(t->device, &use);
    if (!registers_with_nccl(t))
        return 0;
    if (agree_whose_memory(t, use.reserve_is_lent, err))
        return -1;
    if (use.reserved_bytes > 0)
        t->listener->notice(t->listener->ctx,
                            use.reserve_is_lent
                                ? "runtime.register_buffers: the run's memory is NCCL's "
                                  "(ncclMemAlloc)"
                                : "runtime.register_buffers: the run's memory is CUDA's own "
                                  "(cudaMalloc), which NVLink SHARP cannot use: NCCL's "
                                  "(ncclMemAlloc, 2.27 or newer) is not to be had");
    return 0;
}

static int reserve(const struct trainer *t, const struct memory_share *share, struct arena *arena,
                   struct error *err)
{
    struct run_plan_facts facts;
    struct run_plan plan;
    const struct run_plan_world world = {t->world->size, t->group_size,
                                         device_compute_capability(t->device), NULL};
    if (run_plan_facts_make(t->config, t->model, &world, arena, &facts, err))
        return -1;
    facts.slots = t->fixed_slots ? t->slots.count : 0;
    facts.windows = t->world->has_windows;
    run_plan_make(&facts, &plan);
    const struct run_plan_strategy *s = &plan.strategies[t->strategy - FULL_SHARD];
    int64_t known = s->device - s->allowance - plan.graphs;
    if (trainer_memory_fits(shard_strategy_name(s->strategy), known, share, hints_of(t), err))
        return -1;
    /* what asks the driver later */
    int64_t libraries = run_plan_libraries(uses_nccl(t) ? t->world->size : 1, share->total_bytes);
    int64_t most = share->bytes - s->windows - plan.graphs - libraries;
    int64_t bytes = s->reserve < most ? s->reserve : most;
    if (registers_with_nccl(t)) /* which rounds up */
        bytes = round_to_granule(bytes, most);
    return bytes > 0 ? device_reserve(t->device, (size_t)bytes, err) : 0;
}

int trainer_reserve_memory(struct trainer *t, struct error *err)
{
    if (device_is_host(t->device))
        return 0;
    auto_arena struct arena *arena = arena_open();
    struct memory_share share;
    if (share_memory(t, arena, &share, err))
        return -1;
    int result = reserve(t, &share, arena, err);
    if (agree_all(t->world, t->compute, result, err))
        return -1;
    return tell_whose_memory(t, err);
}

_Static_assert((int)RUN_PLAN_SNAPSHOTS == (int)MEMORY_SNAPSHOT_SLOTS, "the plan counts them");

/* What a rank takes of host memory by the run's plan, with so many ranks. */
struct host_plan {
    int64_t whole, persistent; /* persistent: from start to end */
    struct run_plan_strategy strategy;
};

static int plan_host_memory(const struct trainer *t, int ranks, int node_size,
                            struct host_plan *ret, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct run_plan_facts facts;
    struct run_plan plan;
    const struct run_plan_world world = {ranks, node_size, device_compute_capability(t->device),
                                         NULL};
    if (run_plan_facts_make(t->config, t->model, &world, arena, &facts, err))
        return -1;
    if (device_is_host(t->device))
        run_plan_facts_of_host(t->model, &facts);
    facts.slots = t->fixed_slots ? t->slots.count : 0;
    facts.windows = t->world->has_windows;
    run_plan_make(&facts, &plan);
    const struct run_plan_strategy *s = &plan.strategies[t->strategy - FULL_SHARD];
    bool is_there = device_is_host(t->device) || t->config->memory.cpu_offload;
    *ret = (struct host_plan){.whole = s->host + (device_is_host(t->device) ? s->device : 0),
                              .persistent = is_there ? s->persistent : 0,
                              .strategy = *s};
    return 0;
}

/* Of a number of ranks that the strategy's groups do not divide there is nothing to tell. */
static void plan_fewest(const struct trainer *t, const struct host_plan *now, bool is_saved,
                        struct memory_fewest *ret)
{
    struct host_plan then;
    struct error ignored;
    const int ranks = t->env.min_ranks;
    *ret = (struct memory_fewest){.ranks = ranks};
    if (ranks == 0 || ranks >= t->world->size ||
        plan_host_memory(t, ranks, t->env.local_size, &then, &ignored))
        return;
    const int64_t snapshot = then.strategy.snapshot;
    /* One more is the state that is cut, before it is saved. */
    ret->own = (RUN_PLAN_SNAPSHOTS + 1) * snapshot;
    ret->kept = then.strategy.memory_checkpoints + snapshot;
    ret->training = then.whole - now->persistent + (is_saved ? snapshot : 0);
    ret->held = now->persistent;
}

int trainer_open_memory_saver(struct trainer *t, struct error *err)
{
    const struct agent_config *c = t->config;
    struct memory_saver_run run = {
        .checkpointer = &t->checkpointer,
        .stream = t->compute,
        .fd = t->env.memory_fd,
        .now_us = t->env.now_us,
        .memory_left = t->env.memory_left,
        .activity = t->env.activity,
        .local_size = t->env.local_size,
        .node = t->env.node,
        .host = t->env.world,
        .every_steps = c->checkpoint.memory_every_steps,
        .has_buddies = c->checkpoint.memory_buddies,
    };
    /* Whoever wants restarts to begin anew gets that. */
    if (!c->checkpoint.auto_resume && !c->checkpoint.resume[0])
        run.every_steps = MEMORY_SAVER_OFF;
    struct host_plan plan = {0};
    int result = plan_host_memory(t, t->world->size, t->group_size, &plan, err);
    if (agree_all(t->world, t->compute, result, err))
        return -1;
    /* A save to disk is a copy in host memory first, and so is what is read from there. */
    bool is_saved = c->checkpoint.dir[0] || c->checkpoint.resume[0] || c->model.init_weights[0];
    run.bytes_to_come =
        plan.whole - plan.persistent + (is_saved ? host_state_bytes(t->shard, t->optim) : 0);
    plan_fewest(t, &plan, is_saved, &run.fewest);
    return memory_saver_open(&t->memory_saver, &run, err) ||
                   memory_saver_find(&t->memory_saver, err)
               ? -1
               : 0;
}

void trainer_log_memory(struct trainer *t)
{
    struct memory_use use;
    char text[256];
    device_memory_use(t->device, &use);
    if (use.beyond_bytes == 0 || use.beyond_bytes < 2 * t->logged_memory)
        return;
    t->logged_memory = use.beyond_bytes;
    snprintf(
        text, sizeof text,
        "the %.3f GB of the GPU's memory that were reserved by the run's plan have no room for "
        "%.3f GB more by step %lld: that much was asked for beside them",
        gigabytes(use.reserved_bytes), gigabytes(use.beyond_bytes),
        (long long)t->cursor.position.step);
    t->listener->notice(t->listener->ctx, text);
}

void trainer_explain_memory(const struct trainer *t, struct error *err)
{
    if (err->code != ERR_MEMORY || !t->device || device_is_host(t->device))
        return;
    const char *hints = hints_of(t);
    if (strstr(err->msg, hints))
        return;
    struct error whole;
    int64_t total_bytes, free_bytes = device_memory_free_bytes(t->device, &total_bytes);
    error_set(&whole, ERR_MEMORY, "%.300s; %.2f of the GPU's %.2f GB are free: %s", err->msg,
              gigabytes(free_bytes), gigabytes(total_bytes), hints);
    whole.shared = err->shared;
    *err = whole;
}
