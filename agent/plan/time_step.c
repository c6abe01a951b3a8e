#include "agent/plan/time_step.h"

#include "agent/plan/time_step_internal.h"
#include "base/mem.h"

/* ---- what is before and behind the blocks ---- */

static double wide(const struct time_shape *s, int64_t R)
{
    return (double)(R * s->D * s->value_bytes);
}

static void embed_forward(struct time_walk *w, int64_t R)
{
    const struct time_shape *s = w->shape;
    time_pass(w, wide(s, R) * 2, 1, 1, 0.8);
    if (!s->positions)
        return;
    /* each row's positions on their own */
    time_add(w, TIME_PASSES, time_of_pass(w->device, wide(s, R) * 2, 1) / (double)s->rows + 2e-6,
             s->rows, 1);
    time_pass(w, wide(s, R) * 3, 1, 1, 0.9);
    if (s->post_norm) { /* BERT's kinds of sentences, and the norm */
        time_pass(w, wide(s, R) * 3, 2, 1, 0.9);
        time_pass(w, wide(s, R) * 2, 1, 1, 0.9);
    }
}

static void embed_backward(struct time_walk *w, int64_t R)
{
    const struct time_shape *s = w->shape;
    /* [guess] a sort of ids in 60 us; then sums */
    double sums = time_of_pass(w->device, (double)(R * s->D) * (s->value_bytes + 8), 1);
    time_add(w, TIME_PASSES, 60e-6 + sums, 1, 4);
    if (s->positions) { /* each row's gradients are added */
        double row = time_of_pass(w->device, (double)(R * s->D) * (s->value_bytes + 8), 1);
        time_add(w, TIME_PASSES, row / (double)s->rows + 2e-6, s->rows, 1);
        time_add(w, TIME_PASSES, 2e-6, 1, 1); /* zeros before */
    }
    if (s->post_norm) {
        time_norm_backward(w, R, 3);
        time_add(w, TIME_PASSES, 60e-6 + sums, 1, 4);
    }
    if (!s->tied)
        time_pass(w, (double)(s->V * s->D) * sizeof(float), 1, 1, 1);
}

static void head_product(struct time_walk *w, const struct time_product *product, int64_t count)
{
    struct time_product p = *product;
    p.value_bytes = w->shape->value_bytes;
    p.speed = 1;
    p.unaligned = !w->ways->padded_vocabulary && w->shape->V * w->shape->value_bytes % 16 != 0;
    time_add(w, TIME_PRODUCTS, time_of_product(w->device, &p), count, 1);
}

/* What BERT's masked LM has before its head: a layer, its activation and a norm. */
static void transform(struct time_walk *w, int64_t R)
{
    const struct time_shape *s = w->shape;
    struct time_ways plain = *w->ways; /* in no block */
    struct time_walk layer = {w->device, s, &plain, w->step, w->adds};
    plain.products = 1;
    plain.fp8_casts = false;
    time_linear(&layer, TIME_LINEAR_FORWARD, R, s->D, s->D, 1);
    time_linear(&layer, TIME_LINEAR_WEIGHTS, R, s->D, s->D, 1);
    time_linear(&layer, TIME_LINEAR_DATA, R, s->D, s->D, 1);
    time_pass(w, wide(s, R) * 2, 2, 1, 0.95);
    time_pass(w, wide(s, R) * 3, 1, 1, 0.92);
    time_pass(w, wide(s, R), 1, 1, 0.6);
    time_norm_backward(w, R, 3);
}

/* Logits, loss and both gradients in chunks of rows, of which the second adds to the first's. */
static void head(struct time_walk *w, int64_t R)
{
    const struct time_shape *s = w->shape;
    int64_t c = w->ways->chunk_rows < R ? w->ways->chunk_rows : R, chunks = (R + c - 1) / c;
    int v = s->value_bytes;
    bool aligned = w->ways->padded_vocabulary || s->V * v % 16 == 0;
    time_pass(w, wide(s, R) * 2, 1, 1, 0.9); /* norm */
    if (s->post_norm)
        transform(w, R);
    head_product(w, &(struct time_product){.M = c, .N = s->V, .K = s->D, .out_bytes = v}, chunks);
    time_pass_of(w, TIME_PASSES, (double)(c * s->V * v) * 2, chunks, 2,
                 time_loss_efficiency(aligned));
    struct time_product weights = {
        .M = s->V, .N = s->D, .K = c, .out_bytes = w->ways->gradient_bytes};
    weights.adds = w->adds;
    head_product(w, &weights, 1);
    weights.adds = true;
    head_product(w, &weights, chunks - 1);
    head_product(w, &(struct time_product){.M = c, .N = s->D, .K = s->V, .out_bytes = v}, chunks);
    time_norm_backward(w, R, 3);
}

