#include "tests/agent/world.h"

#include "agent/comm_local.h"
#include "agent/tape.h"
#include "agent/wrap.h"
#include "base/mem.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void world_result_free(struct world_result *result)
{
    free(result->gradients);
    free(result->weights);
    free(result->gathered);
}

uint32_t world_hash(uint32_t index, uint32_t stream)
{
    uint32_t h = index + (stream + 1) * 0x9e3779b9u;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

static float world_weight(const struct param *p, int64_t i)
{
    /* init.b is 1 / sqrt(fan_in) rounded to float: take the exact one */
    double fan_in = round(1.0 / ((double)p->init.b * p->init.b));
    double unit = world_hash((uint32_t)i, (uint32_t)p->index) / 2147483648.0 - 1.0;
    return (float)(unit * (1.0 / sqrt(fan_in)));
}

static int32_t world_label(int64_t sample)
{
    return (int32_t)(world_hash((uint32_t)sample, 101) % 10);
}

static void world_image(int64_t sample, int64_t side, float *ret_pixels)
{
    for (int64_t p = 0; p < side * side; p++) {
        uint32_t byte = world_hash((uint32_t)(sample * side * side + p), 100) >> 25;
        if (p / side * 10 / side == world_label(sample))
            byte += 128;
        ret_pixels[p] = ((float)byte / 255.0f - 0.1307f) / 0.3081f;
    }
}

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
    struct device *device, *host;
    struct stream *compute;
    struct comm *comm;
    struct model *model;
    struct shard *shard;
    struct optim *optim;
    struct tape *tape;
    float *input;
    int32_t *target;
    double *sums;
};

static int world_alloc(struct world_rank *r, size_t bytes, void **ret)
{
    return device_alloc(r->device, MEMORY_INPUT, bytes, "batch", ret, &r->err);
}

static int micro_batches(const struct world *w)
{
    return w->micro_batches ? w->micro_batches : 1;
}

static int64_t world_micro_rows(const struct world *w) /* per rank */
{
    return w->rows / micro_batches(w) / w->ranks;
}

static int world_rank_open(struct world_rank *r)
{
    const struct world *w = r->world;
    struct error *err = &r->err;
    int64_t rows = world_micro_rows(w), pixels = w->shape.height * w->shape.width;
    r->arena = arena_open();
    r->model = model_mnist_new(r->arena, &w->shape);
    if (w->min_num_params)
        wrap_by_size(r->model->root, w->min_num_params);
    else
        wrap_none(r->model->root);
    void *input, *target, *sums;
    if (device_open("cpu", 1, &r->device, err) < 0 || device_open("cpu", 1, &r->host, err) < 0 ||
        stream_open(r->device, "compute", &r->compute, err) < 0 ||
        comm_local_join(r->group, r->rank, w->ranks, 20000, &r->comm, err) < 0 ||
        shard_open(&w->config, r->compute, w->offload ? r->host : r->device, r->comm,
                   r->model->root, &r->shard, err) < 0 ||
        optim_open(&w->optim, r->shard, &r->optim, err) < 0)
        return -1;
    struct tape_hooks hooks = shard_hooks(r->shard);
    if (tape_open(r->compute, DTYPE_F32, &hooks, &r->tape, err) < 0 ||
        world_alloc(r, (size_t)(rows * pixels) * sizeof(float), &input) < 0 ||
        world_alloc(r, (size_t)rows * sizeof(int32_t), &target) < 0 ||
        world_alloc(r, 3 * sizeof(double), &sums) < 0)
        return -1;
    r->input = input, r->target = target, r->sums = sums;
    return 0;
}

static void world_rank_close(struct world_rank *r)
{
    struct memory_use use, home;
    tape_close(r->tape);
    optim_close(r->optim);
    shard_close(r->shard);
    comm_close(r->comm);
    device_free(r->device, r->input);
    device_free(r->device, r->target);
    device_free(r->device, r->sums);
    stream_close(r->compute);
    device_memory_use(r->device, &use);
    device_memory_use(r->host, &home);
    r->leaked_bytes = use.current_total_bytes + home.current_total_bytes;
    device_close(r->device);
    device_close(r->host);
    arena_close(r->arena);
}

