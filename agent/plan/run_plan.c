#include "agent/plan/run_plan.h"

#include "agent/shard/shard_layout.h"
#include "agent/shard/shard_payload.h"
#include "agent/shard/window_plan.h"
#include "agent/shard/wrap.h"
#include "base/mem.h"

#include <stdlib.h>

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- units ---- */

/* Of units, or of what is gathered of them. */
struct unit_sizes {
    int64_t all;                 /* P */
    int64_t root, other;         /* K, E */
    int64_t block, second_block; /* U, U' */
};

struct unit_plan {
    struct unit_sizes elements; /* as a group of S ranks pads them */
    struct unit_sizes gathered; /* bytes */
    /* Bytes of what is gathered in fp8: */
    int64_t rest;              /* of all units */
    int64_t messages, largest; /* of all units, of one: of all ranks */
    int64_t slice;             /* the largest, in bf16 */
    int blocks, fp8_blocks;
};

static void add_unit(struct unit_sizes *a, enum plan_role role, int64_t count)
{
    a->all += count;
    switch (role) {
    case PLAN_ROOT:
        a->root = count;
        break;
    case PLAN_OTHER:
        a->other = max(a->other, count);
        break;
    case PLAN_BLOCK:
        a->second_block = max(a->second_block, count < a->block ? count : a->block);
        a->block = max(a->block, count);
        break;
    }
}

/* The unit's elements as padded for slices of a group, or with slots for a part of each rank. */
static int64_t padded(const struct run_plan_facts *f, int i, int group_size)
{
    const int64_t align = f->activations.fp8 ? LAYOUT_ALIGN_FP8 : LAYOUT_ALIGN;
    const int64_t multiple = align * (f->slots > 0 ? f->world_size : group_size);
    return (f->units[i].flat_count + multiple - 1) / multiple * multiple;
}

static struct unit_plan measure(const struct run_plan_facts *f, int group_size)
{
    struct unit_plan p = {0};
    for (int i = 0; i < f->unit_count; i++) {
        const struct plan_unit *u = &f->units[i];
        int64_t count = padded(f, i, group_size);
        bool fp8 = shard_payload_saves(count, u->fp8_count, group_size);
        add_unit(&p.elements, u->role, count);
        add_unit(&p.gathered, u->role, fp8 ? count : count * f->bytes.value);
        p.blocks += u->role == PLAN_BLOCK;
        if (!fp8)
            continue;
        p.fp8_blocks += u->role == PLAN_BLOCK;
        int64_t slice = count / group_size, rest = count - u->fp8_count;
        int64_t messages = shard_payload_most(rest, slice) * group_size * (int64_t)sizeof(bf16);
        p.rest += rest * (int64_t)sizeof(bf16);
        p.messages += messages;
        p.largest = max(p.largest, messages);
        p.slice = max(p.slice, slice * (int64_t)sizeof(bf16));
    }
    return p;
}

/* ---- strategies ---- */

static bool reshards_after_forward(enum shard_strategy s)
{
    return s == FULL_SHARD || s == HYBRID_SHARD;
}

static int group_size_of(const struct run_plan_facts *f, enum shard_strategy s)
{
    switch (s) {
    case NO_SHARD:
        return 1;
    case HYBRID_SHARD:
    case HYBRID_SHARD_ZERO2:
        return f->group_size;
    default:
        return f->world_size;
    }
}

static void add_persistent(const struct run_plan_facts *f, const struct unit_sizes *a,
                           struct run_plan_strategy *s)
{
    int64_t slice = a->all / s->group_size;
    s->values = slice * f->bytes.value;
    s->masters = slice * f->bytes.master;
    s->states = slice * f->bytes.state;
    s->gradients = slice * f->bytes.gradient;
    s->persistent = s->values + s->masters + s->states + s->gradients;
}

