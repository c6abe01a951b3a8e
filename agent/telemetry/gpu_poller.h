/* Reads the GPUs beside the training: a thread of its own asks NVML every few seconds and hands on
 * a page of metrics. So a driver that hangs blocks nobody, and the page is fresh while the loop is
 * busy. */
#ifndef SHOAL_AGENT_TELEMETRY_GPU_POLLER_H
#define SHOAL_AGENT_TELEMETRY_GPU_POLLER_H

#include "agent/telemetry/gpu_hardware.h"
#include "agent/telemetry/gpu_metrics.h"
#include "agent/telemetry/gpu_slowdown.h"
#include "base/error.h"

struct gpu_poller_setting {
    const char *const *pci; /* the GPUs, as nvml_open(); used until open returns */
    int gpus;               /* how many */
    enum gpu_names names;
    struct gpu_labels labels; /* driver is filled in */
    int interval_ms;          /* between two pages */
    int64_t slowdown_ms;      /* of the hardware, that lasts so long: it is logged; 0: none is */
    /* Called on the poller's thread with each page, from gpu_poller_open() on. */
    void (*page)(void *ctx, const char *text, size_t bytes);
    void *ctx;
};

struct gpu_poller;

/* Gives the first page, then starts the thread. Texts of `setting` are used until close. Errors:
 * those of nvml_open(). */
int gpu_poller_open(struct gpu_poller **ret_poller, const struct gpu_poller_setting *setting,
                    struct error *err);
/* Whether a GPU has shown since that the hardware is bad (gpu_hardware.h), and the first such sign.
 * From any thread. */
bool gpu_poller_sign(struct gpu_poller *poller, char ret_sign[GPU_SIGN_BYTES]);
/* Waits until what GPUs report now has been looked at, at most so long: who ends because a GPU is
 * ill may do so before it is seen that it reported that. */
void gpu_poller_look(struct gpu_poller *poller, int timeout_ms);
/* NULL-safe; waits for the call to NVML that runs, and gives a last page if GPUs have reported
 * critical errors since. */
void gpu_poller_close(struct gpu_poller *poller);
#endif
