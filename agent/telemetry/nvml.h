/* Asks NVIDIA's management library for what GPUs report of themselves. The library comes with the
 * driver and is opened at run time (base/library.h); each call that it does not support leaves out
 * one value. Calls may take long when a GPU is ill: not for the training loop's thread. Not
 * thread-safe. */
#ifndef SHOAL_AGENT_TELEMETRY_NVML_H
#define SHOAL_AGENT_TELEMETRY_NVML_H

#include "agent/telemetry/gpu_sample.h"
#include "base/error.h"
#include "base/library.h"

#include <stdbool.h>

struct nvml;

/* A GPU of the machine, whether or not CUDA shows it to this process. */
struct nvml_gpu {
    char model[GPU_TEXT_BYTES];
    char pci[GPU_TEXT_BYTES]; /* as device_pci() has it; "": not known */
    bool is_mig;              /* it is cut into slices */
    double ecc_uncorrected;   /* errors since the driver was loaded; NaN: not known */
    bool row_failure;         /* it cannot replace a row of its memory: it is broken */
};
struct nvml_facts {
    struct library_facts library;
    char driver[GPU_TEXT_BYTES]; /* "550.54.15"; "": not known */
    int cuda;                    /* the newest CUDA that the driver serves; 0: not known */
    int count;                   /* of GPUs, all of them */
    struct nvml_gpu gpus[GPU_MAX];
};
/* What it says of the machine as a whole. library.why: the driver does not answer, or there is no
 * library. */
void nvml_read_facts(struct nvml_facts *ret);

/* pci: where the GPUs are, `count` (1 .. GPU_MAX) of them, as device_pci() has it: CUDA's order, by
 * which ranks are given GPUs, is not NVML's, and neither knows the other's numbers. Of an instance
 * (MIG) it is the whole GPU, whose power, clocks and temperature they are. Errors: those
 * of library_open(); ERR_IO: no driver is behind it; ERR_NOT_FOUND: it knows none of the GPUs; one
 * of several that it does not know is logged and left out. */
int nvml_open(const char *const *pci, int count, struct nvml **ret_nvml, struct error *err);
void nvml_close(struct nvml *nvml); /* NULL-safe */

const char *nvml_driver(const struct nvml *nvml); /* "550.54.15"; "" if it is not reported */
int nvml_count(const struct nvml *nvml);          /* GPUs that it knows, 1 .. `count` */

/* What the ith of them reports now, with CUDA's number of it. The profiling counters are of the
 * time since its last sample, so the first has none. */
void nvml_read(struct nvml *nvml, int i, struct gpu_sample *ret_sample);

/* Whether the library reports critical errors. */
bool nvml_has_events(const struct nvml *nvml);
/* Waits at most that long for one, which the next samples then have; returns whether there was one,
 * and which, of which GPU, as CUDA counts (-1: none of ours). If waiting fails, there are no events
 * any more. */
bool nvml_wait(struct nvml *nvml, int timeout_ms, int *ret_gpu, uint64_t *ret_xid);
#endif
