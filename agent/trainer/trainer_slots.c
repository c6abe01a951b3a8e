/* Reduction slots: how many, and which are this rank's. */
#include "agent/comm/agree.h"
#include "agent/trainer/trainer_internal.h"
#include "agent/trainer/trainer_saved_slots.h"

static int check(const struct trainer *t, struct error *err)
{
    int slots = t->slots.count, ranks = t->slots.ranks;
    if (slots < ranks)
        error_set(err, ERR_CONFIG,
                  "parallel.reduction_slots: %d slots for %d ranks: a rank without a slot has "
                  "nothing to do; start at most %d ranks",
                  slots, ranks, slots);
    else if (t->fixed_slots && t->config->memory.cpu_offload)
        error_set(err, ERR_CONFIG,
                  "parallel.reduction_slots: not with memory.cpu_offload, which adds gradients up "
                  "on the host: leave one of them out");
    else
        return 0;
    err->shared = true; /* all have the same configuration */
    return -1;
}

/* Rank 0's answer, sent to all. What an elastic run's launchers have agreed on also says how many
 * nodes take part. */
struct answer {
    int64_t count;
    bool is_saved; /* the checkpoint's */
};

static struct answer find_slots(const struct trainer *t)
{
    struct answer answer = {.count = t->env.slots};
    if (answer.count > 0)
        return answer;
    answer.count = trainer_saved_slots(t->config, t->env.run ? t->env.run : "", t->env.restarted);
    answer.is_saved = true;
    return answer;
}

static void tell(struct trainer *t, const struct answer *answer)
{
    const char *how = answer->is_saved
                          ? "as of the checkpoint"
                          : "this elastic run computes as on so many ranks (0 lets a step's "
                            "samples follow them), however many there are";
    const char *text = arena_printf(
        t->arena, "parallel.reduction_slots=%lld%s%s%s", (long long)answer->count,
        answer->is_saved ? ", " : ": ", how,
        trainer_may_differ(t) ? ", whose bits runtime.deterministic=false gives up" : "");
    t->listener->notice(t->listener->ctx, text);
}

int trainer_open_slots(struct trainer *t, struct error *err)
{
    int ranks = t->world->size;
    bool is_asked = t->config->parallel.reduction_slots != SLOTS_AUTO;
    struct answer answer = {.count = t->config->parallel.reduction_slots};
    if (!is_asked && t->world->rank == 0)
        answer = find_slots(t);
    if (!is_asked && agree_broadcast(t->world, t->compute, &answer, sizeof answer, err))
        return -1;
    t->fixed_slots = answer.count > 0;
    t->slots = (struct slots){answer.count > 0 ? (int)answer.count : ranks, ranks};
    if (check(t, err))
        return answer.is_saved ? error_wrap(err, "the checkpoint") : -1;
    if (!is_asked && t->fixed_slots)
        tell(t, &answer);
    return 0;
}

/* The slots were needed before it was known which checkpoint the run can go on from: the newest may
 * be damaged, or memory have a later one. */
int trainer_check_slots(const struct trainer *t, const char *path, int64_t saved, struct error *err)
{
    int now = t->fixed_slots ? t->slots.count : 0;
    if (t->config->parallel.reduction_slots != SLOTS_AUTO || saved == 0 || saved == now)
        return 0;
    return error_set(err, ERR_CONFIG,
                     "%s has %lld reduction slots, and this run began with %d: give "
                     "--parallel.reduction_slots=%lld, or another number if its samples per step "
                     "and the order of its sums may change",
                     path, (long long)saved, now, (long long)saved);
}

int trainer_open_shares(struct trainer *t, enum data_split split, struct batch_source_env env,
                        struct batch_source **ret_source, struct error *err)
{
    env.rank = t->world->rank;
    env.size = t->slots.count;
    return batch_source_shares_open(t->config, split, t->model, &env,
                                    slots_held(t->slots, env.rank), t->slots.ranks, ret_source,
                                    err);
}
