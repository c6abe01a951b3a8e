/* One GPU's values: each from a call that may not be supported. */
#include "agent/telemetry/nvml_internal.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PROCESSES = 64 };

static void read_names(const struct nvml *n, nvml_device device, struct gpu_sample *s)
{
    unsigned minor;
    struct nvml_pci_info pci;
    s->minor = works(n->fn.DeviceGetMinorNumber, device, &minor) ? (int)minor : -1;
    if (!works(n->fn.DeviceGetUUID, device, s->uuid, sizeof s->uuid))
        s->uuid[0] = '\0';
    if (!works(n->fn.DeviceGetName, device, s->model, sizeof s->model))
        s->model[0] = '\0';
    if (works(n->fn.DeviceGetPciInfo_v3, device, &pci))
        snprintf(s->pci_bus_id, sizeof s->pci_bus_id, "%.32s", pci.bus_id);
}

static void read_board(const struct nvml *n, nvml_device device, double *value)
{
    unsigned number, period;
    unsigned long long wide;
    struct nvml_utilization busy;
    if (works(n->fn.DeviceGetTemperature, device, NVML_TEMPERATURE_GPU, &number))
        value[GPU_TEMPERATURE] = number;
    if (works(n->fn.DeviceGetPowerUsage, device, &number))
        value[GPU_POWER] = number / 1e3;
    if (works(n->fn.DeviceGetTotalEnergyConsumption, device, &wide))
        value[GPU_ENERGY] = (double)wide / 1e3;
    if (works(n->fn.DeviceGetClockInfo, device, NVML_CLOCK_SM, &number))
        value[GPU_SM_CLOCK] = number * 1e6;
    if (works(n->fn.DeviceGetClockInfo, device, NVML_CLOCK_MEM, &number))
        value[GPU_MEMORY_CLOCK] = number * 1e6;
    if (works(n->fn.DeviceGetUtilizationRates, device, &busy)) {
        value[GPU_BUSY] = busy.gpu / 100.0;
        value[GPU_COPY_BUSY] = busy.memory / 100.0;
    }
    if (works(n->fn.DeviceGetEncoderUtilization, device, &number, &period))
        value[GPU_ENCODER_BUSY] = number / 100.0;
    if (works(n->fn.DeviceGetDecoderUtilization, device, &number, &period))
        value[GPU_DECODER_BUSY] = number / 100.0;
    if (works(n->fn.DeviceGetPcieReplayCounter, device, &number))
        value[GPU_PCIE_REPLAYS] = number;
    if (works(n->fn.DeviceGetCurrentClocksEventReasons, device, &wide) ||
        works(n->fn.DeviceGetCurrentClocksThrottleReasons, device, &wide))
        value[GPU_CLOCK_REASONS] = (double)wide;
}

/* The older call counts what is reserved as used. */
static void read_memory(const struct nvml *n, nvml_device device, double *value)
{
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2};
    struct nvml_memory v1;
    if (works(n->fn.DeviceGetMemoryInfo_v2, device, &v2)) {
        value[GPU_MEMORY_RESERVED] = (double)v2.reserved;
        v1 = (struct nvml_memory){v2.total, v2.free, v2.used};
    } else if (!works(n->fn.DeviceGetMemoryInfo, device, &v1)) {
        return;
    }
    value[GPU_MEMORY_TOTAL] = (double)v1.total;
    value[GPU_MEMORY_FREE] = (double)v1.free;
    value[GPU_MEMORY_USED] = (double)v1.used;
}

/* 0: not known. */
static unsigned parent_of(unsigned pid)
{
    char path[32], line[256];
    unsigned parent = 0;
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    auto_fclose FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "PPid: %u", &parent) == 1)
            break;
    return parent;
}

/* Our parent, if it runs the same program: it has launched this rank, and the others beside it. 0:
 * it does not, or we may not look. */
static unsigned find_launcher(void)
{
    struct stat own, its;
    char path[32];
    unsigned parent = (unsigned)getppid();
    snprintf(path, sizeof path, "/proc/%u/exe", parent);
    bool is_same = stat("/proc/self/exe", &own) == 0 && stat(path, &its) == 0 &&
                   own.st_dev == its.st_dev && own.st_ino == its.st_ino;
    return is_same ? parent : 0;
}

/* Of this process and of the ranks that were launched beside it, where the library counts by the
 * process numbers that we know: not in a pod without the host's. */
static void read_process(const struct nvml *n, nvml_device device, double *value)
{
    struct nvml_process processes[MAX_PROCESSES];
    unsigned count = MAX_PROCESSES;
    if (!works(n->fn.DeviceGetComputeRunningProcesses_v3, device, &count, processes))
        return;
    unsigned launcher = find_launcher();
    for (unsigned i = 0; i < count; i++) {
        unsigned pid = processes[i].pid;
        bool is_ours = pid == (unsigned)getpid() || (launcher && parent_of(pid) == launcher);
        /* All ones is NVML_VALUE_NOT_AVAILABLE (nvml.h). */
        if (!is_ours || processes[i].used_memory == ~0ull)
            continue;
        double before = value[GPU_PROCESS_MEMORY];
        value[GPU_PROCESS_MEMORY] = (isnan(before) ? 0 : before) + (double)processes[i].used_memory;
    }
}