static void add_transient(const struct run_plan_facts *f, const struct unit_plan *p,
                          struct run_plan_strategy *s)
{
    const struct unit_sizes *a = &p->elements, *v = &p->gathered;
    if (s->group_size == 1 && !f->cpu_offload) /* used and reduced in place */
        return;
    int64_t g = f->bytes.gradient, blocks = a->block + a->second_block;
    int64_t gathered_blocks = v->block + v->second_block;
    int64_t kept = p->rest + p->largest + (f->cpu_offload ? p->slice : 0);
    if (reshards_after_forward(s->strategy)) {
        /* either two blocks are at work, or another unit and a block that was gathered ahead */
        int64_t beside = v->other > 0 ? v->other + v->block : 0;
        s->gathered = v->root + max(gathered_blocks, beside);
        s->whole_gradients = g * (a->root + max(blocks, a->other));
        s->transient =
            v->root + g * a->root + max(gathered_blocks + g * blocks, beside + g * a->other);
    } else {
        s->gathered = v->all;
        s->whole_gradients = g * (a->root + blocks + a->other);
        s->transient = s->gathered + s->whole_gradients;
    }
    s->gathered += kept;
    s->transient += kept;
    if (f->micro_batches > 1 && !f->accumulate_sharded) { /* all of them wait for the last one */
        s->transient += g * a->all - s->whole_gradients;
        s->whole_gradients = g * a->all;
    }
}

/* What is reduced in bf16 is packed first, a unit whole; what goes to the host is unpacked, a slice
 * in fp32. */
static void add_packing(const struct run_plan_facts *f, const struct unit_sizes *a,
                        struct run_plan_strategy *s)
{
    enum { PACKED = 2, UNPACKED = 4 };
    int64_t largest = max(a->root, max(a->other, a->block));
    if (f->bytes.reduction != PACKED || (f->world_size == 1 && f->slots == 0))
        return;
    int64_t bytes = largest * PACKED + (f->cpu_offload ? largest / s->group_size * UNPACKED : 0);
    s->whole_gradients += bytes;
    s->transient += bytes;
}

/* Slots' gradients are never added up in place, and what comes of them is kept beside. */
static void add_slots(const struct run_plan_facts *f, const struct unit_sizes *a,
                      struct run_plan_strategy *s)
{
    int64_t largest = max(a->root, max(a->other, a->block)), bytes = 0;
    if (f->slots == 0)
        return;
    if (f->world_size > 1)
        bytes += largest * f->bytes.reduction;
    if (s->group_size == 1 && !f->cpu_offload)
        bytes += f->bytes.gradient *
                 (f->micro_batches > 1 ? a->all : a->root + a->block + a->second_block + a->other);
    s->whole_gradients += bytes;
    s->transient += bytes;
}

/* Micro-batches that a rank runs for each of a slot's. */
static int rounds_of(const struct run_plan_facts *f)
{
    return f->slots > f->world_size ? (f->slots + f->world_size - 1) / f->world_size : 1;
}

/* A ring moves each element to all but one of its n ranks, so a rank sends (n - 1) / n of it. */
static int64_t ring(int n, int64_t bytes)
{
    return bytes / n * (n - 1);
}

/* What is resharded after forward is gathered twice; the root never is. To accumulate whole
 * gradients is to reduce once. */
static void add_traffic(const struct run_plan_facts *f, const struct unit_plan *p,
                        struct run_plan_strategy *s)
{
    const struct unit_sizes *a = &p->elements, *v = &p->gathered;
    int groups = f->world_size / s->group_size;
    int64_t gathered = v->all; /* what is kept is kept between micro-batches too */
    if (reshards_after_forward(s->strategy))
        gathered = (2 * v->all - v->root) * f->micro_batches * rounds_of(f);
    int64_t reduced = a->all * (f->accumulate_sharded ? f->micro_batches : 1);
    s->sent_in_group = ring(s->group_size, gathered + p->messages) +
                       ring(s->group_size, reduced * f->bytes.reduction);
    s->sent_between_groups = 2 * ring(groups, a->all / s->group_size * f->bytes.reduction);
    if (f->slots == 0)
        return;
    /* Each rank sends each other one its part, and a slice's parts meet once. */
    int64_t sent = ring(f->world_size, reduced * f->bytes.reduction) * rounds_of(f);
    int64_t stays = sent / f->world_size * s->group_size;
    s->sent_in_group = ring(s->group_size, gathered + p->messages) + stays;
    s->sent_between_groups =
        sent - stays + ring(groups, a->all / s->group_size * f->bytes.gradient);
}

/* ---- activations ---- */

/* Of one token in one layer: the inputs of both norms and what they give, queries, keys and values,
 * what attention gives and the logarithms of its sums (fp32), the feed-forward's middle. */
static int64_t layer_bytes(const struct plan_activations *a, int value, bool is_selective)
{
    int64_t heads = a->heads * a->hd, kv = a->kv_heads * a->hd;
    int64_t norms = is_selective ? 2 * a->D : 4 * a->D;
    int64_t middle = (a->gated ? 2 : 1) * a->I + (is_selective ? 0 : a->I);
    return value * (norms + heads + 2 * kv + heads + middle) + 4 * a->heads;
}

