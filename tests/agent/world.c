#include "tests/agent/world_data.h"
#include "tests/agent/world_result.h"

#include "agent/comm/comm_nccl.h"
#include "agent/comm/comm_stage.h"
#include "agent/nn/nn_fp8.h"
#include "agent/nn/tape.h"
#include "agent/shard/wrap.h"
#include "base/mem.h"
#include "kernels/ops.h"
#include "tests/agent/comm_local.h"
#include "tests/agent/device_batch.h"
#include "tests/agent/language_batch.h"
#include "tests/support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One rank, while it runs. */
struct world_rank {
    const struct world *world;
    struct world_result *result;
    struct comm_local *group;
    int rank;
    int status;
    struct error err;
    int64_t leaked_bytes;

    struct arena *arena;
    struct device *device, *host, *shelf; /* shelf: for activations */
    struct stream *compute;
    struct comm *comm;
    struct model *model;
    struct shard *shard;
    struct optim *optim;
    struct tape *tape;
    double *sums;
};

static int micro_batches(const struct world *w)
{
    return w->micro_batches ? w->micro_batches : 1;
}

static int64_t world_micro_rows(const struct world *w) /* per rank */
{
    return w->rows / micro_batches(w) / w->ranks;
}

/* Beside the local communicator, for which it also stores what the ranks tell each other. */
static int join_nccl(struct world_rank *r)
{
    const struct comm_nccl_options options = {
        .store = comm_local_store(r->group),
        .join_timeout_ms = SUPPORT_PATIENCE_MS,
        .is_concurrent = true,
        .has_windows = r->world->windows,
        .watchdog = {
            .timeout_ms = SUPPORT_PATIENCE_MS, .aborts = true, .records = 16, .dump_path = ""}};
    struct nccl_api api;
    if (nccl_api_open(&api, &r->err) < 0)
        return -1;
    return comm_nccl_open(&api, &options, r->device, r->rank, r->world->ranks, &r->comm, &r->err);
}

static int open_device(struct world_rank *r)
{
    const char *name = r->world->device ? r->world->device : support_device();
    char of_rank[16];
    snprintf(of_rank, sizeof of_rank, "cuda:%d", r->rank);
    return device_open(r->world->nccl ? of_rank : name, 1, &r->device, &r->err);
}

/* Joins the other ranks; what a GPU has goes through the host. */
static int join(struct world_rank *r)
{
    struct error *err = &r->err;
    if (r->world->nccl)
        return join_nccl(r);
    if (comm_local_join(r->group, r->rank, r->world->ranks, SUPPORT_PATIENCE_MS, &r->comm, err) < 0)
        return -1;
    if (device_is_host(r->device) || r->world->ranks == 1)
        return 0;
    struct comm *local = r->comm;
    return comm_stage_open(local, true, r->device, 16384, &r->comm, err);
}

static int world_rank_open(struct world_rank *r)
{
    const struct world *w = r->world;
    struct error *err = &r->err;
    r->arena = arena_open();
    r->model = world_model(r->arena, w);
    if (w->fp8 && nn_fp8_begin(r->model->root, err) < 0)
        return -1;
    if (w->min_num_params)
        wrap_by_size(r->model->root, w->min_num_params);
    else
        wrap_none(r->model->root);
    void *sums = NULL;
    if (open_device(r) < 0 || device_open_host(r->device, 1, &r->host, err) < 0 ||
        device_open_host(r->device, 1, &r->shelf, err) < 0 ||
        stream_open(r->device, "compute", &r->compute, err) < 0 || join(r) < 0 ||
        shard_open(&w->config, r->compute, w->offload ? r->host : r->device, r->comm,
                   r->model->root, &r->shard, err) < 0 ||
        optim_open(&w->optim, r->shard, &r->optim, err) < 0)
        return -1;
    struct tape_hooks hooks = shard_hooks(r->shard);
    if (tape_open(r->compute, w->config.param_dtype, &hooks, &r->tape, err) < 0 ||
        tape_save_memory(r->tape, w->checkpointing, w->horizon ? r->shelf : NULL, w->horizon, err) <
            0)
        return -1;
    int status = device_alloc(r->device, MEMORY_INPUT, 3 * sizeof(double), "sums", &sums, err);
    r->sums = sums;
    return status;
}

static void world_rank_close(struct world_rank *r)
{
    struct memory_use use, home, shelf;
    tape_close(r->tape);
    optim_close(r->optim);
    shard_close(r->shard);
    comm_close(r->comm);
    device_free(r->device, r->sums);
    stream_close(r->compute);
    device_memory_use(r->device, &use);
    device_memory_use(r->host, &home);
    device_memory_use(r->shelf, &shelf);
    r->leaked_bytes =
        use.current_total_bytes + home.current_total_bytes + shelf.current_total_bytes;
    device_close(r->host);
    device_close(r->shelf);
    device_close(r->device);
    arena_close(r->arena);
}

