/* What a run tells, brought to those who want to know: the console (lines of the tutorial,
 * progress, warnings) and telemetry (all other lines, files, HTTP). A listener of the trainer's; it
 * knows both and the time, and decides nothing about the training. */
#ifndef SHOAL_AGENT_REPORT_H
#define SHOAL_AGENT_REPORT_H

#include "agent/config/config.h"
#include "agent/trainer/console.h"
#include "agent/trainer/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct report;

struct report_setting {
    const struct config *config;
    struct console *console; /* used until report_close() */
    int rank, local_rank, world_size;
    int restarts;                    /* how often this rank was started before */
    const char *job, *node;          /* "": not known */
    const char *pod_namespace, *pod; /* likewise */
    const char *gpus_visible;        /* CUDA_VISIBLE_DEVICES; NULL: not set */
    int64_t (*wall_us)(void);        /* since 1970 */
    int64_t (*steady_us)(void);      /* monotonic */
};

struct report *report_open(const struct report_setting *setting);
/* The run ends by a failure, with that code. */
void report_failed(struct report *report, int exit_code);
void report_close(struct report *report); /* NULL-safe */

/* For trainer_open; stop_asked is the caller's to fill in. */
struct trainer_listener report_listener(struct report *report);

#ifdef __cplusplus
}
#endif
#endif
