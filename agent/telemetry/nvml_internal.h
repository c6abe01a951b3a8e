/* Private to nvml.c (the library, events) and nvml_read.c (one GPU's values). */
#ifndef SHOAL_AGENT_TELEMETRY_NVML_INTERNAL_H
#define SHOAL_AGENT_TELEMETRY_NVML_INTERNAL_H

#include "agent/telemetry/nvml.h"
#include "agent/telemetry/nvml_api.h"

struct gpu {
    nvml_device device;
    int number;                 /* as CUDA counts */
    nvml_gpm_sample samples[2]; /* NULL: no profiling counters; [0] is the older */
    bool has_older;
    double last_xid;
    struct gpu_xid xid[GPU_MAX_XIDS];
};

struct nvml {
    struct nvml_functions fn;
    char driver[GPU_TEXT_BYTES];
    struct gpu gpus[GPU_MAX];
    int count;
    nvml_event_set events; /* NULL: there are none */
};

/* Opens the library and starts it; the caller shuts it down. *ret_library: NULL if there is none.
 * Errors: library_open()'s; ERR_UNSUPPORTED: it is too old; ERR_IO: no driver
 * is behind it. */
int nvml_start(struct nvml_functions *fn, void **ret_library, struct error *err);

/* Whether a call that may be missing succeeded: works(n->fn.DeviceGetName, device, ...). */
#define works(function, ...) ((function) && (function)(__VA_ARGS__) == NVML_SUCCESS)
#endif
