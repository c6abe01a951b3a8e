#include "agent/telemetry/fields.h"

#include "base/mem.h"

#include <stddef.h>

/* What has to happen for a field to be written. */
enum { NEVER, STEP = 1 << FIELD_STEP, EVAL = 1 << FIELD_EVAL, SAVE = 1 << FIELD_SAVE };

struct field {
    const char *names[3]; /* by enum field_words */
    int events;
    bool is_whole;
    size_t offset; /* in struct run_state: of an int64_t if it is whole, else of a double */
    struct field_metric metric;
};

/* clang-format off */
#define ROW(is_whole_, when, member, hf, fabric, tag, ...) \
    {.names = {hf, fabric, tag}, .events = when, .is_whole = is_whole_, \
     .offset = offsetof(struct run_state, member), __VA_ARGS__}
#define REAL(...) ROW(false, __VA_ARGS__, )
#define WHOLE(...) ROW(true, __VA_ARGS__, )
/* The same number on /metrics. */
#define METRIC(...) .metric = {__VA_ARGS__}
#define GAUGE(name, help) METRIC(name, help, "gauge", OF_JOB, false)
#define GAUGE_OR_NAN(name, help) METRIC(name, help, "gauge", OF_JOB, true)
#define GAUGE_OF_RANK(name, help) METRIC(name, help, "gauge", OF_RANK, false)
#define COUNTER(name, help) METRIC(name, help, "counter", OF_JOB, false)
#define COUNTER_OF_RANK(name, help) METRIC(name, help, "counter", OF_RANK, false)
#define MEMORY(kind, name) \
    WHOLE(STEP, last.memory.current_bytes[kind], "memory_" name "_bytes", \
          "memory/" name "_bytes", "memory/" name "_bytes"), \
    WHOLE(STEP, last.memory.peak_bytes[kind], "memory_" name "_peak_bytes", \
          "memory/" name "_peak_bytes", "memory/" name "_peak_bytes")

