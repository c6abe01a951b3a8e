#include "agent/plan/run_plan.h"

#include "agent/shard/wrap.h"
#include "base/gigabytes.h"
#include "base/json_text.h"
#include "base/mem.h"

#include <inttypes.h>

/* Of enum tape_checkpointing, as --activation_checkpointing says them. */
static const char *const checkpointing_names[] = {"none", "selective", "full"};

/* "1,235,814,400". */
static void add_count(int64_t count, struct str *out)
{
    if (count >= 1000) {
        add_count(count / 1000, out);
        str_printf(out, ",%03" PRId64, count % 1000);
    } else {
        str_printf(out, "%" PRId64, count);
    }
}

static void add_head(const struct run_plan *p, const struct run_plan_facts *f, struct str *out)
{
    const struct plan_bytes *b = &f->bytes;
    add_count(p->parameters, out);
    str_printf(out,
               " parameters in %d unit%s; bytes per element: parameters %d, master weights %d, ",
               p->units, p->units == 1 ? "" : "s", b->value, b->master);
    str_printf(out, "optimizer %d, gradients %d\n", b->state, b->gradient);
    str_printf(out, "%d rank%s, %" PRId64 " sample%s each, %" PRId64 " micro-batch%s per step: ",
               f->world_size, f->world_size == 1 ? "" : "s", f->batch_rows,
               f->batch_rows == 1 ? "" : "s", f->micro_batches, f->micro_batches == 1 ? "" : "es");
    add_count(p->tokens > 0 ? p->tokens : p->samples, out);
    str_add(out, p->tokens > 0 ? " tokens in all" : " in all");
    if (p->flops[FLOPS_FULL] > 0)
        str_printf(out, ", %.4g TFLOP (causal), %.4g TFLOP (full attention)",
                   p->flops[FLOPS_CAUSAL] / 1e12, p->flops[FLOPS_FULL] / 1e12);
    str_add(out, "\n\n");
}

static void add_strategy(const struct run_plan_strategy *s, enum shard_strategy current,
                         struct str *out)
{
    const int64_t columns[] = {s->values + s->masters, s->states, s->gradients, s->gathered,
                               s->whole_gradients,     s->device, s->host,      s->sent_in_group,
                               s->sent_between_groups};
    str_printf(out, "%c %-18s %5d", s->strategy == current ? '*' : ' ',
               shard_strategy_name(s->strategy), s->group_size);
    for (size_t i = 0; i < array_length(columns); i++)
        str_printf(out, " %9.3f", gigabytes(columns[i]));
    str_add(out, "\n");
}

static void add_memory_checkpoints(const struct run_plan_strategy *s, struct str *out)
{
    if (s->memory_checkpoints > 0)
        str_printf(
            out,
            "Where a launcher may start the ranks again (runtime.max_restarts), checkpoints in "
            "memory take %.3f GB more per rank on the host "
            "(checkpoint.memory_every_steps=0: none)\n",
            gigabytes(s->memory_checkpoints));
}

void run_plan_print_short(const struct run_plan *p, const struct run_plan_facts *f,
                          enum shard_strategy current, struct str *out)
{
    const struct run_plan_strategy *s = &p->strategies[current - FULL_SHARD];
    const struct {
        const char *what;
        int64_t bytes;
    } rows[] = {
        {"shards", s->values + s->masters},
        {"optimizer", s->states},
        {"gradients", s->gradients},
        {"gathered", s->gathered},
        {"whole gradients", s->whole_gradients},
        {"activations", p->activations},
        {"logits", p->logits},
        {"scratch and gaps", s->allowance},
        {"symmetric windows", s->windows},
        {"CUDA graphs", p->graphs},
    };
    str_printf(out,
               "%d rank%s, %s in groups of %d: about %.3f GB per rank on its device, %.3f on the "
               "host (shoal plan prints more)\n",
               f->world_size, f->world_size == 1 ? "" : "s", shard_strategy_name(current),
               s->group_size, gigabytes(s->device), gigabytes(s->host));
    for (size_t i = 0; i < array_length(rows); i++)
        if (i < array_length(rows) - 2 || rows[i].bytes > 0)
            str_printf(out, "%s%s %.3f", i ? ", " : "GB: ", rows[i].what, gigabytes(rows[i].bytes));
    str_add(out, p->activations ? "\n" : "; activations are not known for this model\n");
    add_memory_checkpoints(s, out);
}

