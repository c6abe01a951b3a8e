/* The rank's device, and how it talks to the other ranks'. */
#include "agent/comm/comm_device.h"
#include "agent/launch/device_choice.h"
#include "agent/trainer/build.h"
#include "agent/trainer/trainer_internal.h"

#include <stdlib.h>
#include <string.h>

static int check_dtype(const struct trainer *t, const char *name, struct error *err)
{
    auto_free char *gpu = xasprintf("%s (%s)", name, device_model(t->device));
    return trainer_check_capability(t->config, gpu, device_compute_capability(t->device), err);
}

static int open_chosen(struct trainer *t, bool *ret_may_share, struct error *err)
{
    struct device_choice choice;
    if (device_choose_here(t->config->runtime.device, t->config->runtime.share_gpus,
                           t->env.local_rank, &choice, err))
        return -1;
    if (choice.notice[0])
        t->listener->notice(t->listener->ctx, choice.notice);
    *ret_may_share = choice.may_share;
    if (device_open(choice.name, t->env.threads, &t->device, err) == 0)
        return check_dtype(t, choice.name, err);
    /* A GPU or library that is too old, missing or damaged; others are the GPU's own failures. */
    bool cannot_use =
        err->code == ERR_UNSUPPORTED || err->code == ERR_NOT_FOUND || err->code == ERR_INPUT;
    if (!cannot_use || strcmp(t->config->runtime.device, "auto") != 0)
        return -1;
    const struct error refused = *err; /* nobody asked for this GPU */
    return error_set(err, refused.code, "%.400s; --device cpu trains without it", refused.msg);
}

static struct comm_nccl_options nccl_options(const struct trainer *t)
{
    const struct agent_config *c = t->config;
    return (struct comm_nccl_options){
        .store = t->env.store,
        .join_timeout_ms = (int)(c->runtime.join_timeout_s * 1000),
        .is_concurrent = c->runtime.concurrent_collectives,
        .registers = c->runtime.register_buffers != REGISTER_NOTHING,
        .has_windows = c->runtime.register_buffers == REGISTER_SYMMETRIC,
        .watchdog = {.progress = t->env.progress,
                     .timeout_ms = (int64_t)(c->runtime.timeout_s * 1000),
                     .records = c->runtime.flight_recorder_size > 0
                                    ? (int)c->runtime.flight_recorder_size
                                    : 1,
                     .dumps = c->runtime.dump_on_timeout,
                     .dump_path = c->runtime.dump_path,
                     .logs_each = c->runtime.debug == DEBUG_DETAIL,
                     .aborts = c->runtime.abort_collectives != 0,
                     .stuck = c->runtime.exit_if_stuck ? t->env.stuck : NULL,
                     .grace_ms = WATCHDOG_GRACE_MS,
                     .heartbeat = c->runtime.exit_if_stuck ? t->env.alive : NULL,
                     .heartbeat_ctx = t->env.alive_ctx,
                     .heartbeat_interval_ms = (int64_t)(c->runtime.heartbeat_timeout_s * 1000)},
    };
}

int trainer_open_device(struct trainer *t, struct error *err)
{
    struct comm_device_options options = {
        .host = t->env.world,
        .how = (enum comm_device_how)t->config->runtime.collectives,
        .nccl = nccl_options(t),
    };
    char notice[COMM_NOTICE_BYTES];
    if (open_chosen(t, &options.may_share, err) == 0)
        options.device = t->device;
    if (comm_device_open(&options, &t->world, notice, err))
        return -1;
    if (notice[0])
        t->listener->notice(t->listener->ctx, notice);
    t->shard_device = t->device;
    if (t->config->memory.cpu_offload &&
        device_open_host(t->device, t->env.threads, &t->shard_device, err))
        return -1;
    return stream_open(t->device, "compute", &t->compute, err);
}
