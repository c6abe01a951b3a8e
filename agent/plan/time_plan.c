#include "agent/plan/time_plan_internal.h"
#include "agent/plan/trainer_settings.h"
#include "base/mem.h"

/* ---- from a configuration to the model's inputs ---- */

static struct time_shape shape_of(const struct model *model, const struct run_plan_facts *f)
{
    const struct language_shape *l = &model->language;
    int64_t decoder = f->activations.target_tokens;
    bool is_classifier = model->task == MODEL_CLASSES; /* its head is not of the vocabulary */
    return (struct time_shape){
        .rows = f->batch_rows,
        .T = f->sequence_tokens - decoder,
        .T_decoder = decoder,
        .L = l->L,
        .L_decoder = l->L_decoder,
        .D = l->D,
        .heads = l->heads,
        .kv_heads = l->kv_heads,
        .hd = l->hd,
        .I = l->I,
        .V = is_classifier ? model->classes : l->V,
        .gated = l->gated,
        .biases = l->biases,
        .rope = l->rope,
        .positions = l->positions,
        .distance_bias = l->distance_bias,
        .sees_all = l->sees_all,
        .tied = l->tied,
        .post_norm = l->post_norm,
        .packed_qkv = l->packed_qkv,
        .dropout = l->dropout,
        .parameters = f->parameters,
        .value_bytes = f->bytes.value,
        .sample_flops = model->sample_flops,
        .sample_count = model->sample_count,
        .pass_kernels = model->pass_kernels,
    };
}

static enum time_attention_doer forward_of(const struct plan_activations *a)
{
    return a->hopper_forward ? TIME_BY_HOPPER : a->cudnn_forward ? TIME_BY_CUDNN : TIME_BY_OURS;
}

static enum time_attention_doer backward_of(const struct plan_activations *a)
{
    bool is_cudnns = a->cudnn_backward && a->nondeterministic; /* whose speed is known */
    return a->hopper_backward ? TIME_BY_HOPPER : is_cudnns ? TIME_BY_CUDNN : TIME_BY_OURS;
}

static struct time_ways ways_of(const struct agent_config *c, const struct run_plan_facts *f,
                                const struct time_device *device, const struct language_shape *l)
{
    const struct plan_bytes *b = &f->bytes;
    struct time_ways w =
        time_ways_ours(device, forward_of(&f->activations), backward_of(&f->activations));
    w.graphs = f->cuda_graphs;
    w.update_beside = c->runtime.overlap_optimizer && !f->cuda_graphs && !f->cpu_offload;
    w.fp8_casts = f->activations.fp8;
    w.products = w.fp8_casts ? time_fp8_products : w.products;
    w.packed = !l->biases; /* which lie between the weights */
    w.chunk_rows = f->activations.chunk_rows;
    /* kernels/cuda/linear_gelu.c, linear.cu */
    bool gelu = l->gelu_in_products && device->compute_capability >= DEVICE_FUSED_GELU_CAPABILITY &&
                !w.fp8_casts;
    w.fused_activation_gradient = gelu;
    w.fused_activation = gelu && f->activations.nondeterministic &&
                         f->activations.checkpointing != TAPE_CHECKPOINTING_SELECTIVE;
    w.fused_bias = f->activations.nondeterministic && !w.fp8_casts;
    w.update_bytes = b->gradient + 2 * (b->master > 0 ? b->master : b->value) + 2 * b->state;
    w.cast_bytes = b->master > 0 ? b->master + b->value : 0;
    w.clips = c->optimizer.grad_clip > 0;
    w.skips_norm = f->activations.L == 0 && !w.clips;
    w.checkpointing = f->activations.checkpointing;
    return w;
}

static struct time_ranks ranks_of(const struct run_plan_facts *f, const struct run_plan *plan,
                                  const struct run_plan_strategy *s,
                                  const struct run_plan_world *world, double network)
{
    struct time_ranks r = {
        .strategy = s->strategy,
        .world = f->world_size,
        .group = s->group_size,
        .node = world->node_size < f->world_size ? world->node_size : f->world_size,
        .network = network,
        .micro_batches = f->micro_batches,
        .accumulate_sharded = f->accumulate_sharded,
        .value_bytes = f->bytes.value,
        .reduce_bytes = f->bytes.reduction,
        .units = f->unit_count,
        .offloaded_activations = plan->host_activations,
        .cpu_offload = f->cpu_offload,
    };
    for (int i = 0; i < f->unit_count; i++) {
        int64_t count = f->units[i].flat_count;
        r.root += f->units[i].role == PLAN_ROOT ? count : 0;
        r.others += f->units[i].role == PLAN_OTHER ? count : 0;
        r.block += f->units[i].role == PLAN_BLOCK ? count : 0;
    }
    /* what is a unit without being a layer (NO_WRAP has none) is shared out among layers */
    int64_t layers = f->activations.L + f->activations.decoder_L;
    if (layers > 0)
        r.block /= layers;
    else
        r.others += r.block;
    return r;
}

/* What training refuses; the model would divide by a rate of 0. */
static int check_device(const struct time_device *device, const struct agent_config *c,
                        struct error *err)
{
    return trainer_check_capability(c, device->driver_name, device->compute_capability, err);
}

