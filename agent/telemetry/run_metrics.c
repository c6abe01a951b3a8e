#include "agent/telemetry/run_metrics.h"

#include "agent/telemetry/fields.h"
#include "base/contract.h"
#include "base/exposition.h"
#include "base/mem.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* "{job_name=...}", of a rank's own value with its place; `more` are labels as text, or "". */
static void add_labels(const struct run_facts *f, enum field_scope scope, const char *more,
                       struct str *out)
{
    auto_str struct str labels;
    char number[16];
    str_init(&labels, 4096);
    str_add(&labels, "{");
    str_add(&labels, more);
    if (f->job[0])
        exposition_label("job_name", f->job, &labels);
    if (f->run[0])
        exposition_label("run_id", f->run, &labels);
    if (scope == OF_RANK) {
        snprintf(number, sizeof number, "%d", f->rank);
        exposition_label("rank", number, &labels);
        snprintf(number, sizeof number, "%d", f->local_rank);
        exposition_label("local_rank", number, &labels);
        exposition_label("gpu", number, &labels);
        exposition_label("node", f->node, &labels);
    }
    if (labels.length > 1)
        str_printf(out, "%s}", str_text(&labels));
}

static void add_sample(const struct run_facts *f, enum field_scope scope, const char *name,
                       const char *more, double value, struct str *out)
{
    str_add(out, name);
    add_labels(f, scope, more, out);
    exposition_value(value, out);
}

static void add_fields(const struct run_state *s, struct str *out)
{
    for (int i = 0; i < field_count(); i++) {
        const struct field_metric *m = field_metric(i);
        /* What is the job's is on rank 0's page only: Prometheus would else see as many series as
         * ranks. */
        if (!m || (m->scope == OF_JOB && s->facts.rank != 0))
            continue;
        double value = field_value(i, s);
        if (isnan(value) && !(m->keeps_nan && s->steps > 0))
            continue;
        exposition_head(m->name, m->help, m->type, out);
        add_sample(&s->facts, m->scope, m->name, "", value, out);
    }
}

static void add_info(const struct run_state *s, struct str *out)
{
    const struct run_facts *f = &s->facts;
    char world_size[16];
    auto_str struct str labels;
    str_init(&labels, 4096);
    str_add(&labels, "fsdp_build_info{");
    exposition_label("version", SHOAL_VERSION, &labels);
    exposition_head("fsdp_build_info", "The agent's version.", "gauge", out);
    str_printf(out, "%s} 1\n", str_text(&labels));
    str_clear(&labels);
    snprintf(world_size, sizeof world_size, "%d", f->world_size);
    exposition_label("model", f->model, &labels);
    exposition_label("strategy", f->strategy, &labels);
    exposition_label("precision", f->precision, &labels);
    exposition_label("world_size", world_size, &labels);
    exposition_label("preset", f->preset, &labels);
    /* Prometheus' info metrics: texts are labels of a sample that is always 1, to be joined in
     * queries. */
    exposition_head("fsdp_run_info", "Model, strategy and precision of the run.", "gauge", out);
    str_printf(out, "fsdp_run_info{%s} 1\n", str_text(&labels));
}

static void add_conventions(const struct run_state *s, const char *name, const char *help,
                            const double values[FLOPS_CONVENTIONS], struct str *out)
{
    if (isnan(values[FLOPS_FULL]))
        return;
    exposition_head(name, help, "gauge", out);
    for (int c = 0; c < FLOPS_CONVENTIONS; c++) {
        char label[64];
        snprintf(label, sizeof label, "convention=\"%s\"",
                 run_convention_name((enum run_convention)c));
        add_sample(&s->facts, OF_JOB, name, label, values[c], out);
    }
}

static void add_histogram(const struct run_state *s, enum field_scope scope, const char *name,
                          const char *help, const struct histogram *h, struct str *out)
{
    exposition_head(name, help, "histogram", out);
    char sample[96], bound[64];
    int64_t below = 0;
    snprintf(sample, sizeof sample, "%s_bucket", name);
    for (int i = 0; i < HISTOGRAM_BOUNDS; i++) {
        /* Buckets of Prometheus are cumulative: each counts all that are at most its bound. */
        below += h->counts[i];
        snprintf(bound, sizeof bound, "le=\"%g\"", histogram_bounds_s[i]);
        add_sample(&s->facts, scope, sample, bound, (double)below, out);
    }
    add_sample(&s->facts, scope, sample, "le=\"+Inf\"", (double)h->count, out);
    snprintf(sample, sizeof sample, "%s_sum", name);
    add_sample(&s->facts, scope, sample, "", h->sum_s, out);
    snprintf(sample, sizeof sample, "%s_count", name);
    add_sample(&s->facts, scope, sample, "", (double)h->count, out);
}

/* A metric of this rank with a sample per kind of something. */
struct family {
    const char *name, *help, *type, *label;
    int count;
    const char *(*name_of)(int kind);
    double (*value_at)(const void *values, int kind);
    const void *values;
};

static void add_family(const struct run_state *s, const struct family *f, struct str *out)
{
    exposition_head(f->name, f->help, f->type, out);
    for (int i = 0; i < f->count; i++) {
        char label[64];
        snprintf(label, sizeof label, "%s=\"%s\"", f->label, f->name_of(i));
        add_sample(&s->facts, OF_RANK, f->name, label, f->value_at(f->values, i), out);
    }
}