static void add_range(int low, int high, const char *what, struct str *out)
{
    if (low < high)
        str_printf(out, "%d to ", low);
    str_printf(out, "%d %s%s", high, what, high == 1 ? "" : "s");
}

static const struct run_plan_strategy *plan_of(const struct run_plan *p, enum shard_strategy which)
{
    return &p->strategies[which - FULL_SHARD];
}

/* Not where GPUs of 80 GB hold the activations: it costs a third of the speed. */
static bool is_offloading_advised(const struct run_plan *p, const struct run_plan_advice *a,
                                  enum shard_strategy strategy)
{
    return a->offload_activations && gigabytes(plan_of(p, strategy)->device) > RUN_PLAN_GPU_GB;
}

void run_plan_print_advice(const struct run_plan *p, const enum shard_strategy *current,
                           struct str *out)
{
    const struct run_plan_advice a = run_plan_advise(p->parameters);
    int64_t more = current ? plan_of(p, a.strategy)->device - plan_of(p, *current)->device : 0;
    str_printf(out, "Advice for %s: ", a.size);
    if (more <= 0)
        str_printf(out, "--sharding_strategy=%s ", shard_strategy_name(a.strategy));
    str_printf(out, "--offload_activations=%d%s, ",
               is_offloading_advised(p, &a, current && more > 0 ? *current : a.strategy),
               a.cpu_offload_if_needed ? " (--cpu_offload=1 if needed)" : "");
    add_range(a.min_gpus, a.max_gpus, "GPU", out);
    str_add(out, " per node, ");
    add_range(a.min_nodes, a.max_nodes, "node", out);
    if (more > 0)
        str_printf(out, " (%s would need %.3f GB more)", shard_strategy_name(a.strategy),
                   gigabytes(more));
    str_add(out, "\n");
}

/* What backward computes again though GPUs would hold it costs a fifth of the speed. */
static void add_less_recompute(const struct run_plan_facts *f, enum shard_strategy current,
                               struct str *out)
{
    int64_t device;
    enum tape_checkpointing least = run_plan_least_recompute(f, current, &device);
    if (least == f->activations.checkpointing)
        return;
    str_printf(out,
               "--activation_checkpointing=%s is faster, backward computing %s again, and takes "
               "%.3f GB per rank: GPUs of %d GB have that\n",
               checkpointing_names[least], least == TAPE_CHECKPOINTING_NONE ? "nothing" : "less",
               gigabytes(device), RUN_PLAN_GPU_GB);
}

void run_plan_print(const struct run_plan *p, const struct run_plan_facts *f,
                    enum shard_strategy current, struct str *out)
{
    add_head(p, f, out);
    str_add(out, "GB per rank          group    shards optimizer gradients  gathered   + whole"
                 "     total   on host sent/step   between\n"
                 "                                                                    gradients"
                 " on device           in group    groups\n");
    for (int i = 0; i < RUN_PLAN_STRATEGIES; i++)
        add_strategy(&p->strategies[i], current, out);
    str_add(out, "\n");
    if (p->activations > 0)
        str_printf(out, "In the total: activations %.3f GB, logits %.3f GB\n",
                   gigabytes(p->activations), gigabytes(p->logits));
    else
        str_add(out, "Not in the total: activations, which are not known for this model\n");
    if (p->strategies[current - FULL_SHARD].windows > 0)
        str_printf(out, "In the total: symmetric windows %.3f GB\n",
                   gigabytes(p->strategies[current - FULL_SHARD].windows));
    str_printf(
        out,
        "In the total, estimated overhead, not part of the out-of-memory check: scratch of ops and "
        "gaps between tensors %.3f GB",
        gigabytes(p->strategies[current - FULL_SHARD].allowance));
    if (p->fp8_copies > 0)
        str_printf(out, " (%.3f GB of it copies in fp8%s)", gigabytes(p->fp8_copies),
                   f->activations.fp8_decoded ? ", and decoded" : "");
    if (p->graphs > 0)
        str_printf(out, ", CUDA graphs %.3f GB", gigabytes(p->graphs));
    str_add(out, "\n");
    add_memory_checkpoints(&p->strategies[current - FULL_SHARD], out);
    run_plan_print_advice(p, &current, out);
    add_less_recompute(f, current, out);
    if (run_plan_units_are_small(p->parameters, p->units))
        str_printf(out,
                   "Units of %.3gM parameters are small (below %dM): one unit "
                   "(--auto_wrap_policy=NO_WRAP) or NO_SHARD is faster where memory allows it\n",
                   (double)p->parameters / p->units / 1e6, WRAP_SMALL_UNIT / 1000000);
}

