/* What `shoal-agent doctor` looks at before it judges. */
#ifndef SHOAL_AGENT_DOCTOR_DOCTOR_FACTS_H
#define SHOAL_AGENT_DOCTOR_DOCTOR_FACTS_H

#include "agent/comm/nccl_api.h"
#include "agent/telemetry/nvml.h"
#include "base/error.h"
#include "kernels/gpu_survey.h"

#include <stdbool.h>
#include <stdint.h>

struct doctor_facts {
    const char *asked; /* --device */
    bool share_gpus;   /* --share_gpus */

    struct error no_backend; /* why there is no CUDA backend; ERR_NONE: there is one */
    struct gpu_survey survey;
    struct error refused[GPU_SURVEY_GPUS]; /* why training cannot take that GPU; ERR_NONE: it can */
    struct library_facts driver;           /* libcuda.so.1 */
    struct nvml_facts nvml;
    bool hides_gpus; /* CUDA_VISIBLE_DEVICES is set */

    struct library_facts nccl;
    int nccl_version;                /* 22809; 0: not known */
    bool has_launch_order;           /* see nccl_api.h's orders_launches */
    char no_windows[NCCL_WHY_BYTES]; /* as nccl_api_has_windows() says it; "": it has them */

    int64_t shm_bytes;     /* of /dev/shm; -1: there is none */
    int64_t locked_bytes;  /* that may be locked in memory; -1: no limit */
    bool has_infiniband;   /* or EFA */
    int64_t open_files;    /* most that this process may have */
    int cores;             /* that it may use */
    int64_t memory_bytes;  /* that it can have; INT64_MAX: nobody tells */
    const char *memory_by; /* who limits it: "the machine" */

    struct error no_topology; /* the environment names no job that could run; ERR_NONE: it does */
    int world_size;
    int started_here;          /* ranks that a launcher starts beside each other here; a rank: 1 */
    char master[256];          /* rank 0's host */
    char interface[64];        /* that the rendezvous takes; "": the one with the route to rank 0 */
    char address[64];          /* this process's, there; "": not known */
    struct error no_interface; /* ERR_CONFIG: the environment names one that is not there;
                                  ERR_NOT_FOUND: rank 0's host has no address yet */
};
#endif
