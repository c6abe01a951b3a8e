#include "agent/plan/time_plan.h"

#include "agent/plan/trainer_settings.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

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

static struct time_ways ways_of(const struct agent_config *c, const struct run_plan_facts *f,
                                const struct time_device *device, const struct language_shape *l)
{
    const struct plan_bytes *b = &f->bytes;
    struct time_ways w =
        time_ways_ours(device, f->activations.cudnn_forward,
                       f->activations.cudnn_backward && f->activations.nondeterministic);
    w.graphs = f->cuda_graphs;
    w.update_beside = c->runtime.overlap_optimizer && !f->cuda_graphs && !f->cpu_offload;
    w.fp8_casts = f->activations.fp8;
    w.products = w.fp8_casts ? time_fp8_products : w.products;
    w.packed = !l->biases; /* which lie between the weights */
    w.chunk_rows = f->activations.chunk_rows;
    /* kernels/cuda/linear_gelu.c, linear.cu */
    bool gelu = l->gelu_in_products && device->compute_capability >= 90 && !w.fp8_casts;
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

/* Training refuses it; the model would divide by a rate of 0. */
static bool lacks_bf16(const struct time_device *device, const struct agent_config *c)
{
    return device->bf16 <= 0 && trainer_dtype(c) == DTYPE_BF16;
}

static bool lacks_fp8(const struct time_device *device, const struct agent_config *c)
{
    return device->compute_capability < DEVICE_FP8_CAPABILITY && trainer_is_fp8(c);
}

/* ---- one configuration ---- */

/* What is to be planned: the configuration, or one that differs in a setting. */
struct variant {
    const struct agent_config *config;
    enum shard_strategy strategy;
    bool cudnn;
};

struct outcome {
    struct time_step steps[TIME_BANDS];
    struct time_ranks ranks;
    int64_t device_bytes;
    double flops_per_token[FLOPS_CONVENTIONS];
    bool cudnn;
};

static int evaluate(const struct variant *v, const struct model *model,
                    const struct run_plan_world *world, const struct time_question *q,
                    struct outcome *ret, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct run_plan_facts facts;
    struct run_plan plan;
    const struct run_plan_world of_device = {world->world_size, world->node_size,
                                             q->device->compute_capability};
    if (run_plan_facts_make(v->config, model, &of_device, arena, &facts, err) < 0)
        return -1;
    facts.activations.cudnn_forward |= v->cudnn;
    facts.activations.cudnn_backward |= v->cudnn;
    run_plan_make(&facts, &plan);
    const struct run_plan_strategy *s = &plan.strategies[v->strategy - FULL_SHARD];
    const struct time_shape shape = shape_of(model, &facts);
    *ret = (struct outcome){.device_bytes = s->device, .cudnn = facts.activations.cudnn_forward};
    ret->ranks = ranks_of(&facts, &plan, s, world, q->network);
    for (int c = 0; c < FLOPS_CONVENTIONS; c++)
        ret->flops_per_token[c] = facts.flops_per_token[c];
    for (int band = 0; band < TIME_BANDS; band++) {
        const struct time_device device = time_device_in_band(q->device, (enum time_band)band);
        const struct time_ways ways = ways_of(v->config, &facts, &device, &model->language);
        time_step_make(&device, &shape, &ways, &ret->ranks, &ret->steps[band]);
    }
    return 0;
}

/* Beside what libraries take. */
static bool fits(const struct time_device *device, int64_t device_bytes)
{
    return device_bytes + RUN_PLAN_LIBRARIES <= device->memory_bytes;
}

/* ---- what would be faster, or would fit ---- */

struct setting {
    const char *text;
    struct agent_config config;
    struct variant variant; /* of that config */
};

struct settings {
    struct setting rows[TIME_ADVICE_MAX];
    int count;
};

/* Another setting, as what is planned but for what the caller changes. */
static struct setting *add_setting(struct settings *list, const struct variant *v, const char *text)
{
    assert(list->count < TIME_ADVICE_MAX);
    struct setting *s = &list->rows[list->count++];
    s->text = text;
    s->config = *v->config;
    s->variant = (struct variant){&s->config, v->strategy, false};
    return s;
}

static void add_faster(struct settings *list, const struct variant *v, const struct model *model,
                       const struct outcome *now)
{
    const struct agent_config *c = v->config;
    bool is_language = model->language.V > 0, many = now->ranks.world > 1;
    if (c->memory.activation_checkpointing != RECOMPUTE_NONE)
        add_setting(list, v, "--activation_checkpointing=none")
            ->config.memory.activation_checkpointing = RECOMPUTE_NONE;
    add_setting(list, v, "twice --train_batch_size")->config.data.train_batch_size *= 2;
    add_setting(list, v, "twice --gradient_accumulation_steps")
        ->config.optimizer.gradient_accumulation_steps *= 2;
    if (c->memory.offload_activations)
        add_setting(list, v, "--offload_activations=false")->config.memory.offload_activations =
            false;
    if (c->memory.cpu_offload)
        add_setting(list, v, "--cpu_offload=false")->config.memory.cpu_offload = false;
    if (is_language && c->precision.mixed == PRECISION_FP32)
        add_setting(list, v, "--mixed_precision=bf16")->config.precision.mixed =
            PRECISION_BF16_MIXED;
    if (many && c->precision.reduce_dtype == STATE_FP32)
        add_setting(list, v, "--reduce_dtype=bf16")->config.precision.reduce_dtype = STATE_BF16;
    if (!c->runtime.cuda_graphs)
        add_setting(list, v, "--cuda_graphs")->config.runtime.cuda_graphs = true;
    if (many && c->optimizer.accumulation_sync == ACCUMULATE_EVERY)
        add_setting(list, v, "--accumulation_sync=no_sync")->config.optimizer.accumulation_sync =
            ACCUMULATE_NO_SYNC;
    if (is_language && !now->cudnn)
        add_setting(list, v, "SHOAL_ATTENTION=cudnn")->variant.cudnn = true;
    if (is_language && c->runtime.deterministic && c->parallel.reduction_slots <= 0)
        add_setting(list, v, "--deterministic=false")->config.runtime.deterministic = false;
}

static void add_strategies(struct settings *list, const struct variant *v,
                           const struct outcome *now)
{
    static const char *const texts[] = {
        "--sharding_strategy=FULL_SHARD",         "--sharding_strategy=SHARD_GRAD_OP",
        "--sharding_strategy=NO_SHARD",           "--sharding_strategy=HYBRID_SHARD",
        "--sharding_strategy=HYBRID_SHARD_ZERO2",
    };
    bool many = now->ranks.world > 1, many_nodes = now->ranks.world > now->ranks.node;
    for (int s = FULL_SHARD; s <= HYBRID_SHARD_ZERO2; s++)
        if (s != (int)v->strategy && (s >= HYBRID_SHARD ? many_nodes : many))
            add_setting(list, v, texts[s - FULL_SHARD])->variant.strategy = (enum shard_strategy)s;
}

static void add_smaller(struct settings *list, const struct variant *v)
{
    const struct agent_config *c = v->config;
    if (c->memory.activation_checkpointing != RECOMPUTE_FULL)
        add_setting(list, v, "--activation_checkpointing=full")
            ->config.memory.activation_checkpointing = RECOMPUTE_FULL;
    if (c->memory.activation_checkpointing == RECOMPUTE_NONE)
        add_setting(list, v, "--activation_checkpointing=selective")
            ->config.memory.activation_checkpointing = RECOMPUTE_SELECTIVE;
    if (c->data.train_batch_size > 1)
        add_setting(list, v, "a half of --train_batch_size")->config.data.train_batch_size /= 2;
    if (c->optimizer.gradient_accumulation_steps > 1 &&
        c->optimizer.accumulation_sync != ACCUMULATE_EVERY)
        add_setting(list, v, "--accumulation_sync=every")->config.optimizer.accumulation_sync =
            ACCUMULATE_EVERY;
    if (!c->memory.offload_activations)
        add_setting(list, v, "--offload_activations")->config.memory.offload_activations = true;
    if (!c->memory.cpu_offload)
        add_setting(list, v, "--cpu_offload")->config.memory.cpu_offload = true;
}

/* What the setting gains, and of which kind of work it saves most. */
static void compare(const struct time_step *now, const struct time_step *then,
                    struct time_advice *advice)
{
    double samples = now->samples / then->samples; /* of the same work */
    advice->gain = now->total_s / (then->total_s * samples) - 1;
    for (int kind = 0; kind < TIME_KIND_COUNT; kind++) {
        double saved = now->s[kind] - then->s[kind] * samples;
        if (saved > advice->saved_s) {
            advice->saved_s = saved;
            advice->kind = (enum time_kind)kind;
        }
    }
}

static int more_gain(const void *a, const void *b)
{
    const struct time_advice *x = a, *y = b;
    return (x->gain < y->gain) - (x->gain > y->gain);
}

/* Each setting is planned and timed; what is said is what the model gave. Where the plan does not
 * fit, a setting that does is worth a word though it is slower. */
static int add_advice(const struct variant *v, const struct outcome *now, const struct model *model,
                      const struct run_plan_world *world, struct time_plan *plan, struct error *err)
{
    const double least = 0.01;
    struct settings list = {.count = 0};
    add_faster(&list, v, model, now);
    add_strategies(&list, v, now);
    if (!plan->fits)
        add_smaller(&list, v);
    for (int i = 0; i < list.count; i++) {
        struct outcome then;
        struct time_advice a = {.setting = list.rows[i].text};
        if (lacks_bf16(plan->question.device, list.rows[i].variant.config))
            continue;
        if (evaluate(&list.rows[i].variant, model, world, &plan->question, &then, err) < 0)
            return -1;
        a.device_bytes = then.device_bytes;
        compare(&now->steps[TIME_MIDDLE], &then.steps[TIME_MIDDLE], &a);
        if (fits(plan->question.device, then.device_bytes) && (a.gain > least || !plan->fits))
            plan->advice[plan->advice_count++] = a;
    }
    qsort(plan->advice, (size_t)plan->advice_count, sizeof *plan->advice, more_gain);
    return 0;
}

int time_plan_make(const struct agent_config *config, const struct model *model,
                   const struct run_plan_world *world, enum shard_strategy strategy,
                   const struct time_question *question, struct time_plan *ret_plan,
                   struct error *err)
{
    const struct variant asked = {config, strategy, false};
    const struct time_device *device = question->device;
    struct outcome now;
    if (lacks_bf16(device, config))
        return trainer_refuse_bf16(device->driver_name, device->compute_capability, err);
    if (lacks_fp8(device, config))
        return trainer_refuse_fp8(device->driver_name, device->compute_capability, err);
    *ret_plan = (struct time_plan){.question = *question, .world_size = world->world_size};
    if (evaluate(&asked, model, world, question, &now, err) < 0)
        return -1;
    for (int band = 0; band < TIME_BANDS; band++)
        ret_plan->steps[band] = now.steps[band];
    ret_plan->device_bytes = now.device_bytes;
    ret_plan->fits = fits(device, now.device_bytes);
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
    return add_advice(&asked, &now, model, world, ret_plan, err);
}