/* ---- JSON ---- */

static void add_strategy_json(const struct run_plan_strategy *s, enum shard_strategy current,
                              struct str *out)
{
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {
        {"group_size", s->group_size},
        {"value_bytes", s->values},
        {"master_bytes", s->masters},
        {"optimizer_bytes", s->states},
        {"gradient_bytes", s->gradients},
        {"persistent_bytes", s->persistent},
        {"gathered_bytes", s->gathered},
        {"whole_gradient_bytes", s->whole_gradients},
        {"transient_bytes", s->transient},
        {"window_bytes", s->windows},
        {"allowance_bytes", s->allowance},
        {"device_bytes", s->device},
        {"host_bytes", s->host},
        {"memory_checkpoint_bytes", s->memory_checkpoints},
        {"sent_in_group_bytes", s->sent_in_group},
        {"sent_between_groups_bytes", s->sent_between_groups},
    };
    str_printf(out, "{\"strategy\":\"%s\",\"configured\":%s", shard_strategy_name(s->strategy),
               s->strategy == current ? "true" : "false");
    for (size_t i = 0; i < array_length(rows); i++)
        str_printf(out, ",\"%s\":%" PRId64, rows[i].name, rows[i].value);
    str_add(out, "}");
}

void run_plan_json(const struct run_plan *p, const struct run_plan_facts *f,
                   enum shard_strategy current, const char *time, struct str *out)
{
    const struct run_plan_advice a = run_plan_advise(p->parameters);
    int64_t device;
    str_printf(out,
               "{\"parameters\":%" PRId64 ",\"units\":%d,\"world_size\":%d,"
               "\"samples_per_step\":%" PRId64 ",\"tokens_per_step\":%" PRId64,
               p->parameters, p->units, f->world_size, p->samples, p->tokens);
    for (int c = 0; c < FLOPS_CONVENTIONS; c++) {
        str_printf(out, ",\"flops_per_step_%s\":", run_convention_name((enum run_convention)c));
        json_number(p->flops[c], out);
    }
    str_printf(out,
               ",\"activation_bytes\":%" PRId64 ",\"logits_bytes\":%" PRId64
               ",\"fp8_copy_bytes\":%" PRId64 ",\"cuda_graphs_bytes\":%" PRId64,
               p->activations, p->logits, p->fp8_copies, p->graphs);
    str_printf(out,
               ",\"advice\":{\"size\":\"%s\",\"strategy\":\"%s\",\"offload_activations\":%s,"
               "\"cpu_offload_if_needed\":%s,\"activation_checkpointing\":\"%s\","
               "\"gpus_per_node\":[%d,%d],\"nodes\":[%d,%d]}",
               a.size, shard_strategy_name(a.strategy),
               is_offloading_advised(p, &a, current) ? "true" : "false",
               a.cpu_offload_if_needed ? "true" : "false",
               checkpointing_names[run_plan_least_recompute(f, current, &device)], a.min_gpus,
               a.max_gpus, a.min_nodes, a.max_nodes);
    str_add(out, ",\"strategies\":[");
    for (int i = 0; i < RUN_PLAN_STRATEGIES; i++) {
        str_add(out, i ? "," : "");
        add_strategy_json(&p->strategies[i], current, out);
    }
    str_add(out, "]");
    if (time[0])
        str_printf(out, ",\"time\":%s", time);
    str_add(out, "}\n");
}
