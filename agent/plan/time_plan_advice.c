/* What would be faster, or would fit: each setting of the configuration that the model of time
 * knows an effect of is planned and timed once more, or it is told why not. */
#include "agent/nn/nn_fp8.h"
#include "agent/plan/time_plan_internal.h"
#include "agent/plan/trainer_settings.h"
#include "kernels/device.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct setting {
    const char *text, *note, *not_here; /* as in struct time_advice */
    struct agent_config config;
    struct time_variant variant; /* of that config */
};

struct settings {
    struct setting rows[TIME_ADVICE_MAX];
    int count;
};

/* Another setting, as what is planned but for what the caller changes. */
static struct setting *add_setting(struct settings *list, const struct time_variant *v,
                                   const char *text)
{
    assert(list->count < TIME_ADVICE_MAX);
    struct setting *s = &list->rows[list->count++];
    *s = (struct setting){.text = text, .config = *v->config};
    s->variant = (struct time_variant){&s->config, v->strategy, v->attention};
    return s;
}

static void add_memory_for_time(struct settings *list, const struct time_variant *v)
{
    const struct agent_config *c = v->config;
    if (c->memory.activation_checkpointing != RECOMPUTE_NONE)
        add_setting(list, v, "--activation_checkpointing=none")
            ->config.memory.activation_checkpointing = RECOMPUTE_NONE;
    if (c->memory.activation_checkpointing == RECOMPUTE_FULL)
        add_setting(list, v, "--activation_checkpointing=selective")
            ->config.memory.activation_checkpointing = RECOMPUTE_SELECTIVE;
    add_setting(list, v, "twice --train_batch_size")->config.data.train_batch_size *= 2;
    add_setting(list, v, "twice --gradient_accumulation_steps")
        ->config.optimizer.gradient_accumulation_steps *= 2;
    if (c->memory.offload_activations)
        add_setting(list, v, "--offload_activations=false")->config.memory.offload_activations =
            false;
    if (c->memory.cpu_offload)
        add_setting(list, v, "--cpu_offload=false")->config.memory.cpu_offload = false;
}

/* Why products in fp8 cannot be had; NULL: they can. */
static const char *lacks_fp8(const struct agent_config *c, const struct model *model,
                             const struct time_device *device)
{
    struct error ignored;
    if (device->compute_capability < DEVICE_FP8_CAPABILITY)
        return "it needs compute capability 8.9";
    if (trainer_dtype(c) != DTYPE_BF16)
        return "it needs --mixed_precision=bf16";
    return nn_fp8_check(model->root, &ignored) < 0 ? "sizes of layers are no multiples of 16"
                                                   : NULL;
}

static void add_precision(struct settings *list, const struct time_variant *v,
                          const struct model *model, const struct time_device *device, bool many)
{
    const struct agent_config *c = v->config;
    bool is_language = model->language.V > 0;
    if (is_language && c->precision.mixed == PRECISION_FP32) {
        struct setting *s = add_setting(list, v, "--mixed_precision=bf16");
        s->config.precision.mixed = PRECISION_BF16_MIXED;
        s->note = "another numerics";
        s->not_here = device->bf16 > 0 ? NULL : "it needs compute capability 8.0";
    }
    if (is_language && !c->precision.fp8) {
        struct setting *s = add_setting(list, v, "--precision.fp8=true");
        s->config.precision.fp8 = true;
        s->note = "another numerics: compare losses first";
        s->not_here = lacks_fp8(c, model, device);
    }
    if (trainer_is_fp8(c))
        add_setting(list, v, "--precision.fp8=false")->config.precision.fp8 = false;
    if (many && c->precision.reduce_dtype == STATE_FP32) {
        struct setting *s = add_setting(list, v, "--reduce_dtype=bf16");
        s->config.precision.reduce_dtype = STATE_BF16;
        s->note = "gradients are rounded before they are summed";
    }
}

static void add_runtime(struct settings *list, const struct time_variant *v, bool is_language,
                        bool many)
{
    const struct agent_config *c = v->config;
    add_setting(list, v, c->runtime.cuda_graphs ? "--cuda_graphs=false" : "--cuda_graphs")
        ->config.runtime.cuda_graphs = !c->runtime.cuda_graphs;
    if (!c->runtime.overlap_optimizer) {
        struct setting *s = add_setting(list, v, "--overlap_optimizer=true");
        s->config.runtime.overlap_optimizer = true;
        s->not_here = c->runtime.cuda_graphs  ? "not with --cuda_graphs"
                      : c->memory.cpu_offload ? "not with --cpu_offload"
                                              : NULL;
    }
    if (many && c->optimizer.gradient_accumulation_steps > 1 &&
        c->optimizer.accumulation_sync == ACCUMULATE_EVERY)
        add_setting(list, v, "--accumulation_sync=no_sync")->config.optimizer.accumulation_sync =
            ACCUMULATE_NO_SYNC;
    if (is_language && c->runtime.deterministic) {
        struct setting *s = add_setting(list, v, "--deterministic=false");
        s->config.runtime.deterministic = false;
        s->note = "last bits differ from run to run";
        s->not_here =
            c->parallel.reduction_slots > 0 ? "--parallel.reduction_slots refuses it" : NULL;
    }
}

