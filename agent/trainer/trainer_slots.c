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

int trainer_open_slots(struct trainer *t, struct error *err)
{
    int ranks = t->world->size;
    int64_t asked = t->config->parallel.reduction_slots, count = asked;
    if (asked == 0 && t->world->rank == 0)
        count = trainer_saved_slots(t->config, t->env.run ? t->env.run : "", t->env.restarted);
    if (asked == 0 && agree_broadcast(t->world, t->compute, &count, sizeof count, err))
        return -1;
    t->fixed_slots = count > 0;
    t->slots = (struct slots){count > 0 ? (int)count : ranks, ranks};
    if (check(t, err))
        return asked > 0 ? -1 : error_wrap(err, "the checkpoint");
    if (count > 0 && asked == 0)
        t->listener->notice(t->listener->ctx,
                            arena_printf(t->arena,
                                         "parallel.reduction_slots=%lld, as of the checkpoint",
                                         (long long)count));
    return 0;
}

int trainer_open_shares(struct trainer *t, struct batch_source_env env, struct error *err)
{
    env.rank = t->world->rank;
    env.size = t->slots.count;
    return batch_source_shares_open(t->config, t->model, &env, slots_held(t->slots, env.rank),
                                    t->slots.ranks, &t->cursor.train, err);
}