/* ---- a micro-batch ---- */

/* Seconds of a block, and of the passes over all of them. */
struct micro_batch {
    double forward_s, backward_s;
};

static double busy(const struct time_step *step)
{
    double sum = 0;
    for (int i = 0; i < TIME_KIND_COUNT; i++)
        sum += step->s[i];
    return sum;
}

static struct micro_batch run_blocks(struct time_walk *w)
{
    const struct time_shape *s = w->shape;
    const struct {
        int64_t count;
        struct time_block block;
    } stacks[] = {
        {s->L, {s->T, 0, s->L_decoder == 0 && !s->sees_all}},
        {s->L_decoder, {s->T_decoder, s->T, true}},
    };
    double begin = busy(w->step);
    for (size_t i = 0; i < array_length(stacks); i++)
        for (int64_t l = 0; l < stacks[i].count; l++)
            time_block_forward(w, &stacks[i].block);
    double middle = busy(w->step);
    for (size_t i = 0; i < array_length(stacks); i++)
        for (int64_t l = 0; l < stacks[i].count; l++) {
            time_block_again(w, &stacks[i].block);
            time_block_backward(w, &stacks[i].block);
        }
    return (struct micro_batch){middle - begin, busy(w->step) - middle};
}

static struct micro_batch run_images(struct time_walk *w)
{
    const struct time_shape *s = w->shape;
    double rate = w->device->fp32 * time_convolution;
    double forward = s->sample_flops * (double)s->rows / rate;
    double bytes = (double)(s->rows * s->sample_count * s->value_bytes);
    time_add(w, TIME_PRODUCTS, forward, 3, 0); /* forward, and two gradients */
    time_pass(w, bytes * 2, 3, 0, 0.9);
    w->step->launches += s->pass_kernels;
    return (struct micro_batch){forward, 2 * forward};
}

static struct micro_batch run_micro_batch(struct time_walk *w)
{
    const struct time_shape *s = w->shape;
    int64_t R = s->rows * s->T, R_decoder = s->rows * s->T_decoder;
    if (s->L == 0)
        return run_images(w);
    embed_forward(w, R);
    if (R_decoder > 0)
        embed_forward(w, R_decoder);
    struct micro_batch m = run_blocks(w);
    head(w, R_decoder > 0 ? R_decoder : R);
    embed_backward(w, R + R_decoder);
    double copied = (double)s->parameters * w->ways->collected_bytes;
    time_pass_of(w, TIME_PASSES, copied, 1, 1, 0.9);
    return m;
}

/* ---- the update ---- */

/* The root is what forward begins with: nothing hides its update. */
static void hide_update(struct time_walk *w, const struct time_ranks *r, double update_s,
                        const struct micro_batch *m)
{
    double rest = update_s * (1 - (double)r->root / (double)w->shape->parameters);
    double hidden = time_update_hidden * (rest < m->forward_s ? rest : m->forward_s);
    w->step->s[TIME_OPTIMIZER] -= hidden > 0 ? hidden : 0;
}

