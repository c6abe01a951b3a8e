#include "agent/telemetry/nvml_internal.h"
#include "base/library.h"
#include "base/log.h"
#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEEDED(name)                                                                               \
    {                                                                                              \
        "nvml" #name, offsetof(struct nvml_functions, name), false                                 \
    }
#define OPTIONAL(name)                                                                             \
    {                                                                                              \
        "nvml" #name, offsetof(struct nvml_functions, name), true                                  \
    }
static const struct library_symbol symbols[] = {
    NEEDED(Init_v2),
    NEEDED(Shutdown),
    NEEDED(ErrorString),
    NEEDED(DeviceGetHandleByPciBusId_v2),
    OPTIONAL(DeviceGetUUID),
    OPTIONAL(SystemGetDriverVersion),
    OPTIONAL(SystemGetCudaDriverVersion_v2),
    OPTIONAL(DeviceGetCount_v2),
    OPTIONAL(DeviceGetHandleByIndex_v2),
    OPTIONAL(DeviceGetMigMode),
    OPTIONAL(DeviceGetName),
    OPTIONAL(DeviceGetMinorNumber),
    OPTIONAL(DeviceGetPciInfo_v3),
    OPTIONAL(DeviceGetTemperature),
    OPTIONAL(DeviceGetPowerUsage),
    OPTIONAL(DeviceGetTotalEnergyConsumption),
    OPTIONAL(DeviceGetClockInfo),
    OPTIONAL(DeviceGetUtilizationRates),
    OPTIONAL(DeviceGetEncoderUtilization),
    OPTIONAL(DeviceGetDecoderUtilization),
    OPTIONAL(DeviceGetMemoryInfo),
    OPTIONAL(DeviceGetMemoryInfo_v2),
    OPTIONAL(DeviceGetComputeRunningProcesses_v3),
    OPTIONAL(DeviceGetPcieReplayCounter),
    OPTIONAL(DeviceGetRemappedRows),
    OPTIONAL(DeviceGetTotalEccErrors),
    OPTIONAL(DeviceGetCurrentClocksEventReasons),
    OPTIONAL(DeviceGetCurrentClocksThrottleReasons),
    OPTIONAL(DeviceGetFieldValues),
    OPTIONAL(EventSetCreate),
    OPTIONAL(EventSetFree),
    OPTIONAL(DeviceRegisterEvents),
    OPTIONAL(EventSetWait_v2),
    OPTIONAL(GpmQueryDeviceSupport),
    OPTIONAL(GpmSampleAlloc),
    OPTIONAL(GpmSampleFree),
    OPTIONAL(GpmSampleGet),
    OPTIONAL(GpmMetricsGet),
    {0},
};

static int find_gpus(struct nvml *n, const char *const *pci, int count, struct error *err)
{
    int results[GPU_MAX];
    for (int i = 0; i < count; i++) {
        struct gpu *gpu = &n->gpus[n->count];
        results[i] = n->fn.DeviceGetHandleByPciBusId_v2(pci[i], &gpu->device);
        if (results[i] != NVML_SUCCESS)
            continue;
        gpu->number = i;
        n->count++;
    }
    for (int i = 0; i < count; i++) {
        if (results[i] == NVML_SUCCESS)
            continue;
        error_set(err, ERR_NOT_FOUND, "NVML finds no GPU at %s: %s", pci[i],
                  n->fn.ErrorString(results[i]));
        if (n->count > 0)
            log_warning("GPU %d has no metrics: %s", i, err->msg);
    }
    return n->count > 0 ? 0 : -1;
}

/* ---- life cycle ---- */

static void open_counters(struct nvml *n, struct gpu *gpu)
{
    struct nvml_gpm_support support = {.version = 1};
    if (!works(n->fn.GpmQueryDeviceSupport, gpu->device, &support) || !support.is_supported ||
        !n->fn.GpmSampleGet || !n->fn.GpmMetricsGet || !n->fn.GpmSampleFree)
        return;
    if (!works(n->fn.GpmSampleAlloc, &gpu->samples[0]))
        gpu->samples[0] = NULL;
    else if (!works(n->fn.GpmSampleAlloc, &gpu->samples[1]))
        gpu->samples[1] = NULL;
}

