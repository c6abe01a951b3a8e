/* The lines of a run on rank 0's standard output, in the words of the PyTorch FSDP tutorial and of
 * accelerate's examples; and the speed that they show. Pure. */
#ifndef SHOAL_AGENT_REPORT_CONSOLE_H
#define SHOAL_AGENT_REPORT_CONSOLE_H

#include "agent/telemetry/time_account.h"
#include "agent/trainer/trainer.h"
#include "base/str.h"

#include <stdint.h>

/* Steps at the start of a run that do not count for the throughput: caches and connections are
 * cold. */
enum { CONSOLE_WARM_UP_STEPS = 10 };

/* The speed of a run: samples over the time since the first step that counts. */
struct throughput {
    int64_t first_us, first_samples; /* at the first step that counts; 0: none yet */
    int64_t last_us, last_samples;
    int64_t steps;   /* that count */
    int64_t seen;    /* all steps of this process */
    int64_t samples; /* all samples of this process, all ranks */
};
/* A step of `samples` samples (all ranks) ended at now_us. */
void throughput_add(struct throughput *t, int64_t samples, int64_t now_us);
/* Time that is no training (evaluation, checkpoints) does not count. */
void throughput_skip(struct throughput *t, int64_t us);
double throughput_per_s(const struct throughput *t); /* 0: not known yet */

/* The lines, each with its newline. */
void console_epoch_line(const struct trainer_score *score, struct str *out);
void console_test_line(const struct trainer_score *score, struct str *out);
void console_step_line(const struct run_numbers *step, double samples_per_s, struct str *out);
/* Of a run too short to have any step that counts it says that the throughput is not known. */
void console_throughput_line(const struct throughput *t, int world_size, struct str *out);
/* accelerate's four lines, in whole MiB (its example fsdp_with_peak_mem_tracking.py). */
void console_epoch_memory_lines(const struct trainer_score *score, struct str *out);
/* "Peak memory per rank: 14.2 MiB (shard 1.1, ...)". */
void console_memory_line(const struct memory_use *use, struct str *out);
/* "Time: 12.3 s: step 83.1 %, initialization 10.2 %, ...", the greatest share first. */
void console_time_line(const struct time_account *account, struct str *out);
#endif
