/* A libnvidia-ml.so.1 for machines without a driver: GPUs with known values. What nvmlInit_v2 finds
 * in FAKE_NVML says what they are: "no-driver"; "ampere" (older calls only, no profiling counters,
 * no memory sensor); "h200", "t4" (of that name); "xid" (the second GPU falls off the bus),
 * "xid=N,N..." (it reports these); "mig" (the second is in slices); "broken" (memory that cannot be
 * mended); "wears" (it begins to fail after the first look); "hot" (the second slows down for
 * HOT_LOOKS looks at its clocks); "process=N" (which has the second GPU); else two GPUs that tell
 * all. */
#include "agent/telemetry/nvml_api.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNINITIALIZED = 1, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9 };
enum { MAX_XIDS = 16, HOT_LOOKS = 4 };
enum { GPUS = 2, FIRST_BUS = 0xa0 }; /* where the emulated GPUs are, too */

static struct nvml_device_ {
    int index;
} gpus[GPUS] = {{0}, {1}};
static struct nvml_event_set_ {
    bool watches[GPUS];
    int told;
} events;
static struct nvml_gpm_sample_ {
    int gpu, taken;
} samples[2 * GPUS];
static int samples_used, samples_taken;
static bool is_ampere, is_h200, is_t4, is_mig, is_broken, wears, is_hot;
static int ecc_looks, clock_looks;
static unsigned long long xids[MAX_XIDS];
static int xid_count;
static unsigned second_process;

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static void read_xids(const char *kind)
{
    xid_count = 0;
    if (strncmp(kind, "xid", 3) != 0)
        return;
    const char *list = kind[3] ? kind + 3 : "=31,79,79";
    for (char *end; *list && xid_count < MAX_XIDS; list = end)
        xids[xid_count++] = strtoull(list + 1, &end, 10);
}

int nvmlInit_v2(void)
{
    const char *kind = getenv("FAKE_NVML");
    if (kind && strcmp(kind, "no-driver") == 0)
        return DRIVER_NOT_LOADED;
    is_ampere = kind && strcmp(kind, "ampere") == 0;
    is_h200 = kind && strcmp(kind, "h200") == 0;
    is_t4 = kind && strcmp(kind, "t4") == 0;
    is_mig = kind && strcmp(kind, "mig") == 0;
    is_broken = kind && strcmp(kind, "broken") == 0;
    wears = kind && strcmp(kind, "wears") == 0;
    is_hot = kind && strcmp(kind, "hot") == 0;
    ecc_looks = clock_looks = 0;
    read_xids(kind ? kind : "");
    if (!kind || sscanf(kind, "process=%u", &second_process) != 1)
        second_process = 2;
    memset(&events, 0, sizeof events);
    samples_used = samples_taken = 0;
    return NVML_SUCCESS;
}

int nvmlShutdown(void)
{
    return samples_used == 0 ? NVML_SUCCESS : UNINITIALIZED;
}

const char *nvmlErrorString(int result)
{
    return result == DRIVER_NOT_LOADED ? "Driver Not Loaded"
           : result == NOT_FOUND       ? "Not Found"
                                       : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    snprintf(version, length, "550.54.15");
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 12040;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = GPUS;
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
    *device = &gpus[index];
    return index < GPUS ? NVML_SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetMigMode(nvml_device device, unsigned *mode, unsigned *after_reset)
{
    *mode = *after_reset = is_mig && device->index == 1;
    return is_ampere ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvml_device *device)
{
    unsigned domain, bus, rest;
    if (sscanf(id, "%x:%x:%x.0", &domain, &bus, &rest) != 3 || domain || rest || bus < FIRST_BUS ||
        bus >= FIRST_BUS + GPUS)
        return NOT_FOUND;
    *device = &gpus[bus - FIRST_BUS];
    return NVML_SUCCESS;
}

int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned length)
{
    snprintf(uuid, length, "GPU-%c%07d-aaaa", "ab"[device->index], device -> index);
    return NVML_SUCCESS;
}

int nvmlDeviceGetName(nvml_device device, char *name, unsigned length)
{
    (void)device;
    snprintf(name, length, "%s",
             is_h200 ? "NVIDIA H200"
             : is_t4 ? "Tesla T4"
                     : "NVIDIA \"H100\" 80GB");
    return NVML_SUCCESS;
}

int nvmlDeviceGetMinorNumber(nvml_device device, unsigned *minor)
{
    *minor = (unsigned)device->index + 4;
    return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci_info *info)
{
    memset(info, 0, sizeof *info);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", FIRST_BUS + device->index);
    return NVML_SUCCESS;
}

int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *celsius)
{
    *celsius = 60u + (unsigned)device->index;
    return sensor == NVML_TEMPERATURE_GPU ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *milliwatts)
{
    *milliwatts = device->index == 0 ? 512345 : 0;
    return device->index == 0 ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetTotalEnergyConsumption(nvml_device device, unsigned long long *millijoules)
{
    (void)device;
    *millijoules = 9007199254741ull;
    return NVML_SUCCESS;
}

int nvmlDeviceGetClockInfo(nvml_device device, int clock, unsigned *megahertz)
{
    (void)device;
    *megahertz = clock == NVML_CLOCK_SM ? 1980 : 2619;
    return NVML_SUCCESS;
}

int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilization *utilization)
{
    (void)device;
    *utilization = (struct nvml_utilization){97, 41};
    return NVML_SUCCESS;
}