static void open_events(struct nvml *n)
{
    if (!n->fn.EventSetFree || !n->fn.DeviceRegisterEvents || !n->fn.EventSetWait_v2 ||
        !works(n->fn.EventSetCreate, &n->events)) {
        n->events = NULL;
        return;
    }
    for (int i = 0; i < n->count; i++) {
        bool registers = n->fn.DeviceRegisterEvents(n->gpus[i].device, NVML_EVENT_XID, n->events) ==
                         NVML_SUCCESS;
        /* 0 means that no error came. A GPU that does not report it has NaN, which is left out. */
        n->gpus[i].last_xid = registers ? 0 : (double)NAN;
    }
}

int nvml_start(struct nvml_functions *fn, void **ret_library, struct error *err)
{
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    *ret_library = NULL;
    if (library_open(names, ret_library, err) < 0 ||
        library_symbols(*ret_library, symbols, fn, err) < 0)
        return -1;
    int result = fn->Init_v2();
    return result == NVML_SUCCESS
               ? 0
               : error_set(err, ERR_IO, "NVML does not start: %s", fn->ErrorString(result));
}

int nvml_open(const char *const *pci, int count, struct nvml **ret_nvml, struct error *err)
{
    assert(count >= 1 && count <= GPU_MAX);
    void *library;
    struct nvml *n = xcalloc(1, sizeof *n);
    if (nvml_start(&n->fn, &library, err) < 0) {
        free(n);
        return -1;
    }
    if (!works(n->fn.SystemGetDriverVersion, n->driver, sizeof n->driver))
        n->driver[0] = '\0';
    if (find_gpus(n, pci, count, err) < 0) {
        nvml_close(n);
        return -1;
    }
    open_events(n);
    for (int i = 0; i < n->count; i++)
        open_counters(n, &n->gpus[i]);
    *ret_nvml = n;
    return 0;
}

void nvml_close(struct nvml *n)
{
    if (!n)
        return;
    for (int i = 0; i < n->count; i++)
        for (int k = 0; k < 2; k++)
            if (n->gpus[i].samples[k])
                n->fn.GpmSampleFree(n->gpus[i].samples[k]);
    if (n->events)
        n->fn.EventSetFree(n->events);
    n->fn.Shutdown();
    free(n);
}

const char *nvml_driver(const struct nvml *n)
{
    return n->driver;
}

int nvml_count(const struct nvml *n)
{
    return n->count;
}

bool nvml_has_events(const struct nvml *n)
{
    return n->events != NULL;
}

/* ---- critical errors ---- */

static void count_xid(struct gpu *gpu, uint64_t xid)
{
    int k = 0;
    while (k < GPU_MAX_XIDS && gpu->xid[k].count > 0 && gpu->xid[k].xid != xid)
        k++;
    if (k < GPU_MAX_XIDS)
        gpu->xid[k] = (struct gpu_xid){xid, gpu->xid[k].count + 1};
    gpu->last_xid = (double)xid;
}

bool nvml_wait(struct nvml *n, int timeout_ms, int *ret_gpu, uint64_t *ret_xid)
{
    struct nvml_event event = {0};
    if (!n->events)
        return false;
    int result = n->fn.EventSetWait_v2(n->events, &event, (unsigned)timeout_ms);
    if (result != NVML_SUCCESS && result != NVML_TIMEOUT) { /* would fail at once each time */
        n->fn.EventSetFree(n->events);
        n->events = NULL;
    }
    if (result != NVML_SUCCESS)
        return false;
    *ret_gpu = -1;
    *ret_xid = event.data;
    for (int i = 0; i < n->count; i++) {
        if (n->gpus[i].device != event.device || !(event.type & NVML_EVENT_XID))
            continue;
        count_xid(&n->gpus[i], event.data);
        *ret_gpu = n->gpus[i].number;
    }
    return true;
}
