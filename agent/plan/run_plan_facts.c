#include "agent/plan/run_plan_facts.h"

#include "agent/comm/comm_device.h"
#include "agent/models/language.h"
#include "agent/nn/nn_fp8.h"
#include "agent/nn/nn_loss.h"
#include "agent/plan/trainer_settings.h"
#include "agent/shard/shard_layout.h"
#include "base/contract.h"
#include "kernels/attention_choice.h"

#include <stdlib.h>
#include <string.h>

/* Of an element, as the shard engine and the optimizer are configured to keep it. */
static struct plan_bytes bytes_of(const struct shard_config *shard,
                                  const struct optim_config *optim)
{
    int value = (int)dtype_bytes(shard->param_dtype), slice = (int)dtype_bytes(shard->slice_dtype);
    return (struct plan_bytes){
        .value = value,
        .master = slice == value ? 0 : slice,
        .state = optim_config_states(optim) * slice,
        .gradient = (int)dtype_bytes(DTYPE_F32),
        .reduction = (int)dtype_bytes(shard->reduce_dtype),
    };
}

/* The tree's own marks (param.fp8) are those of another configuration, maybe. */
static void add_fp8(const struct module *m, int unit, bool in_block, struct plan_unit *units)
{
    const struct param *weight = nn_fp8_weight(m, in_block);
    unit = m->unit >= 0 ? m->unit : unit;
    units[unit].fp8_count += weight ? weight->count : 0;
    for (int i = 0; i < m->child_count; i++)
        add_fp8(m->children[i], unit, in_block || m->is_block, units);
}

/* Where a model has blocks, what else is a unit has its turn alone; else all are alike. */
static struct plan_unit *units_of(struct arena *arena, const struct shard_layout *layout, bool fp8)
{
    struct plan_unit *units = arena_array(arena, struct plan_unit, layout->unit_count);
    bool has_blocks = false;
    for (int i = 0; i < layout->unit_count; i++)
        has_blocks |= layout->units[i].module->is_block;
    for (int i = 0; i < layout->unit_count; i++) {
        bool is_block = !has_blocks || layout->units[i].module->is_block;
        units[i].flat_count = layout->units[i].flat_count;
        units[i].role = i == 0 ? PLAN_ROOT : is_block ? PLAN_BLOCK : PLAN_OTHER;
    }
    if (fp8)
        add_fp8(layout->units[0].module, 0, false, units);
    return units;
}

/* 0: images. */
static int sequence_tokens(const struct agent_config *c, const struct model *model,
                           int64_t *ret_tokens, struct error *err)
{
    *ret_tokens = 0;
    if (model->task == MODEL_TRANSLATION)
        *ret_tokens = c->data.max_source_length + c->data.max_target_length;
    else if (model->language.V > 0)
        return language_sample_tokens(model, c->data.max_seq_length, ret_tokens, err);
    return 0;
}

/* Whose attention it is: as the backend chooses for each call (kernels/cuda/cudnn.c). */
static int choose_attention(const struct agent_config *c, const struct model *model,
                            const struct run_plan_world *world, int64_t T,
                            struct plan_activations *a, struct error *err)
{
    enum { H100 = 90 };
    const struct language_shape *l = &model->language;
    int64_t width = (l->heads + 2 * l->kv_heads) * l->hd;
    enum attention_mode mode;
    const struct attention_shape shape = {
        .T_q = T,
        .T_k = T,
        .hd = l->hd,
        .q_stride = width,
        .k_stride = width,
        .v_stride = width,
        .causal = l->L_decoder == 0 && !l->sees_all,
        .dropout = l->dropout ? 0.1f : 0, /* any */
        .nondeterministic = a->nondeterministic,
    };
    int capability = world->compute_capability > 0 ? world->compute_capability : H100;
    if (attention_mode_read(world->attention ? world->attention : getenv(ENV_ATTENTION), &mode,
                            err) < 0)
        return -1;
    if (l->V == 0 || l->distance_bias || strcmp(c->runtime.device, "cpu") == 0)
        return 0;
    if (attention_mode_check(mode, "the GPU", capability, err) < 0)
        return -1;
    const struct attention_choice choice = attention_choice_here(mode, capability);
    enum dtype t = trainer_dtype(c);
    const enum attention_doer forward = attention_choose(&choice, ATTENTION_FORWARD, t, &shape),
                              backward = attention_choose(&choice, ATTENTION_BACKWARD, t, &shape);
    a->cudnn_forward = attention_is_cudnns(forward);
    a->cudnn_backward = attention_is_cudnns(backward);
    a->hopper_forward = forward == ATTENTION_BY_HOPPER;
    a->hopper_backward = backward == ATTENTION_BY_HOPPER;
    return 0;
}

static struct plan_activations activations_of(const struct agent_config *c,
                                              const struct model *model)
{
    const struct language_shape *l = &model->language;
    bool is_host = strcmp(c->runtime.device, "cpu") == 0;
    if (l->V == 0) {
        int64_t trained = 2 * c->data.train_batch_size, rows = trained;
        if (c->eval.strategy != EVAL_NO && c->data.eval_batch_size > trained)
            rows = c->data.eval_batch_size;
        return (struct plan_activations){.pass_bytes = rows * model->sample_count *
                                                       (int64_t)dtype_bytes(trainer_dtype(c))};
    }
    return (struct plan_activations){
        .L = l->L,
        .decoder_L = l->L_decoder,
        .target_tokens = l->L_decoder ? c->data.max_target_length : 0,
        .D = l->D,
        .heads = l->heads,
        .kv_heads = l->kv_heads,
        .hd = l->hd,
        .I = l->I,
        .logit_stride = nn_logit_stride(l->V, is_host),
        .gated = l->gated,
        .bias = model->task == MODEL_TRANSLATION,
        .nondeterministic = !c->runtime.deterministic,
        .fp8 = trainer_is_fp8(c),
        .fp8_decoded = is_host,
        .chunk_rows = language_chunk_rows(0, l->V, trainer_dtype(c), is_host),
        .checkpointing = trainer_checkpointing(c),
        .offload = c->memory.offload_activations,
        .horizon = c->memory.activation_loading_horizon,
    };
}

