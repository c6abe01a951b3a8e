/* The state of a report, and what a run says of where it begins. Private to report*.c. */
#ifndef SHOAL_AGENT_REPORT_REPORT_INTERNAL_H
#define SHOAL_AGENT_REPORT_REPORT_INTERNAL_H

#include "agent/report/console.h"
#include "agent/report/nonfinite_watch.h"
#include "agent/report/report.h"

#include <pthread.h>

enum { LINE_BYTES = 16 * 1024 };

struct report {
    struct report_setting setting;
    bool own_lines; /* the tutorial's; false: telemetry prints its own */
    struct progress *progress;
    struct telemetry *telemetry;  /* NULL before the run has begun */
    pthread_mutex_t health_mutex; /* guards the next */
    struct telemetry *health_to;  /* the telemetry, while it is open */
    bool predicts_tokens, on_gpu;
    int64_t begin_us; /* when the trainer was about to be opened */
    int64_t loop_begin_us, progress_us;
    int64_t step_end_us; /* of the last step, or of the pause behind it */
    int64_t eval_begin_us, save_begin_us;
    struct time_account account;
    enum time_kind before_pause; /* what an evaluation or a save interrupts */
    int64_t done_before;         /* steps that an earlier process had done, too, and are to come */
    double stall_s;              /* by the save that goes on beside the training */
    struct throughput throughput;
    struct nonfinite_watch nonfinite;
};

/* Prints a text of rank 0's. Frees it. */
void report_print(const struct report *r, struct str *text);
/* The same of a line of the tutorial's, if its style is chosen. */
void report_print_line(const struct report *r, struct str *text);

void report_print_data(const struct report *r, const struct trainer_facts *f);
/* For struct trainer_listener. ctx: the report. */
void report_on_resumed(void *ctx, const char *path, int64_t step, int64_t lost);
void report_on_began_anew(void *ctx, const char *dir);
void report_on_weights(void *ctx, const char *path, const char *warnings);
void report_on_skipped(void *ctx, const char *why);
void report_on_differs(void *ctx, const char *what);
void report_on_info(void *ctx, const char *what);
void report_on_notice(void *ctx, const char *what);
#endif