/* What a layer of a decoder keeps of one token for looking at the encoder's output: another norm's
 * input and what it gives, queries and what attention gives; and of one of the encoder's tokens:
 * keys and values. */
static int64_t cross_bytes(const struct plan_activations *a, int value, bool is_selective)
{
    int64_t norms = is_selective ? a->D : 2 * a->D;
    return value * (norms + 2 * a->heads * a->hd) + 4 * a->heads;
}

/* Bytes of a layer, as it is kept: of all its tokens, at work or only to be run again. */
struct layers {
    int64_t count, whole, kept;
};

static struct layers encoder_layers(const struct run_plan_facts *f)
{
    const struct plan_activations *a = &f->activations;
    int64_t tokens = f->batch_rows * (f->sequence_tokens - a->target_tokens);
    int64_t whole =
        tokens * layer_bytes(a, f->bytes.value, a->checkpointing == TAPE_CHECKPOINTING_SELECTIVE);
    bool recomputes =
        a->checkpointing == TAPE_CHECKPOINTING_FULL; /* of each block its input, and one at work */
    return (struct layers){a->L, whole, recomputes ? tokens * f->bytes.value * a->D : whole};
}

static struct layers decoder_layers(const struct run_plan_facts *f)
{
    const struct plan_activations *a = &f->activations;
    bool is_selective = a->checkpointing == TAPE_CHECKPOINTING_SELECTIVE;
    int64_t source = f->batch_rows * (f->sequence_tokens - a->target_tokens);
    int64_t tokens = f->batch_rows * a->target_tokens, value = f->bytes.value;
    int64_t whole = tokens * (layer_bytes(a, f->bytes.value, is_selective) +
                              cross_bytes(a, f->bytes.value, is_selective)) +
                    source * value * 2 * a->kv_heads * a->hd;
    bool recomputes = a->checkpointing == TAPE_CHECKPOINTING_FULL;
    return (struct layers){a->decoder_L, whole, recomputes ? tokens * value * a->D : whole};
}

/* What a linear layer holds in fp8 at once (agent/nn/nn_fp8.c): forward, values and the weight; for
 * the weight's gradient dy twice, and values; for the values' one dy, and the weight. `decoded`
 * bytes more for each code of the two factors of a product. A weight that is gathered in fp8 is not
 * copied for the one of these two that takes it as it lies. The most that a block has is the same:
 * forward of its last layer takes what the gradient of the values before its middle does, and the
 * other way round. */
static int64_t copies_of(int64_t rows, int64_t in, int64_t out, int64_t decoded)
{
    int64_t forward = rows * in + in * out, values = rows * out + in * out;
    int64_t weights = rows * (2 * out + in) + decoded * rows * (out + in);
    return max(weights, (1 + decoded) * max(forward, values));
}

/* The most that one of a block's has. A CPU decodes to bf16 (kernels/cpu/fp8.c), and does one after
 * the other of what is one matrix on a GPU (agent/nn/nn_linears.c). */
static int64_t fp8_copies(const struct run_plan_facts *f)
{
    const struct plan_activations *a = &f->activations;
    int64_t rows = f->batch_rows * max(f->sequence_tokens - a->target_tokens, a->target_tokens);
    int64_t heads = a->heads * a->hd, qkv = heads + 2 * a->kv_heads * a->hd;
    int64_t middle = (a->gated ? 2 : 1) * a->I, decoded = 0;
    if (!a->fp8)
        return 0;
    if (a->fp8_decoded) {
        decoded = (int64_t)sizeof(bf16);
        qkv = heads;
        middle = a->I;
    }
    int64_t attention =
        max(copies_of(rows, a->D, qkv, decoded), copies_of(rows, heads, a->D, decoded));
    return max(attention,
               max(copies_of(rows, a->D, middle, decoded), copies_of(rows, a->I, a->D, decoded)));
}