void run_plan_facts_of_host(const struct model *model, struct run_plan_facts *facts)
{
    const struct language_shape *l = &model->language;
    facts->on_host = true;
    if (l->V == 0)
        return;
    facts->activations.chunk_rows = language_chunk_rows(0, l->V, DTYPE_F32, true);
    facts->activations.logit_stride = nn_logit_stride(l->V, true);
    facts->activations.cudnn_forward = facts->activations.cudnn_backward = false;
    facts->activations.hopper_forward = facts->activations.hopper_backward = false;
    facts->activations.fp8_decoded = true;
}

struct flops_shape run_plan_flops_shape(const struct agent_config *c,
                                        const struct language_shape *l, int64_t parameters,
                                        int64_t tokens)
{
    int64_t target = l->L_decoder > 0 ? c->data.max_target_length : 0;
    return (struct flops_shape){
        .parameters = parameters,
        .lookup_parameters = l->embeddings,
        .layers = l->L,
        .attention_width = l->heads * l->hd,
        .sequence_tokens = tokens - target,
        .sees_all = l->sees_all,
        .target_parameters = l->target_parameters,
        .target_layers = l->L_decoder,
        .target_tokens = target,
    };
}

static void add_flops(const struct agent_config *c, const struct model *model, int64_t tokens,
                      double ret_flops[FLOPS_CONVENTIONS])
{
    const struct flops_shape shape =
        run_plan_flops_shape(c, &model->language, module_param_count(model->root), tokens);
    for (int i = 0; i < FLOPS_CONVENTIONS; i++)
        ret_flops[i] = model->language.V > 0 ? flops_per_token(&shape, (enum run_convention)i) : 0;
}

/* A node's ranks, or the most below that which divide the world. */
static int default_group(int world_size, int node_size)
{
    int size = node_size < world_size ? node_size : world_size;
    while (world_size % size != 0)
        size--;
    return size;
}

/* Its own, and those of another pod's rank; of an odd number of pods three keep each other's. */
static int memory_copies(const struct agent_config *c, int world_size, int node_size)
{
    /* Who wants restarts to begin anew keeps none. */
    bool is_read = c->checkpoint.auto_resume || c->checkpoint.resume[0];
    if (c->checkpoint.memory_every_steps == 0 || !is_read)
        return 0;
    int pods = c->checkpoint.memory_buddies ? world_size / node_size : 1;
    return pods < 2 ? 1 : pods % 2 ? 3 : 2;
}

int run_plan_facts_make(const struct agent_config *c, const struct model *model,
                        const struct run_plan_world *world, struct arena *arena,
                        struct run_plan_facts *ret_facts, struct error *err)
{
    int world_size = world->world_size, node_size = world->node_size;
    int64_t group_size = c->parallel.shard_group_size, strategy = c->parallel.strategy;
    int64_t tokens;
    bool is_hybrid = strategy == HYBRID_SHARD || strategy == HYBRID_SHARD_ZERO2;
    if (sequence_tokens(c, model, &tokens, err) < 0)
        return -1;
    if (group_size == 0 || (!is_hybrid && world_size % group_size != 0))
        group_size = default_group(world_size, node_size);
    if (world_size % group_size != 0)
        return error_set(err, ERR_CONFIG,
                         "parallel.shard_group_size: groups of %lld ranks do not divide %d ranks",
                         (long long)group_size, world_size);
    const struct shard_config shard = trainer_shard_config(c, FULL_SHARD, (int)group_size);
    const struct optim_config optim = trainer_optim_config(c, NULL);
    struct shard_layout layout;
    shard_layout_make(arena, model->root, 1, 1, &layout);
    *ret_facts = (struct run_plan_facts){
        .parameters = module_param_count(model->root),
        .units = units_of(arena, &layout, trainer_is_fp8(c)),
        .unit_count = layout.unit_count,
        .bytes = bytes_of(&shard, &optim),
        .activations = activations_of(c, model),
        .batch_rows = c->data.train_batch_size,
        .sequence_tokens = tokens,
        .slots = c->parallel.reduction_slots > 0 ? (int)c->parallel.reduction_slots : 0,
        .world_size = world_size,
        .group_size = (int)group_size,
        .micro_batches = c->optimizer.gradient_accumulation_steps,
        .accumulate_sharded = shard.accumulate_sharded,
        .on_host = strcmp(c->runtime.device, "cpu") == 0,
        .cpu_offload = c->memory.cpu_offload,
        .cuda_graphs = c->runtime.cuda_graphs,
        .windows = c->runtime.register_buffers == REGISTER_SYMMETRIC &&
                   c->runtime.collectives != COMM_DEVICE_HOST &&
                   strcmp(c->runtime.device, "cpu") != 0,
        .memory_copies = memory_copies(c, world_size, node_size),
    };
    add_flops(c, model, tokens, ret_facts->flops_per_token);
    return choose_attention(c, model, world, tokens, &ret_facts->activations, err);
}
