#include "agent/plan/run_plan_internal.h"

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

/* What comes of slots' gradients is kept beside, and they are only in place if each rank has one
 * slot and adds all of a step's up at once. */
static void add_slots(const struct run_plan_facts *f, const struct unit_sizes *a,
                      struct run_plan_strategy *s)
{
    int64_t largest = max(a->root, max(a->other, a->block)), bytes = 0;
    if (f->slots == 0)
        return;
    bool each = shard_reduces_each(f->accumulate_sharded, s->strategy);
    bool in_place = slots_sum_in_place((struct slots){f->slots, f->world_size}, each);
    if (f->world_size > 1)
        bytes += f->world_size * f->bytes.reduction *
                 slots_piece(largest / f->world_size, f->bytes.reduction, f->on_host);
    if (s->group_size == 1 && !f->cpu_offload && !in_place)
        bytes += f->bytes.gradient * (f->micro_batches > 1 && !each
                                          ? a->all
                                          : a->root + a->block + a->second_block + a->other);
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
    bool each = f->slots > 0 ? shard_reduces_each(f->accumulate_sharded, s->strategy)
                             : f->accumulate_sharded;
    int64_t reduced = a->all * (each ? f->micro_batches : 1);
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

static void add_totals(const struct run_plan_facts *f, const struct run_plan *plan,
                       struct run_plan_strategy *s)
{
    int64_t step = s->transient + plan->activations + plan->logits;
    int64_t scratch = max(RUN_PLAN_SCRATCH, run_plan_attention_scratch(f));
    const struct unit_windows windows =
        run_plan_windows(f, s->group_size, reshards_after_forward(s->strategy));
    s->allowance = scratch + plan->fp8_copies + plan->activation_gradients + step / RUN_PLAN_PART;
    s->windows = windows.bytes;
    s->reserve =
        step + s->allowance + (f->cpu_offload ? 0 : s->persistent) - windows.of_the_reserve;
    s->device = s->reserve + s->windows + plan->graphs;
    s->host = plan->host_activations + (f->cpu_offload ? s->persistent : 0);
    s->snapshot = (s->masters > 0 ? s->masters : s->values) + s->states;
    s->memory_checkpoints = f->memory_copies * RUN_PLAN_SNAPSHOTS * s->snapshot;
}

void run_plan_make(const struct run_plan_facts *f, struct run_plan *ret_plan)
{
    *ret_plan = (struct run_plan){.parameters = f->parameters, .units = f->unit_count};
    run_plan_add_activations(f, ret_plan);
    if (f->cuda_graphs)
        ret_plan->graphs = (f->activations.L + f->activations.decoder_L + 1) * RUN_PLAN_FORMS *
                           RUN_PLAN_KERNELS * RUN_PLAN_KERNEL;
    for (int i = 0; i < RUN_PLAN_STRATEGIES; i++) {
        struct run_plan_strategy *s = &ret_plan->strategies[i];
        s->strategy = (enum shard_strategy)(FULL_SHARD + i);
        s->group_size = group_size_of(f, s->strategy);
        const struct unit_plan p = run_plan_measure_units(f, s->group_size);
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