/* ---- one configuration ---- */

int time_plan_evaluate(const struct time_variant *v, const struct model *model,
                       const struct run_plan_world *world, const struct time_question *q,
                       struct time_outcome *ret, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct run_plan_facts facts;
    struct run_plan plan;
    const struct run_plan_world of_device = {world->world_size, world->node_size,
                                             q->device->compute_capability, v->attention};
    if (run_plan_facts_make(v->config, model, &of_device, arena, &facts, err) < 0)
        return -1;
    run_plan_make(&facts, &plan);
    const struct run_plan_strategy *s = &plan.strategies[v->strategy - FULL_SHARD];
    const struct time_shape shape = shape_of(model, &facts);
    *ret =
        (struct time_outcome){.device_bytes = s->device,
                              .attention = forward_of(&facts.activations),
                              .backward_is_ours = facts.activations.cudnn_backward &&
                                                  backward_of(&facts.activations) == TIME_BY_OURS};
    ret->ranks = ranks_of(&facts, &plan, s, world, q->network);
    for (int c = 0; c < FLOPS_CONVENTIONS; c++)
        ret->flops_per_token[c] = facts.flops_per_token[c];
    for (int band = 0; band < TIME_BANDS; band++) {
        const struct time_device device = time_device_in_band(q->device, (enum time_band)band);
        struct time_ways ways = ways_of(v->config, &facts, &device, &model->language);
        ways.fp8_gathers = s->gathers_fp8;
        time_step_make(&device, &shape, &ways, &ret->ranks, &ret->steps[band]);
    }
    return 0;
}

bool time_plan_fits(const struct time_plan *plan, int64_t device_bytes)
{
    const int64_t all = plan->question.device->memory_bytes;
    return device_bytes + run_plan_libraries(plan->world_size, all) <= all;
}

/* ---- who does attention ---- */

/* What each choice would take, where there is one; of cuDNN's backward with equal bits nobody knows
 * the speed, and ours is taken. */
static int add_attention(const struct time_variant *v, const struct model *model,
                         const struct run_plan_world *world, struct time_plan *plan,
                         struct error *err)
{
    const struct time_device *device = plan->question.device;
    const struct {
        const char *name;
        bool is_known;
    } choices[TIME_ATTENTION_DOERS] = {
        [TIME_BY_OURS] = {"ours", true},
        [TIME_BY_CUDNN] = {"cudnn", device->cudnn.forward[0] > 0},
        [TIME_BY_HOPPER] = {"hopper", device->hopper_clock > 0},
    };
    for (int i = 0; i < TIME_ATTENTION_DOERS && model->language.V > 0; i++) {
        struct time_variant by = *v;
        struct time_outcome then;
        by.attention = choices[i].name;
        if (!choices[i].is_known)
            continue;
        if (time_plan_evaluate(&by, model, world, &plan->question, &then, err) < 0)
            return -1;
        if (then.attention != (enum time_attention_doer)i) /* what it cannot do ours does */
            continue;
        plan->attention[plan->attention_count++] = (struct time_by_attention){
            .choice = choices[i].name,
            .doer = (enum time_attention_doer)i,
            .forward_s = then.steps[TIME_MIDDLE].s[TIME_ATTENTION_FORWARD],
            .backward_s = then.steps[TIME_MIDDLE].s[TIME_ATTENTION_BACKWARD],
            .backward_is_ours = then.backward_is_ours,
        };
    }
    return 0;
}

/* ---- the plan ---- */

int time_plan_make(const struct agent_config *config, const struct model *model,
                   const struct run_plan_world *world, enum shard_strategy strategy,
                   const struct time_question *question, struct time_plan *ret_plan,
                   struct error *err)
{
    const struct time_variant asked = {config, strategy, world->attention};
    const struct time_device *device = question->device;
    struct time_outcome now;
    if (check_device(device, config, err) < 0)
        return -1;
    *ret_plan = (struct time_plan){.question = *question, .world_size = world->world_size};
    if (time_plan_evaluate(&asked, model, world, question, &now, err) < 0)
        return -1;
    for (int band = 0; band < TIME_BANDS; band++)
        ret_plan->steps[band] = now.steps[band];
    ret_plan->device_bytes = now.device_bytes;
    ret_plan->fits = time_plan_fits(ret_plan, now.device_bytes);
    const struct time_ranks *r = &now.ranks;
    if (r->world > 1) {
        int ring = r->group > 1 ? r->group : r->world;
        ret_plan->ring_rate = time_ring_rate(device, ring, r->node, r->network);
        ret_plan->over_network = ring > r->node;
    }
    const struct time_step *step = &now.steps[TIME_MIDDLE];
    double peak = flops_peak_per_s(device->driver_name);
    for (int c = 0; c < FLOPS_CONVENTIONS; c++)
        ret_plan->utilization[c] =
            flops_utilization(step->tokens / step->total_s, now.flops_per_token[c], 1, peak);
    if (add_attention(&asked, model, world, ret_plan, err) < 0)
        return -1;
    return time_plan_advise(&asked, &now, model, world, ret_plan, err);
}