/* An A100 has decoders and no encoder. */
int nvmlDeviceGetEncoderUtilization(nvml_device device, unsigned *percent, unsigned *period_us)
{
    *percent = 3u + (unsigned)device->index;
    *period_us = 167000;
    return is_ampere ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetDecoderUtilization(nvml_device device, unsigned *percent, unsigned *period_us)
{
    *percent = 8u + (unsigned)device->index;
    *period_us = 167000;
    return NVML_SUCCESS;
}

int nvmlDeviceGetPcieReplayCounter(nvml_device device, unsigned *count)
{
    *count = 6u + (unsigned)device->index;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
    (void)device;
    *memory = (struct nvml_memory){80ull << 30, 30ull << 30, 50ull << 30};
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory)
{
    (void)device;
    if (is_ampere || memory->version != (40 | 2 << 24))
        return NVML_NOT_SUPPORTED;
    memory->total = 80ull << 30;
    memory->reserved = 1ull << 30;
    memory->free = 30ull << 30;
    memory->used = 49ull << 30;
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count,
                                            struct nvml_process *processes)
{
    if (*count < 2)
        return NVML_INSUFFICIENT_SIZE;
    *count = 2;
    processes[0] = (struct nvml_process){1, 7ull << 30, ~0u, ~0u};
    processes[1] = (struct nvml_process){device->index == 0 ? (unsigned)getpid() : second_process,
                                         42ull << 30, ~0u, ~0u};
    return NVML_SUCCESS;
}

int nvmlDeviceGetRemappedRows(nvml_device device, unsigned *correctable, unsigned *uncorrectable,
                              unsigned *is_pending, unsigned *failed)
{
    (void)device;
    *correctable = 2, *uncorrectable = 1, *is_pending = 0;
    *failed = is_broken;
    return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(nvml_device device, int type, int counter,
                                unsigned long long *count)
{
    ecc_looks += type != NVML_ECC_CORRECTED && device->index == 1;
    *count = type == NVML_ECC_CORRECTED ? 5 : is_broken ? 3 : wears && ecc_looks > 1 ? 1 : 0;
    return counter == NVML_ECC_VOLATILE ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

/* The older name only: the newer is looked for first, and is not there. */
int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device, unsigned long long *mask)
{
    *mask = 0x4 | 0x20;
    if (is_hot && device->index == 1 && ++clock_looks <= HOT_LOOKS)
        *mask = 0x8 | 0x40;
    return NVML_SUCCESS;
}

int nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field *fields)
{
    (void)device;
    for (int i = 0; i < count; i++) {
        struct nvml_field *f = &fields[i];
        f->result = NVML_SUCCESS;
        if (f->field == NVML_FIELD_MEMORY_TEMPERATURE) {
            f->type = 1;
            f->value.word = is_ampere ? 255 : 71;
        } else if (f->scope == NVML_ALL_LINKS) {
            f->type = 3;
            f->value.wide = f->field == NVML_FIELD_NVLINK_SENT ? 1000 : 24;
        } else {
            f->result = NVML_NOT_SUPPORTED;
        }
    }
    return NVML_SUCCESS;
}

int nvmlEventSetCreate(nvml_event_set *set)
{
    *set = &events;
    return NVML_SUCCESS;
}

int nvmlEventSetFree(nvml_event_set set)
{
    (void)set;
    return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(nvml_device device, unsigned long long types, nvml_event_set set)
{
    set->watches[device->index] = types == NVML_EVENT_XID;
    return NVML_SUCCESS;
}

int nvmlEventSetWait_v2(nvml_event_set set, struct nvml_event *event, unsigned timeout_ms)
{
    if (set->watches[1] && set->told < xid_count) {
        *event = (struct nvml_event){&gpus[1], NVML_EVENT_XID, xids[set->told++], 0, 0};
        return NVML_SUCCESS;
    }
    usleep(timeout_ms * 1000);
    return NVML_TIMEOUT;
}

int nvmlGpmQueryDeviceSupport(nvml_device device, struct nvml_gpm_support *support)
{
    (void)device;
    support->is_supported = !is_ampere;
    return support->version == 1 ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

int nvmlGpmSampleAlloc(nvml_gpm_sample *sample)
{
    *sample = &samples[samples_used++];
    return NVML_SUCCESS;
}

int nvmlGpmSampleFree(nvml_gpm_sample sample)
{
    (void)sample;
    samples_used--;
    return NVML_SUCCESS;
}

int nvmlGpmSampleGet(nvml_device device, nvml_gpm_sample sample)
{
    *sample = (struct nvml_gpm_sample_){device->index, ++samples_taken};
    return NVML_SUCCESS;
}

int nvmlGpmMetricsGet(struct nvml_gpm_get *get)
{
    if (get->version != 1 || get->from->gpu != get->to->gpu || get->from->taken >= get->to->taken)
        return NVML_NOT_SUPPORTED;
    for (unsigned i = 0; i < get->count; i++) {
        struct nvml_gpm_metric *m = &get->metrics[i];
        m->result = m->metric == 11 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
        m->value = m->metric;
    }
    return NVML_SUCCESS;
}