static void add_attention_by(struct settings *list, const struct time_variant *v,
                             const struct time_plan *plan, enum time_attention_doer doer,
                             const char *text, const char *note)
{
    const struct time_by_attention *by = NULL;
    struct setting *s = add_setting(list, v, text);
    for (int i = 0; i < plan->attention_count; i++)
        if (plan->attention[i].doer == doer)
            by = &plan->attention[i];
    s->variant.attention = strchr(text, '=') + 1;
    s->note = by && by->backward_is_ours ? time_backward_note : note;
    s->not_here = by ? NULL : "it is for bf16, heads 64 or 128 wide, no dropout and no bias";
}

static void add_attention(struct settings *list, const struct time_variant *v,
                          const struct time_plan *plan, enum time_attention_doer now)
{
    const struct time_device *device = plan->question.device;
    if (now != TIME_BY_CUDNN && device->cudnn.forward[0] > 0)
        add_attention_by(list, v, plan, TIME_BY_CUDNN, "SHOAL_ATTENTION=cudnn", NULL);
    if (now != TIME_BY_HOPPER && device->hopper_clock > 0)
        add_attention_by(list, v, plan, TIME_BY_HOPPER, "SHOAL_ATTENTION=hopper", time_hopper_note);
}

static void add_strategies(struct settings *list, const struct time_variant *v,
                           const struct time_outcome *now)
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

static void add_smaller(struct settings *list, const struct time_variant *v)
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
    advice->saved_s = now->total_s - then->total_s * samples;
    advice->gain = now->total_s / (then->total_s * samples) - 1;
    for (int kind = 0; kind < TIME_KIND_COUNT; kind++) {
        double saved = now->s[kind] - then->s[kind] * samples;
        if (saved > advice->kind_saved_s) {
            advice->kind_saved_s = saved;
            advice->kind = (enum time_kind)kind;
        }
    }
}

static int by_verdict_and_gain(const void *a, const void *b)
{
    const struct time_advice *x = a, *y = b;
    if (x->verdict != y->verdict)
        return (x->verdict > y->verdict) - (x->verdict < y->verdict);
    return (x->gain < y->gain) - (x->gain > y->gain);
}

/* Where the plan does not fit, a setting that does is worth a word though it is slower. */
static enum time_verdict judge(const struct time_plan *plan, const struct time_advice *a)
{
    const double least = 0.01;
    if (!time_plan_fits(plan, a->device_bytes))
        return TIME_TOO_LARGE;
    return a->gain > least || !plan->fits ? TIME_ADVISED : TIME_NO_FASTER;
}

static int try_setting(const struct setting *s, const struct time_outcome *now,
                       const struct model *model, const struct run_plan_world *world,
                       struct time_plan *plan, struct error *err)
{
    struct time_outcome then;
    struct time_advice *a = &plan->advice[plan->advice_count++];
    *a = (struct time_advice){.setting = s->text, .note = s->note, .not_here = s->not_here};
    if (s->not_here) {
        a->verdict = TIME_NOT_HERE;
        return 0;
    }
    if (time_plan_evaluate(&s->variant, model, world, &plan->question, &then, err) < 0)
        return -1;
    a->device_bytes = then.device_bytes;
    compare(&now->steps[TIME_MIDDLE], &then.steps[TIME_MIDDLE], a);
    a->verdict = judge(plan, a);
    return 0;
}

int time_plan_advise(const struct time_variant *v, const struct time_outcome *now,
                     const struct model *model, const struct run_plan_world *world,
                     struct time_plan *plan, struct error *err)
{
    bool is_language = model->language.V > 0, many = now->ranks.world > 1;
    const struct time_device *device = plan->question.device;
    struct settings list = {.count = 0};
    add_memory_for_time(&list, v);
    add_precision(&list, v, model, device, many);
    add_runtime(&list, v, is_language, many);
    if (is_language)
        add_attention(&list, v, plan, now->attention);
    add_strategies(&list, v, now);
    if (!plan->fits)
        add_smaller(&list, v);
    for (int i = 0; i < list.count; i++)
        if (try_setting(&list.rows[i], now, model, world, plan, err) < 0)
            return -1;
    qsort(plan->advice, (size_t)plan->advice_count, sizeof *plan->advice, by_verdict_and_gain);
    return 0;
}