static const struct field fields[] = {
    WHOLE(STEP, last.step, "step", "step", NULL,
          GAUGE("fsdp_train_step", "Optimizer steps done in the whole run.")),
    WHOLE(EVAL, eval.step, "step", "step", NULL),
    WHOLE(SAVE, tried_step, "step", "step", NULL),
    REAL(STEP, last.epoch, "epoch", "epoch", "train/epoch",
         GAUGE("fsdp_train_epoch", "Epochs completed over the training data.")),
    REAL(STEP, last.loss, "loss", "metric/train_loss", "train/loss",
         GAUGE_OR_NAN("fsdp_train_loss", "Mean loss of the last step over all ranks.")),
    REAL(STEP, perplexity, "perplexity", "metric/train_ppl", "train/perplexity"),
    REAL(STEP, last.lr, "learning_rate", "learning_rate", "train/learning_rate",
         GAUGE("fsdp_train_learning_rate", "Learning rate of the last step.")),
    REAL(STEP, last.grad_norm, "grad_norm", "grad_norm", "train/grad_norm",
         GAUGE("fsdp_train_gradient_norm", "Norm of the whole gradient before clipping.")),
    REAL(EVAL, eval.loss, "eval_loss", "metric/val_loss", "eval/loss",
         GAUGE("fsdp_eval_loss", "Mean loss of the last evaluation.")),
    REAL(EVAL, eval.perplexity, "eval_perplexity", "metric/val_ppl", "eval/perplexity",
         GAUGE("fsdp_eval_perplexity", "Perplexity of the last evaluation.")),
    REAL(EVAL, eval.accuracy, "eval_accuracy", "metric/val_accuracy", "eval/accuracy",
         GAUGE("fsdp_eval_accuracy_ratio", "Accuracy of the last evaluation, 0 to 1.")),
    REAL(EVAL, eval.seconds, "eval_runtime", "eval_runtime", "eval/runtime"),
    WHOLE(STEP, samples, "num_input_samples_seen", "samples", "train/num_input_samples_seen",
          COUNTER("fsdp_train_samples_total",
                  "Samples trained on by all ranks since this process started.")),
    WHOLE(STEP, tokens, "num_input_tokens_seen", "total_tokens", "train/num_input_tokens_seen",
          COUNTER("fsdp_train_tokens_total",
                  "Tokens trained on by all ranks since this process started.")),
    REAL(STEP, steps_per_s, "steps_per_second", "throughput/batches_per_sec",
         "train/steps_per_second"),
    REAL(STEP, samples_per_s, "samples_per_second", "throughput/samples_per_sec",
         "train/samples_per_second",
         GAUGE("fsdp_samples_per_second", "Samples per second of all ranks, over the last steps.")),
    REAL(STEP, tokens_per_s, "tokens_per_second", "throughput/tokens_per_sec",
         "train/tokens_per_second",
         GAUGE("fsdp_tokens_per_second", "Tokens per second of all ranks, over the last steps.")),
    REAL(STEP, flops_per_s[FLOPS_FULL], "flops_per_second", "throughput/flops_per_sec",
         "train/flops_per_second"),
    REAL(STEP, steps_per_s, NULL, "throughput/device/batches_per_sec", NULL), /* all take part */
    REAL(STEP, device_samples_per_s, NULL, "throughput/device/samples_per_sec", NULL),
    REAL(STEP, device_tokens_per_s, "tokens_per_second_per_device",
         "throughput/device/tokens_per_sec", "train/tokens_per_second_per_device"),
    REAL(STEP, device_flops_per_s, NULL, "throughput/device/flops_per_sec", NULL),
    REAL(STEP, utilization[FLOPS_FULL], "mfu", "throughput/device/mfu", "train/mfu"),
    REAL(STEP, utilization[FLOPS_CAUSAL], "mfu_causal", "throughput/device/mfu_causal",
         "train/mfu_causal"),
    REAL(STEP, last.step_s, "step_seconds", "time/step", "time/step"),
    REAL(STEP, last.phase_s[PHASE_DATA], "data_seconds", "time/data", "time/data"),
    REAL(STEP, last.phase_s[PHASE_FORWARD], "forward_seconds", "time/forward", "time/forward"),
    REAL(STEP, last.phase_s[PHASE_BACKWARD], "backward_seconds", "time/backward", "time/backward"),
    REAL(STEP, last.phase_s[PHASE_COMMUNICATION], "communication_seconds", "time/communication",
         "time/communication"),
    REAL(STEP, last.phase_s[PHASE_OPTIMIZER], "optimizer_seconds", "time/optimizer",
         "time/optimizer"),
    REAL(STEP, train_s, "train_seconds", "time/train", NULL),
    REAL(EVAL, phase_s[PHASE_EVAL], NULL, "time/val", NULL),
    REAL(STEP, elapsed_s, "elapsed_seconds", "time/total", "time/total",
         GAUGE("fsdp_elapsed_seconds",
               "Time from the start of this process to its last step, evaluation or save.")),
    WHOLE(STEP, last.memory.current_total_bytes, "memory_bytes", "memory/current_bytes",
          "memory/current_bytes"),
    WHOLE(STEP, last.memory.peak_total_bytes, "memory_peak_bytes", "memory/peak_bytes",
          "memory/peak_bytes",
          GAUGE_OF_RANK("fsdp_memory_all_kinds_peak_bytes",
                        "Peak device memory in use.")),
    MEMORY(MEMORY_SHARD, "shard"),
    MEMORY(MEMORY_UNIT, "unit"),
    MEMORY(MEMORY_GRADIENT, "gradient"),
    MEMORY(MEMORY_OPTIMIZER, "optimizer"),
    MEMORY(MEMORY_ACTIVATION, "activation"),
    MEMORY(MEMORY_INPUT, "input"),
    WHOLE(STEP, last.nonfinite_steps, "nonfinite_steps", "nonfinite_steps", "train/nonfinite_steps",
          COUNTER("fsdp_train_nonfinite_steps_total",
                  "Steps whose loss or gradient was not finite.")),
    WHOLE(STEP, last.skipped_steps, "skipped_steps", "skipped_steps", "train/skipped_steps",
          COUNTER("fsdp_train_skipped_steps_total", "Steps skipped because loss or gradient was not finite.")),
    WHOLE(STEP, last.traffic.bytes_sent, "collective_bytes", "collective_bytes",
          "communication/bytes",
          COUNTER_OF_RANK("fsdp_collective_bytes_total",
                          "Bytes that this rank sent in collectives.")),
    REAL(STEP, checkpoint_age_s, "checkpoint_age_seconds", "checkpoint_age_seconds",
         "checkpoint/age_seconds",
         GAUGE("fsdp_checkpoint_age_seconds",
               "Age of the last durable checkpoint when this page was rendered.")),
    REAL(SAVE, phase_s[PHASE_CHECKPOINT], "checkpoint_held_up_seconds", "time/checkpoint",
         "checkpoint/held_up_seconds"),
    WHOLE(SAVE, failed_saves, "failed_saves", "failed_saves", "checkpoint/failed_saves",
          COUNTER("fsdp_checkpoint_failures_total", "Checkpoint saves that failed.")),
    WHOLE(NEVER, steps, NULL, NULL, NULL,
          COUNTER("fsdp_train_steps_total", "Optimizer steps of this process.")),
    WHOLE(NEVER, saved_step, NULL, NULL, NULL,
          GAUGE("fsdp_checkpoint_last_step",
                "Step of this process's last durable checkpoint; 0 if none.")),
    WHOLE(NEVER, saved_bytes, NULL, NULL, NULL,
          GAUGE("fsdp_checkpoint_bytes", "Size of the last durable checkpoint; 0 if not known.")),
};
/* clang-format on */
_Static_assert(MEMORY_KINDS == 6, "a kind of memory has no row");
_Static_assert(sizeof fields / sizeof fields[0] <= FIELDS_MAX, "FIELDS_MAX is too small");

int field_count(void)
{
    return (int)array_length(fields);
}

const char *field_name(int field, enum field_words words)
{
    return fields[field].names[words];
}

bool field_is_of(int field, enum field_event event)
{
    return fields[field].events & (1 << event);
}

const struct field_metric *field_metric(int field)
{
    return fields[field].metric.name ? &fields[field].metric : NULL;
}

bool field_is_whole(int field)
{
    return fields[field].is_whole;
}

double field_value(int field, const struct run_state *state)
{
    const void *at = (const char *)state + fields[field].offset;
    return fields[field].is_whole ? (double)*(const int64_t *)at : *(const double *)at;
}