static void update(struct time_walk *w, const struct time_ranks *r, const struct micro_batch *m)
{
    const struct time_ways *ways = w->ways;
    double slice = (double)w->shape->parameters / r->group;
    int64_t units = r->units;
    if (r->world > 1 && r->reduce_bytes < ways->gradient_bytes) /* packed first */
        time_pass_of(w, TIME_PASSES,
                     (double)w->shape->parameters * (ways->gradient_bytes + r->reduce_bytes), 1,
                     units, 0.93);
    if (r->cpu_offload) { /* gradients down, the host's update, values up */
        double moved = slice * ((double)sizeof(float) + r->value_bytes);
        time_add(w, TIME_OFFLOAD, moved / w->device->host_link, 1, 2 * units);
        time_add(w, TIME_OFFLOAD, slice * ways->update_bytes / time_host_update, 1, 0);
        return;
    }
    if (!ways->skips_norm)
        time_pass_of(w, TIME_OPTIMIZER, slice * 4, 1, 2 * units, 0.93);
    if (ways->clips && !ways->fused_clip)
        time_pass_of(w, TIME_OPTIMIZER, slice * 8, 1, units, 0.95);
    bool casts = ways->cast_bytes > 0;
    double bytes = ways->update_bytes + (casts && ways->fused_cast ? 2 : 0);
    double before = w->step->s[TIME_OPTIMIZER];
    time_pass_of(w, TIME_OPTIMIZER, slice * bytes, 1, units, 0.93);
    if (ways->update_beside)
        hide_update(w, r, w->step->s[TIME_OPTIMIZER] - before, m);
    if (casts && !ways->fused_cast)
        time_pass_of(w, TIME_OPTIMIZER, slice * ways->cast_bytes, 1, units, 0.93);
}

/* ---- between ranks ---- */

static double above(double a, double b)
{
    return a > b ? a - b : 0;
}

/* Seconds of a collective: of its steps, and of each element. */
struct collective {
    double start_s, element_s;
};

static double lasts(const struct collective *c, double elements)
{
    return elements > 0 ? c->start_s + c->element_s * elements : 0;
}

static struct collective gather_of(const struct time_device *d, const struct time_ranks *r)
{
    double share = (double)(r->group - 1) / r->group * r->value_bytes;
    if (r->group == 1)
        return (struct collective){0};
    return (struct collective){
        .start_s = time_collective_start(d, r->group, r->node, false),
        .element_s = share / time_ring_rate(d, r->group, r->node, r->network),
    };
}

/* Reduce-scatter within a group, then all-reduce between groups. */
static struct collective reduce_of(const struct time_device *d, const struct time_ranks *r)
{
    struct collective c = gather_of(d, r);
    int replicas = r->world / r->group;
    c.element_s *= (double)r->reduce_bytes / r->value_bytes;
    if (replicas == 1)
        return c;
    /* between nodes each of a group's ranks has a ring of its own, over its part of the network */
    int node = r->world <= r->node || r->group == 1 ? r->node : 1;
    double share = 2.0 * (replicas - 1) / replicas / r->group * r->reduce_bytes;
    c.start_s += time_collective_start(d, replicas, node, true);
    c.element_s += share / time_ring_rate(d, replicas, node, r->network);
    return c;
}

static bool reshards(const struct time_ranks *r)
{
    return r->strategy == FULL_SHARD || r->strategy == HYBRID_SHARD;
}

/* Of blocks' slices in fp8: read for their scales once, and cast before each of so many gathers. */
static void cast_slices(struct time_walk *w, const struct time_ranks *r, double elements,
                        int64_t gathers)
{
    const double scan = 2, cast = 3; /* bytes of an element */
    if (w->ways->fp8_gathers)
        time_pass_of(w, TIME_PASSES, elements / r->group * (scan + cast * (double)gathers), 1,
                     r->units * gathers, 0.9);
}

/* The next unit is gathered while one computes; what is longer than that, the root, and a half of
 * other units (of embedding and head one end of the pass) are waited for. */