static void add_activations(const struct run_plan_facts *f, struct run_plan *plan)
{
    const struct plan_activations *a = &f->activations;
    int64_t tokens = f->batch_rows * f->sequence_tokens, value = f->bytes.value;
    plan->activations = a->pass_bytes;
    if (a->L == 0)
        return;
    const struct layers stacks[] = {encoder_layers(f), decoder_layers(f)};
    int64_t horizon = a->offload ? a->horizon : a->L + a->decoder_L, at_work = 0;
    for (int i = 1; i >= 0; i--) { /* the last ones are those that stay */
        int64_t here = stacks[i].count < horizon ? stacks[i].count : horizon;
        horizon -= here;
        plan->activations += here * stacks[i].kept;
        plan->host_activations += a->offload ? stacks[i].count * stacks[i].kept : 0;
        if (stacks[i].count > 0 && stacks[i].whole > at_work)
            at_work = stacks[i].whole;
    }
    plan->activations += a->checkpointing == TAPE_CHECKPOINTING_FULL ? at_work : 0;
    plan->activation_gradients = tokens * value * (a->I + a->D);
    plan->fp8_copies = fp8_copies(f);
    tokens = a->decoder_L > 0 ? f->batch_rows * a->target_tokens : tokens;
    int64_t rows = tokens < a->chunk_rows ? tokens : a->chunk_rows;
    plan->logits = rows * a->logit_stride * value;
}

/* What cuDNN's backward takes beside that: the keys' and the values' gradients of every head, and
 * the scores; or, in any order, the queries' gradient in fp32. It does as many sequences at a time
 * as its workspace is enough for; what has too much for one is not cuDNN's. */
static int64_t cudnn_scratch(const struct run_plan_facts *f, int64_t T)
{
    const struct plan_activations *a = &f->activations;
    if (!a->cudnn_backward || f->bytes.value != (int)sizeof(bf16) || (a->hd != 64 && a->hd != 128))
        return 0;
    int64_t queries = a->heads * T; /* of a sequence */
    int64_t keys = a->heads > a->kv_heads ? 2 * queries * a->hd : 0;
    int64_t scores = a->nondeterministic ? 0 : queries * T;
    int64_t sums = a->nondeterministic ? queries * a->hd : 0;
    int64_t workspace = (int64_t)sizeof(bf16) * (scores + keys);
    int64_t sequences = f->batch_rows;
    while (sequences > 0 &&
           (f->batch_rows % sequences != 0 || sequences * workspace > RUN_PLAN_CUDNN))
        sequences--;
    return sequences * (workspace + sums * (int64_t)sizeof(float));
}

/* What attention's backward has for itself, at the most (kernels/cuda/attention.cu, cudnn_run.c):
 * of each query and head a sum, or two numbers of so many tiles of 128; of a bias, its numbers as
 * they are read and sums of the scores' gradients along diagonals, of so many queries each. */
static int64_t attention_scratch(const struct run_plan_facts *f)
{
    const struct plan_activations *a = &f->activations;
    int64_t T = max(f->sequence_tokens - a->target_tokens, a->target_tokens);
    int64_t heads = f->batch_rows * a->heads, floats = heads * T;
    if (a->hopper_backward)
        return heads * ((T + 127) / 128 * 128) * 2 * (int64_t)sizeof(float);
    if (!a->bias)
        return floats * (int64_t)sizeof(float) + cudnn_scratch(f, T);
    int64_t queries = a->hd > 64 ? 16 : 32, length = (T + 63) / 64 * 64 + 32;
    floats += heads * ((T + queries - 1) / queries) * length + 2 * T * a->heads;
    return floats * (int64_t)sizeof(float);
}

/* Returns what goes from the reserve. */
static int64_t add_windows(const struct run_plan_facts *f, struct run_plan_strategy *s)
{
    if (!f->windows || s->group_size == 1 || f->cpu_offload)
        return 0;
    const struct window_rules rules[] = {
        window_rules_of_gathers(s->group_size, f->bytes.value, reshards_after_forward(s->strategy)),
        window_rules_of_reductions(s->group_size, f->bytes.reduction),
    };
    auto_free int64_t *flat_counts = xcalloc((size_t)f->unit_count, sizeof *flat_counts);
    int64_t moved = 0;
    for (int k = 0; k < (f->slots > 0 ? 1 : 2); k++) {
        struct window_plan plan;
        for (int i = 0; i < f->unit_count; i++) {
            int64_t count = padded(f, i, s->group_size);
            bool fp8 = k == 0 && shard_payload_saves(count, f->units[i].fp8_count, s->group_size);
            flat_counts[i] = fp8 ? 0 : count; /* such gathers use no window */
        }
        window_plan_make(&rules[k], flat_counts, f->unit_count, &plan, NULL);
        s->windows += plan.bytes;
        moved += plan.slice_bytes + plan.kept_bytes;
    }
    return moved;
}