static int world_set_weights(struct world_rank *r)
{
    int count;
    const struct shard_piece *pieces = shard_pieces(r->shard, &count);
    shard_init_values(r->shard, 1); /* zeroes the padding */
    for (int i = 0; i < count; i++) {
        const struct shard_piece *p = &pieces[i];
        auto_free float *values = xmalloc((size_t)p->count * sizeof *values);
        for (int64_t k = 0; k < p->count; k++)
            values[k] = world_weight(p->param, p->param_offset + k);
        stream_copy(shard_home_stream(r->shard),
                    shard_get_unit(r->shard, p->unit)->value + p->shard_offset, values,
                    (size_t)p->count * sizeof *values);
        if (stream_sync(shard_home_stream(r->shard), &r->err) < 0)
            return -1;
    }
    shard_values_changed(r->shard);
    return 0;
}

/* Copies the pieces of a unit's slice out of it; what is left is padding and must be 0. */
static int collect_unit(struct world_rank *r, int u, const float *slice, float *into)
{
    int count;
    const struct shard_piece *pieces = shard_pieces(r->shard, &count);
    int64_t size = shard_get_unit(r->shard, u)->shard_count;
    auto_free float *host = xcalloc((size_t)size, sizeof *host);
    stream_copy(shard_home_stream(r->shard), host, slice, (size_t)size * sizeof *host);
    if (stream_sync(shard_home_stream(r->shard), &r->err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        const struct shard_piece *p = &pieces[i];
        size_t bytes = (size_t)p->count * sizeof *host;
        if (p->unit != u)
            continue;
        if (shard_owns_copy(r->shard))
            memcpy(into + r->result->offsets[p->param->index] + p->param_offset,
                   host + p->shard_offset, bytes);
        memset(host + p->shard_offset, 0, bytes);
    }
    for (int64_t i = 0; i < size; i++)
        if (host[i] != 0)
            return error_set(&r->err, ERR_SHAPE, "padding of unit %d is %g", u, (double)host[i]);
    return 0;
}

/* Brings this rank's part of gradients or weights together with the others'. */
static int world_collect(struct world_rank *r, bool gradients, float *into)
{
    for (int u = 0; u < shard_unit_count(r->shard); u++) {
        const struct shard_unit *unit = shard_get_unit(r->shard, u);
        if (collect_unit(r, u, gradients ? unit->gradient : unit->value, into) < 0)
            return -1;
    }
    return 0;
}

static int world_micro_batch(struct world_rank *r, int step, int micro, bool training)
{
    const struct world *w = r->world;
    int64_t rows = world_micro_rows(w), pixels = w->shape.height * w->shape.width;
    int micros = micro_batches(w);
    int dealt_to = w->dealt_to ? w->dealt_to : w->ranks;
    int64_t first = (w->same_batch ? 0 : step * w->rows) + micro * (w->rows / micros);
    if (stream_sync(r->compute, &r->err) < 0) /* the batch is read no more */
        return -1;
    for (int64_t j = 0; j < rows; j++) {
        int64_t sample = first + j * dealt_to + r->rank;
        world_image(sample, w->shape.height, r->input + j * pixels);
        r->target[j] = world_label(sample);
    }
    tape_begin(r->tape, &(struct tape_pass){.training = training,
                                            .seed = 7,
                                            .step = (uint64_t)(step * micros + micro),
                                            .first_row = (uint64_t)r->rank,
                                            .row_stride = (uint64_t)w->ranks});
    float scale = w->loss_scale != 0 ? w->loss_scale : (float)w->ranks / (float)w->rows;
    shard_begin(r->shard, micro == micros - 1);
    r->model->forward(r->model, r->tape,
                      &(struct batch){.input = r->input, .target = r->target, .rows = rows}, scale,
                      r->sums);
    return training ? tape_backward(r->tape, &r->err) : tape_finish(r->tape, &r->err);
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
    if (step == 0 && world_collect(r, true, r->result->gradients) < 0)
        return -1;
    if (world_read_loss(r, step) < 0)
        return -1;
    if (w->optim.grad_clip > 0) {
        optim_measure(r->optim);
        if (optim_norm(r->optim, &r->result->norms[step][r->rank], &r->err) < 0)
            return -1;
    }
    const struct schedule_position at = {0, step};
    optim_step(r->optim, w->schedule ? (float)schedule_lr(w->schedule, at) : w->lr);
    if (step == 0)
        device_memory_reset_peak(r->device);
    return 0;
}

/* One pass without backward; then the weights, by both ways out of the engine. */
static int world_evaluate(struct world_rank *r)
{
    struct world_result *result = r->result;
    double sums[3];
    if (r->rank == 0)
        device_memory_use(r->device, &result->use);
    device_ops(r->device)->fill(r->compute, (float *)r->sums, 0, 6);
    for (int micro = 0; micro < micro_batches(r->world); micro++)
        if (world_micro_batch(r, 0, micro, false) < 0)
            return -1;
    r->comm->fn->all_reduce_f64(r->comm, r->compute, r->sums, 3);
    stream_copy(r->compute, sums, r->sums, sizeof sums);
    if (world_collect(r, false, result->weights) < 0)
        return -1;
    for (int i = 0; i < r->model->root->child_count; i++) {
        const struct module *m = r->model->root->children[i];
        for (int k = 0; k < m->param_count; k++) {
            const struct param *p = m->params[k];
            auto_free float *values = xcalloc((size_t)p->count, sizeof *values);
            if (shard_gather_param(r->shard, p, values, &r->err) < 0)
                return -1;
            if (r->rank == 0)
                memcpy(result->gathered + result->offsets[p->index], values,
                       (size_t)p->count * sizeof *values);
        }
    }
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
    shard_reset(r->shard);
    if (r->rank == 0)
        device_memory_use(r->device, &r->result->reset);
    return shard_sync(r->shard, &r->err);
}

/* A rank that fails takes the others with it, as a process that ends would. */
static void *world_thread(void *arg)
{
    struct world_rank *r = arg;
    r->status = world_train(r);
    if (r->status < 0 && r->comm)
        r->comm->fn->abort(r->comm, "another rank failed");
    world_rank_close(r);
    return NULL;
}

static void world_result_open(const struct world *world, struct world_result *result)
{
    auto_arena struct arena *arena = arena_open();
    struct module *root = model_mnist_new(arena, &world->shape)->root;
    *result = (struct world_result){0};
    for (int i = 0; i < root->child_count; i++)
        for (int k = 0; k < root->children[i]->param_count; k++) {
            const struct param *p = root->children[i]->params[k];
            result->offsets[p->index + 1] = result->offsets[p->index] + p->count;
        }
    result->gradients = xcalloc((size_t)result->offsets[WORLD_PARAMS], sizeof(float));
    result->gathered = xcalloc((size_t)result->offsets[WORLD_PARAMS], sizeof(float));
    result->weights = xcalloc((size_t)result->offsets[WORLD_PARAMS], sizeof(float));
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
    int status = 0;
    for (int i = 0; i < world->ranks; i++) {
        pthread_join(threads[i], NULL);
        ret_result->leaked_bytes += ranks[i].leaked_bytes;
        if (ranks[i].status < 0)
            ret_result->errors[i] = ranks[i].err;
        if (ranks[i].status < 0 && status == 0) {
            status = -1;
            *err = ranks[i].err;
        }
    }
    comm_local_close(group);
    return status;
}

struct mnist_shape world_small_shape(void)
{
    return (struct mnist_shape){
        .height = 12, .width = 12, .channels1 = 4, .channels2 = 6, .hidden = 16, .classes = 10};
}