static int world_set_weights(struct world_rank *r)
{
    int count;
    const struct param_range *ranges = shard_ranges(r->shard, &count);
    shard_clear_values(r->shard); /* as a trainer does; who waits for this waits for what follows */
    shard_init_values(r->shard, 1); /* zeroes the padding */
    for (int i = 0; i < count && !r->world->llama && !r->world->language; i++) {
        const struct param_range *p = &ranges[i];
        auto_free float *values = xmalloc((size_t)p->count * sizeof *values);
        for (int64_t k = 0; k < p->count; k++)
            values[k] = world_weight(p->param, p->param_offset + k);
        float *value = shard_get_unit(r->shard, p->unit)->value;
        shard_write(r->shard, value + p->shard_offset, values, p->count);
        if (stream_sync(shard_update_stream(r->shard), &r->err) < 0)
            return -1;
    }
    shard_values_changed(r->shard);
    return 0;
}

/* The rank's rows of a batch whose samples begin with `first`, in host memory. */
static struct batch fill_batch(struct world_rank *r, int64_t first)
{
    const struct world *w = r->world;
    int64_t rows = world_micro_rows(w), pixels = w->shape.height * w->shape.width;
    int64_t targets = w->llama ? rows * w->T : rows;
    int dealt_to = w->dealt_to ? w->dealt_to : w->ranks;
    if (w->language)
        return language_batch_make(r->arena, r->model, w->T, first + r->rank, dealt_to, rows).batch;
    float *input = arena_array(r->arena, float, rows *pixels); /* in bf16: its first half */
    int32_t *tokens = arena_array(r->arena, int32_t, targets);
    int32_t *target = arena_array(r->arena, int32_t, targets);
    for (int64_t j = 0; j < rows; j++)
        world_sample(w, first + j * dealt_to + r->rank, input + j * pixels, tokens + j * w->T,
                     target + (w->llama ? j * w->T : j));
    for (int64_t i = 0; w->config.param_dtype == DTYPE_BF16 && i < rows * pixels; i++) {
        bf16 rounded = bf16_from_float(input[i]);
        memcpy((bf16 *)(void *)input + i, &rounded, sizeof rounded);
    }
    return (struct batch){.input = w->llama ? NULL : input,
                          .tokens = w->llama ? tokens : NULL,
                          .target = target,
                          .rows = rows,
                          .T = w->T};
}

/* Of all ranks in a step whose samples begin with `first`. */
static int64_t count_targets(struct world_rank *r, int64_t first)
{
    const struct world *w = r->world;
    if (w->language)
        return language_batch_make(r->arena, r->model, w->T, first, 1, w->rows).targets;
    return w->llama ? w->rows * w->T : w->rows;
}

static int world_micro_batch(struct world_rank *r, int step, int micro, bool training)
{
    const struct world *w = r->world;
    int micros = micro_batches(w);
    int64_t first = w->same_batch ? 0 : step * w->rows, targets = count_targets(r, first);
    const struct batch host = fill_batch(r, first + micro * (w->rows / micros));
    struct device_batch batch;
    int64_t pixels = host.input ? w->shape.height * w->shape.width : 0;
    int status = device_batch_open(&batch, r->compute, &host,
                                   pixels * (int64_t)dtype_bytes(w->config.param_dtype), &r->err);
    if (status < 0) {
        device_batch_close(&batch);
        return -1;
    }
    tape_begin(r->tape, &(struct tape_pass){.training = training,
                                            .seed = 7,
                                            .step = (uint64_t)(step * micros + micro),
                                            .first_row = (uint64_t)r->rank,
                                            .row_stride = (uint64_t)w->ranks});
    float scale = w->loss_scale != 0 ? w->loss_scale : (float)w->ranks / (float)targets;
    shard_begin(r->shard, micro == micros - 1);
    r->model->forward(r->model, r->tape, &batch.batch, scale, r->sums);
    status = training ? tape_backward(r->tape, &r->err) : tape_finish(r->tape, &r->err);
    device_batch_close(&batch);
    return status;
}

/* The loss of the step: this rank's sum, then the mean over all rows. */
static int world_read_loss(struct world_rank *r, int step)
{
    double sums[3];
    if (step == 0) {
        stream_copy(r->compute, sums, r->sums, sizeof sums);
        if (stream_sync(r->compute, &r->err) < 0)
            return -1;
        r->result->rank_losses[r->rank] = sums[0];
    }
    r->comm->fn->all_reduce_f64(r->comm, r->compute, r->sums, 3);
    stream_copy(r->compute, sums, r->sums, sizeof sums);
    if (stream_sync(r->compute, &r->err) < 0)
        return -1;
    if (r->rank == 0)
        r->result->losses[step] = sums[0] / sums[2];
    return 0;
}

static int64_t fresh_blocks(const struct world_rank *r)
{
    struct device *const devices[] = {r->device, r->host, r->shelf};
    int64_t count = 0;
    for (size_t i = 0; i < array_length(devices); i++) {
        struct memory_use use;
        device_memory_use(devices[i], &use);
        count += use.fresh_blocks;
    }
    return count;
}