static double real_at(const void *of, int i)
{
    return ((const double *)of)[i];
}

static double whole_at(const void *of, int i)
{
    return (double)((const int64_t *)of)[i];
}

static const char *phase_name(int i)
{
    return run_phase_name((enum run_phase)i);
}

static const char *collective_name(int i)
{
    return comm_collective_name((enum comm_collective)i);
}

static const char *kind_name(int i)
{
    return memory_kind_name((enum memory_kind)i);
}

static const char *time_name(int i)
{
    return time_kind_name((enum time_kind)i);
}

static double time_at(const void *account, int i)
{
    return time_account_s(account, (enum time_kind)i);
}

static void add_families(const struct run_state *s, struct str *out)
{
    const struct run_numbers *n = &s->last;
    const struct family families[] = {
        {"fsdp_phase_seconds_total",
         "Time spent in each phase of a step. communication and optimizer are what training waited "
         "for: neither has what went on beside forward and backward.",
         "counter", "phase", RUN_PHASES, phase_name, real_at, s->phase_s},
        {"fsdp_collective_operations_total", "Collectives that this rank has called, by operation.",
         "counter", "op", COMM_COLLECTIVE_KINDS, collective_name, whole_at, n->traffic.calls},
        {"fsdp_memory_allocated_bytes", "Device memory in use.", "gauge", "kind", MEMORY_KINDS,
         kind_name, whole_at, n->memory.current_bytes},
        {"fsdp_memory_peak_bytes", "Peak device memory of each kind; the peaks need not coincide.",
         "gauge", "kind", MEMORY_KINDS, kind_name, whole_at, n->memory.peak_bytes},
    };
    const struct family times = {
        "fsdp_time_seconds_total",
        "Time since the start of this process, by what it was spent on; the kinds add up to it.",
        "counter",
        "kind",
        TIME_KINDS,
        time_name,
        time_at,
        s->account};
    for (size_t i = 0; i < array_length(families); i++)
        add_family(s, &families[i], out);
    if (s->account)
        add_family(s, &times, out);
}

static void add_time(const struct run_state *s, const char *name, const char *help, int64_t us,
                     struct str *out)
{
    exposition_head(name, help, "gauge", out);
    add_sample(&s->facts, OF_RANK, name, "", (double)us / 1e6, out);
}

static void add_process(const struct run_state *s, int64_t resident_bytes, struct str *out)
{
    add_time(s, "fsdp_last_progress_timestamp_seconds",
             "Time when the last step, evaluation or save ended.", s->progress_wall_us, out);
    add_time(s, "process_start_time_seconds",
             "Start time of the process since unix epoch in seconds.", s->process_wall_us, out);
    exposition_head("fsdp_restarts_total", "Restarts of this rank.", "counter", out);
    add_sample(&s->facts, OF_RANK, "fsdp_restarts_total", "", s->facts.restarts, out);
    if (resident_bytes < 0)
        return;
    exposition_head("process_resident_memory_bytes", "Resident memory size in bytes.", "gauge",
                    out);
    add_sample(&s->facts, OF_RANK, "process_resident_memory_bytes", "", (double)resident_bytes,
               out);
}

void run_metrics_print(const struct run_state *s, int64_t resident_bytes, struct str *out)
{
    add_info(s, out);
    add_fields(s, out);
    if (s->facts.rank == 0) {
        add_conventions(s, "fsdp_model_flops_per_second",
                        "Model FLOPs per second of all ranks; full: attention scores counted "
                        "without the causal mask (PaLM), causal: half of them.",
                        s->flops_per_s, out);
        add_conventions(s, "fsdp_model_flops_utilization_ratio",
                        "Model FLOPs over the dense peak of the devices, 0 to 1, by both counts.",
                        s->utilization, out);
        add_histogram(s, OF_JOB, "fsdp_checkpoint_save_duration_seconds",
                      "Time from the request to a durable checkpoint.", &s->save_durations, out);
        if (s->saved_wall_us > 0) {
            exposition_head("fsdp_checkpoint_last_success_timestamp_seconds",
                            "Time when the last checkpoint became durable.", "gauge", out);
            add_sample(&s->facts, OF_JOB, "fsdp_checkpoint_last_success_timestamp_seconds", "",
                       (double)s->saved_wall_us / 1e6, out);
        }
    }
    add_histogram(s, OF_RANK, "fsdp_step_duration_seconds", "Wall-clock time of a step.",
                  &s->step_durations, out);
    add_families(s, out);
    add_process(s, resident_bytes, out);
}

static void add_job_gauge(const struct run_facts *f, const char *name, const char *help, int value,
                          struct str *out)
{
    exposition_head(name, help, "gauge", out);
    add_sample(f, OF_JOB, name, "", value, out);
}

void run_metrics_print_health(const struct run_facts *f, int hung, int straggling, struct str *out)
{
    add_job_gauge(f, "fsdp_hung_ranks", "Ranks that make no progress while others wait for them.",
                  hung, out);
    add_job_gauge(f, "fsdp_straggling_ranks",
                  "Ranks whose forward and backward take more than 1.3 times the median rank's.",
                  straggling, out);
}