static void read_errors(const struct nvml *n, nvml_device device, double *value)
{
    unsigned correctable, uncorrectable, pending, failed;
    unsigned long long wide;
    if (works(n->fn.DeviceGetRemappedRows, device, &correctable, &uncorrectable, &pending,
              &failed)) {
        value[GPU_ROWS_CORRECTABLE] = correctable;
        value[GPU_ROWS_UNCORRECTABLE] = uncorrectable;
        value[GPU_ROW_FAILURE] = failed;
        value[GPU_ROW_PENDING] = pending;
    }
    if (works(n->fn.DeviceGetTotalEccErrors, device, NVML_ECC_CORRECTED, NVML_ECC_VOLATILE, &wide))
        value[GPU_ECC_CORRECTED] = (double)wide;
    if (works(n->fn.DeviceGetTotalEccErrors, device, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE,
              &wide))
        value[GPU_ECC_UNCORRECTED] = (double)wide;
}

static double field_value(const struct nvml_field *f)
{
    if (f->result != NVML_SUCCESS)
        return (double)NAN;
    /* nvmlValueType_t: double, unsigned int, unsigned long, unsigned long long, long long, int. */
    switch (f->type) {
    case 0:
        return f->value.real;
    case 1:
        return f->value.word;
    case 2:
    case 3:
        return (double)f->value.wide;
    case 4:
        return (double)f->value.signed_wide;
    case 5:
        return f->value.signed_word;
    default:
        return (double)NAN;
    }
}

static void read_fields(const struct nvml *n, nvml_device device, double *value)
{
    enum { HIGHEST_TEMPERATURE = 200 }; /* above it: the memory has no sensor */
    struct nvml_field fields[] = {
        {.field = NVML_FIELD_MEMORY_TEMPERATURE},
        {.field = NVML_FIELD_NVLINK_SENT, .scope = NVML_ALL_LINKS},
        {.field = NVML_FIELD_NVLINK_RECEIVED, .scope = NVML_ALL_LINKS},
    };
    if (!works(n->fn.DeviceGetFieldValues, device, (int)array_length(fields), fields))
        return;
    double celsius = field_value(&fields[0]);
    if (celsius <= HIGHEST_TEMPERATURE)
        value[GPU_MEMORY_TEMPERATURE] = celsius;
    value[GPU_NVLINK_BYTES] = (field_value(&fields[1]) + field_value(&fields[2])) * 1024;
}

/* The library's metrics, in percent or MiB/s. */
static const struct {
    unsigned metric;
    enum gpu_value value;
    double units;
} counters[] = {
    {1, GPU_GRAPHICS_ACTIVE, 0.01},   {2, GPU_SM_ACTIVE, 0.01},    {3, GPU_SM_OCCUPANCY, 0.01},
    {5, GPU_TENSOR_ACTIVE, 0.01},     {10, GPU_DRAM_ACTIVE, 0.01}, {11, GPU_FP64_ACTIVE, 0.01},
    {12, GPU_FP32_ACTIVE, 0.01},      {13, GPU_FP16_ACTIVE, 0.01}, {20, GPU_PCIE_SENT, 1048576},
    {21, GPU_PCIE_RECEIVED, 1048576},
};

static void read_counters(const struct nvml *n, struct gpu *gpu, double *value)
{
    if (!gpu->samples[1] || n->fn.GpmSampleGet(gpu->device, gpu->samples[1]) != NVML_SUCCESS)
        return;
    if (gpu->has_older) {
        struct nvml_gpm_get *get = xcalloc(1, sizeof *get);
        *get = (struct nvml_gpm_get){
            .version = 1, .count = array_length(counters), gpu->samples[0], gpu->samples[1]};
        for (size_t i = 0; i < array_length(counters); i++)
            get->metrics[i].metric = counters[i].metric;
        if (n->fn.GpmMetricsGet(get) == NVML_SUCCESS)
            for (size_t i = 0; i < array_length(counters); i++)
                if (get->metrics[i].result == NVML_SUCCESS)
                    value[counters[i].value] = get->metrics[i].value * counters[i].units;
        free(get);
    }
    /* A metric is computed from two samples: the newer one is the older one of the next pair. */
    nvml_gpm_sample older = gpu->samples[0];
    gpu->samples[0] = gpu->samples[1];
    gpu->samples[1] = older;
    gpu->has_older = true;
}

void nvml_read(struct nvml *n, int i, struct gpu_sample *ret_sample)
{
    struct gpu *gpu = &n->gpus[i];
    struct gpu_sample *s = ret_sample;
    *s = (struct gpu_sample){.gpu = gpu->number};
    for (int v = 0; v < GPU_VALUES; v++)
        s->value[v] = (double)NAN;
    read_names(n, gpu->device, s);
    read_board(n, gpu->device, s->value);
    read_memory(n, gpu->device, s->value);
    read_process(n, gpu->device, s->value);
    read_errors(n, gpu->device, s->value);
    read_fields(n, gpu->device, s->value);
    read_counters(n, gpu, s->value);
    s->value[GPU_LAST_XID] = n->events ? gpu->last_xid : (double)NAN;
    memcpy(s->xid, gpu->xid, sizeof s->xid);
}