static int world_step(struct world_rank *r, int step)
{
    const struct world *w = r->world;
    device_ops(r->device)->fill(r->compute, (float *)r->sums, 0, 6);
    for (int micro = 0; micro < micro_batches(w); micro++)
        if (world_micro_batch(r, step, micro, true) < 0)
            return -1;
    shard_finish(r->shard);
    if (step < 2 && r->rank == 0)
        *(step == 0 ? &r->result->first : &r->result->second) = r->comm->stats;
    if (step == 0 &&
        world_collect(r->shard, true, r->result->offsets, r->result->gradients, &r->err) < 0)
        return -1;
    if (world_read_loss(r, step) < 0)
        return -1;
    if (w->optim.grad_clip > 0)
        optim_measure(r->optim);
    const struct schedule_position at = {0, step};
    optim_step(r->optim, w->schedule ? (float)schedule_lr(w->schedule, at) : w->lr);
    if (w->optim.grad_clip > 0) {
        if (shard_sync_pass(r->shard, &r->err) < 0)
            return -1;
        r->result->norms[step][r->rank] = optim_norm(r->optim);
    }
    if (step == 0)
        device_memory_reset_peak(r->device), device_memory_reset_peak(r->shelf);
    if (r->rank == 0)
        r->result->fresh_blocks[step] = fresh_blocks(r);
    return 0;
}

/* One pass without backward; then the weights, by both ways out of the engine. */
static int world_evaluate(struct world_rank *r)
{
    struct world_result *result = r->result;
    double sums[3];
    if (r->rank == 0)
        device_memory_use(r->device, &result->use), device_memory_use(r->shelf, &result->host);
    device_ops(r->device)->fill(r->compute, (float *)r->sums, 0, 6);
    for (int micro = 0; micro < micro_batches(r->world); micro++)
        if (world_micro_batch(r, 0, micro, false) < 0)
            return -1;
    r->comm->fn->all_reduce_f64(r->comm, r->compute, r->sums, 3);
    stream_copy(r->compute, sums, r->sums, sizeof sums);
    if (stream_sync(r->compute, &r->err) < 0 ||
        world_collect(r->shard, false, result->offsets, result->weights, &r->err) < 0)
        return -1;
    if (world_gather(r->shard, r->model->root, result->offsets,
                     r->rank == 0 ? result->gathered : NULL, &r->err) < 0)
        return -1;
    if (r->rank != 0)
        return 0;
    result->evaluation = sums[0] / sums[2];
    device_memory_use(r->device, &result->evaluated);
    return 0;
}

static int world_train(struct world_rank *r)
{
    if (world_rank_open(r) < 0 || world_set_weights(r) < 0)
        return -1;
    for (int step = 0; step < r->world->steps; step++) {
        if (step == 1 && r->rank == 1)
            device_memory_set_limit(r->device, r->world->limit_bytes);
        if (world_step(r, step) < 0)
            return -1;
    }
    if (world_evaluate(r) < 0)
        return -1;
    shard_reshard_all(r->shard);
    if (r->rank == 0)
        device_memory_use(r->device, &r->result->reset);
    return shard_sync(r->shard, &r->err);
}

/* A rank that fails takes the others with it, as a process that ends would: its end is known to the
 * store before its connections are closed. */
static void *world_thread(void *arg)
{
    struct world_rank *r = arg;
    r->status = world_train(r);
    if (r->status < 0 && r->comm)
        store_mark_lost(comm_local_store(r->group), "another rank failed");
    world_rank_close(r);
    return NULL;
}

/* The cause of a world's end: an error of a rank's own comes before one that only tells of another
 * rank's end, whichever of the two came first. */
static const struct error *world_cause(const struct world_rank *ranks, int count)
{
    const struct error *cause = NULL;
    for (int i = 0; i < count; i++) {
        bool is_own = ranks[i].err.code != ERR_PEER;
        if (ranks[i].status < 0 && (!cause || (cause->code == ERR_PEER && is_own)))
            cause = &ranks[i].err;
    }
    return cause;
}

int world_run(const struct world *world, struct world_result *ret_result, struct error *err)
{
    struct world_rank ranks[WORLD_MAX_RANKS] = {0};
    pthread_t threads[WORLD_MAX_RANKS];
    struct comm_local *group = comm_local_open();
    world_result_open(world, ret_result);
    for (int i = 0; i < world->ranks; i++) {
        ranks[i] =
            (struct world_rank){.world = world, .result = ret_result, .group = group, .rank = i};
        pthread_create(&threads[i], NULL, world_thread, &ranks[i]);
    }
    for (int i = 0; i < world->ranks; i++) {
        pthread_join(threads[i], NULL);
        ret_result->leaked_bytes += ranks[i].leaked_bytes;
        if (ranks[i].status < 0)
            ret_result->errors[i] = ranks[i].err;
    }
    comm_local_close(group);
    const struct error *cause = world_cause(ranks, world->ranks);
    if (cause)
        *err = *cause;
    return cause ? -1 : 0;
}
