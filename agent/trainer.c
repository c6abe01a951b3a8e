/* Opening and closing: the parts in their order. The loop is in trainer_run.c. */
#include "agent/trainer.h"

#include "agent/agree.h"
#include "agent/build.h"
#include "agent/export.h"
#include "agent/trainer_parts.h"

#include <stdlib.h>
#include <string.h>

static int open_data(struct trainer *t, struct error *err)
{
    const struct agent_config *c = t->config;
    struct source_place place = {
        .stream = t->compute,
        .rank = t->place.world->rank,
        .size = t->place.world->size,
        .most = c->optimizer.gradient_accumulation_steps,
    };
    if (source_open(c, SOURCE_TRAIN, t->model, &place, &t->train, err))
        return -1;
    if (c->eval.strategy == EVAL_NO)
        return 0;
    place.most = 1;
    return source_open(c, SOURCE_EVAL, t->model, &place, &t->test, err);
}

static int open_device(struct trainer *t, struct error *err)
{
    const char *name =
        strcmp(t->config->runtime.device, "auto") == 0 ? "cpu" : t->config->runtime.device;
    if (device_open(name, t->place.threads, &t->device, err))
        return -1;
    t->home = t->device;
    if (t->config->memory.cpu_offload && device_open("cpu", t->place.threads, &t->home, err))
        return -1;
    return stream_open(t->device, "compute", &t->compute, err);
}

/* Rank 0 tries the places it will write to, before hours of work are lost for want of one. */
static int try_outputs(struct trainer *t, struct error *err)
{
    const struct agent_config *c = t->config;
    int result = 0;
    if (t->place.world->rank == 0) {
        if (c->checkpoint.dir[0])
            result = durable_try_dir(&file_ops_system, c->checkpoint.dir, err);
        if (result == 0 && c->checkpoint.save_model[0])
            result = export_try(&file_ops_system, c->checkpoint.save_model, err);
        if (result < 0)
            error_wrap(err, "nothing could be saved");
    }
    return agree_all(t->place.world, t->compute, result, err);
}

static int open_shard(struct trainer *t, struct error *err)
{
    const struct agent_config *c = t->config;
    struct shard_config config = {
        .strategy = (enum shard_strategy)(c->parallel.strategy + 1),
        .shard_group_size = c->parallel.shard_group_size > 0 ? (int)c->parallel.shard_group_size
                                                             : t->place.local_size,
        .backward_prefetch = (enum backward_prefetch)c->parallel.backward_prefetch,
        .forward_prefetch = c->parallel.forward_prefetch,
        .limit_all_gathers = c->parallel.limit_all_gathers,
        .accumulate_sharded = c->optimizer.accumulation_sync == ACCUMULATE_EVERY,
    };
    if (shard_open(&config, t->compute, t->home, t->place.world, t->model->root, &t->shard, err))
        return -1;
    shard_init_values(t->shard, (uint64_t)c->runtime.seed);
    struct tape_hooks hooks = shard_hooks(t->shard);
    return tape_open(t->compute, DTYPE_F32, &hooks, &t->tape, err);
}

static int open_optimizer(struct trainer *t, struct error *err)
{
    const struct agent_config *c = t->config;
    const struct optim_config config = {
        .type = (enum optim_type)c->optimizer.name,
        .rho = (float)c->optimizer.rho,
        .momentum = (float)c->optimizer.momentum,
        .nesterov = c->optimizer.nesterov,
        .beta1 = (float)c->optimizer.beta1,
        .beta2 = (float)c->optimizer.beta2,
        .eps = (float)c->optimizer.eps,
        .weight_decay = (float)c->optimizer.weight_decay,
    };
    t->schedule = (struct schedule){
        .type = (enum schedule_type)c->schedule.type,
        .lr = c->optimizer.lr,
        .min_lr = c->schedule.min_lr,
        .decay_steps = c->schedule.decay_steps > 0 ? c->schedule.decay_steps : trainer_steps(t),
        .warmup_steps = c->schedule.warmup_steps,
        .warmup_ratio = c->schedule.warmup_ratio,
        .plateau_ratio = c->schedule.plateau_ratio,
        .num_cycles = c->schedule.num_cycles,
        .cooldown_steps = c->schedule.cooldown_steps,
        .gamma = c->schedule.gamma,
        .step_size = c->schedule.step_size,
        .unit = (enum schedule_unit)c->schedule.unit,
    };
    return optim_open(&config, t->shard, &t->optim, err);
}

static int open_sums(struct trainer *t, struct error *err)
{
    void *sums = NULL, *flag = NULL;
    if (device_alloc(t->device, MEMORY_INPUT, 3 * sizeof(double), "loss sums", &sums, err) ||
        device_alloc(t->device, MEMORY_INPUT, sizeof(double), "stop flag", &flag, err)) {
        device_free(t->device, sums);
        return -1;
    }
    t->sums = sums;
    t->flag = flag;
    return 0;
}

int trainer_open(const struct agent_config *config, const struct trainer_place *place,
                 const struct trainer_listener *listener, struct trainer **ret_trainer,
                 struct error *err)
{
    struct trainer *t = xcalloc(1, sizeof *t);
    t->config = config;
    t->place = *place;
    t->listener = listener;
    t->arena = arena_open();
    t->saved_step = -1;
    t->data_state = "";
    if (open_device(t, err) || build_model(config, t->arena, &t->model, err) ||
        agree_all(t->place.world, t->compute, open_data(t, err), err) || /* one tells for all */
        try_outputs(t, err) || open_shard(t, err) || open_optimizer(t, err) || open_sums(t, err) ||
        (config->checkpoint.dir[0] && saver_open(place->world, &t->saver, err)) ||
        trainer_resume(t, err)) {
        trainer_close(t);
        return -1;
    }
    *ret_trainer = t;
    return 0;
}

void trainer_close(struct trainer *t)
{
    if (!t)
        return;
    if (t->compute) {
        struct error ignored;
        stream_sync(t->compute, &ignored);
    }
    saver_close(t->saver);
    host_state_close(&t->snapshot);
    tape_close(t->tape);
    optim_close(t->optim);
    shard_close(t->shard);
    source_close(t->train);
    source_close(t->test);
    if (t->device) {
        device_free(t->device, t->sums);
        device_free(t->device, t->flag);
    }
    stream_close(t->compute);
    if (t->home != t->device)
        device_close(t->home);
    device_close(t->device);
    arena_close(t->arena);
    free(t);
}

const struct module *trainer_module(const struct trainer *t)
{
    return t->model->root;
}

void trainer_memory_use(const struct trainer *t, struct memory_use *ret_use)
{
    device_memory_use(t->device, ret_use);
}
