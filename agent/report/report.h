/* What a run reports, brought to those who want to know: people (the tutorial's lines, warnings),
 * whoever started this process (progress), and telemetry (all other lines, files, HTTP). The
 * trainer's listener; it knows the time, and decides nothing about the training. */
#ifndef SHOAL_AGENT_REPORT_REPORT_H
#define SHOAL_AGENT_REPORT_REPORT_H

#include "agent/config/config.h"
#include "agent/nn/module.h"
#include "agent/telemetry/telemetry.h"
#include "agent/telemetry/trainjob_status.h"
#include "agent/trainer/trainer.h"

struct report;

struct report_setting {
    const struct config *config;
    int rank, local_rank, world_size;        /* ranks above 0 print nothing */
    bool shares_machine;                     /* all ranks do: they meet on its loopback */
    bool in_pod;                             /* of a cluster, which asks the pod's address */
    int restarts;                            /* how often this rank was started before */
    const char *job, *node;                  /* "": not known */
    const char *run_id;                      /* likewise; ENV_RUN_ID, of an operator's pod */
    const char *pod_namespace, *pod;         /* likewise */
    const char *progress_socket;             /* where progress goes; NULL: nowhere */
    struct trainjob_status_setting trainjob; /* where a TrainJob's progress goes */
    const char *termination_log;             /* termination_log.h; NULL: there is none */
    struct page_keeper page;                 /* page_past.h */
    int64_t start_us;                        /* when the process started, by steady_us */
    int64_t meeting_us;                      /* when it was about to meet the others, likewise */
    int64_t (*wall_us)(void);                /* since 1970 */
    int64_t (*steady_us)(void);              /* monotonic */
};

struct report *report_open(const struct report_setting *setting);
/* The run ends by a failure, with that code and for this reason. */
void report_failed(struct report *report, int exit_code, const char *why);
void report_close(struct report *report); /* NULL-safe */

/* For trainer_open; stop_requested is the caller's to fill in. */
struct trainer_listener report_listener(struct report *report);

/* What rank 0 knows of all ranks, for telemetry. From any thread, until report_close(). */
void report_health(struct report *report, const struct telemetry_health *health);

/* Whether hardware of this node is bad, so that the run is to leave it (telemetry.h). */
bool report_bad_hardware(struct report *report, bool last, char ret_sign[GPU_SIGN_BYTES]);

/* Around trainer_run: the second prints the elapsed time, the units, the throughput and the peak
 * memory. */
void report_begin(struct report *report);
void report_end(struct report *report, const struct module *module, const struct memory_use *use);
#endif