static void add_totals(const struct run_plan_facts *f, const struct run_plan *plan,
                       struct run_plan_strategy *s)
{
    int64_t step = s->transient + plan->activations + plan->logits;
    int64_t scratch = max(RUN_PLAN_SCRATCH, attention_scratch(f));
    s->allowance = scratch + plan->fp8_copies + plan->activation_gradients + step / RUN_PLAN_PART;
    s->reserve = step + s->allowance + (f->cpu_offload ? 0 : s->persistent) - add_windows(f, s);
    s->device = s->reserve + s->windows + plan->graphs;
    s->host = plan->host_activations + (f->cpu_offload ? s->persistent : 0);
    s->snapshot = (s->masters > 0 ? s->masters : s->values) + s->states;
    s->memory_checkpoints = f->memory_copies * RUN_PLAN_SNAPSHOTS * s->snapshot;
}

void run_plan_make(const struct run_plan_facts *f, struct run_plan *ret_plan)
{
    *ret_plan = (struct run_plan){.parameters = f->parameters, .units = f->unit_count};
    add_activations(f, ret_plan);
    if (f->cuda_graphs)
        ret_plan->graphs = (f->activations.L + f->activations.decoder_L + 1) * RUN_PLAN_FORMS *
                           RUN_PLAN_KERNELS * RUN_PLAN_KERNEL;
    for (int i = 0; i < RUN_PLAN_STRATEGIES; i++) {
        struct run_plan_strategy *s = &ret_plan->strategies[i];
        s->strategy = (enum shard_strategy)(FULL_SHARD + i);
        s->group_size = group_size_of(f, s->strategy);
        const struct unit_plan p = measure(f, s->group_size);
        s->gathers_fp8 = p.blocks > 0 && p.fp8_blocks == p.blocks;
        add_persistent(f, &p.elements, s);
        add_transient(f, &p, s);
        add_packing(f, &p.elements, s);
        add_slots(f, &p.elements, s);
        add_traffic(f, &p, s);
        add_totals(f, ret_plan, s);
    }
    ret_plan->samples =
        f->batch_rows * (f->slots > 0 ? f->slots : f->world_size) * f->micro_batches;
    ret_plan->tokens = ret_plan->samples * f->sequence_tokens;
    for (int c = 0; c < FLOPS_CONVENTIONS; c++)
        ret_plan->flops[c] = f->flops_per_token[c] * (double)ret_plan->tokens;
}

/* ---- advice ---- */

enum tape_checkpointing run_plan_least_recompute(const struct run_plan_facts *facts,
                                                 enum shard_strategy strategy, int64_t *ret_device)
{
    const int64_t most = (int64_t)RUN_PLAN_GPU_GB * 1000000000 - RUN_PLAN_LIBRARIES;
    enum tape_checkpointing configured = facts->activations.checkpointing;
    struct run_plan_facts f = *facts;
    struct run_plan plan;
    for (int c = TAPE_CHECKPOINTING_NONE; c <= (int)configured; c++) {
        f.activations.checkpointing = (enum tape_checkpointing)c;
        run_plan_make(&f, &plan);
        *ret_device = plan.strategies[strategy - FULL_SHARD].device;
        if (plan.activations > 0 && *ret_device <= most)
            return (enum tape_checkpointing)c;
    }
    return configured;
}

bool run_plan_units_are_small(int64_t parameters, int units)
{
    return units > 1 && parameters / units < WRAP_SMALL_UNIT;
}

struct run_plan_advice run_plan_advise(int64_t parameters)
{
    static const struct {
        int64_t below;
        struct run_plan_advice advice;
    } rows[] = {
        {INT64_C(1000000000), {"below 1B parameters", NO_SHARD, false, false, 1, 4, 1, 1}},
        {INT64_C(10000000000), {"1B to 10B parameters", SHARD_GRAD_OP, true, false, 4, 8, 1, 2}},
        {INT64_C(70000000000), {"10B to 70B parameters", FULL_SHARD, true, false, 8, 8, 2, 8}},
        {INT64_MAX, {"70B parameters and more", FULL_SHARD, true, true, 8, 8, 8, 32}},
    };
    int i = 0;
    while (parameters >= rows[i].below)
        i++;
    return rows[i].advice;
}