static void communicate(struct time_walk *w, const struct time_ranks *r,
                        const struct micro_batch *m)
{
    const struct collective gather = gather_of(w->device, r), reduce = reduce_of(w->device, r);
    const struct time_shape *s = w->shape;
    const int64_t blocks_fp8 = w->ways->fp8_gathers ? s->L + s->L_decoder : 0;
    double blocks = (double)(s->L + s->L_decoder), layers = blocks > 0 ? blocks : 1;
    double each = blocks > 0 ? (double)r->block : 0, root = (double)r->root;
    double codes = w->ways->fp8_gathers ? each / r->value_bytes : each;
    double block_gather = lasts(&gather, codes), block_reduce = lasts(&reduce, each);
    double others_gather = lasts(&gather, (double)r->others);
    double open_gather = lasts(&gather, root) + others_gather / 2;
    double others_reduce = lasts(&reduce, (double)r->others);
    double open_reduce = lasts(&reduce, root) + others_reduce / 2;
    double sent = 0, exposed = 0;
    int64_t block_gathers = 0;
    for (int64_t i = 0; i < r->micro_batches && r->world > 1; i++) {
        bool gathers = r->group > 1 && (i == 0 || reshards(r)), again = r->group > 1 && reshards(r);
        bool reduces = i == r->micro_batches - 1 || (r->accumulate_sharded && r->group > 1);
        /* what the scales are made of, once an update */
        int64_t messages = i == 0 ? blocks_fp8 : 0;
        double forward = block_gather + (messages > 0 ? gather.start_s : 0);
        double backward = (again ? block_gather : 0) + (reduces ? block_reduce : 0);
        sent += (gathers ? open_gather + others_gather / 2 + blocks * forward : 0) +
                (again ? others_gather : 0) + (reduces ? open_reduce + others_reduce / 2 : 0) +
                blocks * backward;
        exposed += gathers ? open_gather + blocks * above(forward, m->forward_s / layers) : 0;
        exposed += reduces ? open_reduce : 0;
        exposed += blocks * above(backward, m->backward_s / layers);
        w->step->collectives += r->units * (gathers + again + reduces) + messages;
        block_gathers += gathers + again;
    }
    cast_slices(w, r, each * blocks, block_gathers);
    w->step->sent_s = sent;
    w->step->s[TIME_COMMUNICATION] = exposed + time_interference * above(sent, exposed);
}

static void offload(struct time_walk *w, const struct time_ranks *r, const struct micro_batch *m)
{
    double one_way = (double)r->offloaded_activations / w->device->host_link;
    double waited = above(one_way, m->forward_s) + above(one_way, m->backward_s);
    time_add(w, TIME_OFFLOAD, waited * (double)r->micro_batches, 1, 0);
}

/* ---- the step ---- */

/* Who lands a fusion, or another default, changes its line here, and the table of docs/gpu.md. */
struct time_ways time_ways_ours(const struct time_device *device, enum time_attention_doer forward,
                                enum time_attention_doer backward)
{
    return (struct time_ways){
        .forward_of = time_attention_of(device, forward),
        .backward_of = time_attention_of(device, backward),
        .products = 1,
        .passes = 1,
        .fused_residual = true,
        .fused_clip = true,
        .fused_cast = true,
        .padded_vocabulary = true,
        .update_bytes = 28, /* gradient 4; master weight, and two states, read and written: 24 */
        .cast_bytes = 6,
        .gradient_bytes = 4,
        .clips = true,
    };
}

/* The host launches ahead; where kernels are shorter than its part, they wait for it. */
static double gaps(const struct time_device *d, const struct time_step *step,
                   const struct time_ways *ways, int ranks)
{
    const struct time_launch launch = time_of_launch(d, ways->graphs);
    double busy_s = busy(step) + (double)step->launches * launch.gap;
    double host =
        (double)step->launches * launch.host + (double)step->collectives * launch.collective;
    return (double)step->launches * launch.gap + above(host, busy_s) + time_of_step_end(ranks);
}

/* The first one writes gradients, each other one adds to them. */
static struct micro_batch run_micro_batches(struct time_walk *w, int64_t count)
{
    struct time_step other = {0};
    struct time_walk again = {w->device, w->shape, w->ways, &other, true};
    struct micro_batch m = run_micro_batch(w);
    if (count > 1)
        run_micro_batch(&again);
    for (int kind = 0; kind < TIME_KIND_COUNT; kind++)
        w->step->s[kind] += other.s[kind] * (double)(count - 1);
    w->step->launches += other.launches * (count - 1);
    return m;
}

void time_step_make(const struct time_device *device, const struct time_shape *shape,
                    const struct time_ways *ways, const struct time_ranks *ranks,
                    struct time_step *ret_step)
{
    *ret_step = (struct time_step){0};
    struct time_walk walk = {device, shape, ways, ret_step, ways->accumulates};
    const struct micro_batch m = run_micro_batches(&walk, ranks->micro_batches);
    update(&walk, ranks, &m);
    communicate(&walk, ranks, &m);
    offload(&walk, ranks, &m);
    ret_step->s[TIME_GAPS] = gaps(device, ret_step, ways, ranks->world);
    ret_step->total_s = busy(ret_step);
    ret_step->samples = (double)(shape->rows * ranks->micro_batches);
    ret_step->tokens = ret_step->samples * (double)(shape->T + shape->T_decoder);
}
