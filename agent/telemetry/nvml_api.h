/* The part of NVIDIA's management library that we call, as its documentation declares it (NVML API
 * reference, nvml.h of driver 450 and newer): names, numbers and layouts are the library's. Here so
 * that a build needs no header of NVIDIA's. */
#ifndef SHOAL_AGENT_TELEMETRY_NVML_API_H
#define SHOAL_AGENT_TELEMETRY_NVML_API_H

enum { NVML_SUCCESS = 0, NVML_NOT_SUPPORTED = 3, NVML_INSUFFICIENT_SIZE = 7, NVML_TIMEOUT = 10 };

typedef struct nvml_device_ *nvml_device;       /* nvmlDevice_t */
typedef struct nvml_event_set_ *nvml_event_set; /* nvmlEventSet_t */
typedef struct nvml_gpm_sample_ *nvml_gpm_sample;

struct nvml_pci_info { /* nvmlPciInfo_t, version 3 */
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

struct nvml_utilization {
    unsigned gpu, memory; /* % */
};

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_TEMPERATURE_GPU = 0 };
enum { NVML_MIG_ON = 1 };
enum { NVML_ECC_CORRECTED = 0, NVML_ECC_UNCORRECTED = 1, NVML_ECC_VOLATILE = 0 };

struct nvml_memory { /* nvmlMemory_t */
    unsigned long long total, free, used;
};
struct nvml_memory_v2 {
    unsigned version; /* NVML_MEMORY_V2 */
    unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 ((unsigned)(sizeof(struct nvml_memory_v2) | 2u << 24))

struct nvml_process { /* nvmlProcessInfo_t, versions 2 and 3 */
    unsigned pid;
    unsigned long long used_memory; /* bytes; all ones: not known */
    unsigned gpu_instance, compute_instance;
};

struct nvml_field { /* nvmlFieldValue_t */
    unsigned field, scope;
    long long timestamp, latency_us;
    int type;   /* 0 double, 1 unsigned int, 2 unsigned long, 3 unsigned long long, 4
                   long long, 5 int */
    int result; /* as of a call */
    union {
        double real;
        unsigned word;
        unsigned long long wide;
        long long signed_wide;
        int signed_word;
    } value;
};
enum {
    NVML_FIELD_MEMORY_TEMPERATURE = 82,
    NVML_FIELD_NVLINK_SENT = 138,
    NVML_FIELD_NVLINK_RECEIVED = 139
};
#define NVML_ALL_LINKS 0xffffffffu /* scope of the NVLink fields: their sum, in KiB */

struct nvml_event { /* nvmlEventData_t */
    nvml_device device;
    unsigned long long type, data; /* data: of a critical error its XID */
    unsigned gpu_instance, compute_instance;
};
#define NVML_EVENT_XID 8ull /* nvmlEventTypeXidCriticalError */

struct nvml_gpm_support {
    unsigned version; /* 1 */
    unsigned is_supported;
};
struct nvml_gpm_metric {
    unsigned metric;
    int result;
    double value;
    struct {
        char *short_name, *long_name, *unit;
    } info;
};
enum { NVML_GPM_METRICS = 512 }; /* room: more than any version's; only those asked for are read */
struct nvml_gpm_get {
    unsigned version; /* 1 */
    unsigned count;
    nvml_gpm_sample from, to;
    struct nvml_gpm_metric metrics[NVML_GPM_METRICS];
};

/* Functions by the library's names, without "nvml". */
struct nvml_functions {
    int (*Init_v2)(void);
    int (*Shutdown)(void);
    const char *(*ErrorString)(int result);
    int (*SystemGetDriverVersion)(char *version, unsigned length);
    int (*SystemGetCudaDriverVersion_v2)(int *version);
    int (*DeviceGetCount_v2)(unsigned *count);
    int (*DeviceGetHandleByIndex_v2)(unsigned index, nvml_device *device);
    int (*DeviceGetMigMode)(nvml_device device, unsigned *mode, unsigned *after_reset);
    int (*DeviceGetHandleByPciBusId_v2)(const char *id, nvml_device *device);
    int (*DeviceGetUUID)(nvml_device device, char *uuid, unsigned length);
    int (*DeviceGetName)(nvml_device device, char *name, unsigned length);
    int (*DeviceGetMinorNumber)(nvml_device device, unsigned *minor);
    int (*DeviceGetPciInfo_v3)(nvml_device device, struct nvml_pci_info *info);
    int (*DeviceGetTemperature)(nvml_device device, int sensor, unsigned *celsius);
    int (*DeviceGetPowerUsage)(nvml_device device, unsigned *milliwatts);
    int (*DeviceGetTotalEnergyConsumption)(nvml_device device, unsigned long long *millijoules);
    int (*DeviceGetClockInfo)(nvml_device device, int clock, unsigned *megahertz);
    int (*DeviceGetUtilizationRates)(nvml_device device, struct nvml_utilization *utilization);
    int (*DeviceGetEncoderUtilization)(nvml_device device, unsigned *percent, unsigned *period_us);
    int (*DeviceGetDecoderUtilization)(nvml_device device, unsigned *percent, unsigned *period_us);
    int (*DeviceGetMemoryInfo)(nvml_device device, struct nvml_memory *memory);
    int (*DeviceGetMemoryInfo_v2)(nvml_device device, struct nvml_memory_v2 *memory);
    int (*DeviceGetComputeRunningProcesses_v3)(nvml_device device, unsigned *count,
                                               struct nvml_process *processes);
    int (*DeviceGetPcieReplayCounter)(nvml_device device, unsigned *count);
    int (*DeviceGetRemappedRows)(nvml_device device, unsigned *correctable, unsigned *uncorrectable,
                                 unsigned *is_pending, unsigned *failed);
    int (*DeviceGetTotalEccErrors)(nvml_device device, int type, int counter,
                                   unsigned long long *count);
    int (*DeviceGetCurrentClocksEventReasons)(nvml_device device, unsigned long long *mask);
    int (*DeviceGetCurrentClocksThrottleReasons)(nvml_device device, unsigned long long *mask);
    int (*DeviceGetFieldValues)(nvml_device device, int count, struct nvml_field *fields);
    int (*EventSetCreate)(nvml_event_set *set);
    int (*EventSetFree)(nvml_event_set set);
    int (*DeviceRegisterEvents)(nvml_device device, unsigned long long types, nvml_event_set set);
    int (*EventSetWait_v2)(nvml_event_set set, struct nvml_event *event, unsigned timeout_ms);
    int (*GpmQueryDeviceSupport)(nvml_device device, struct nvml_gpm_support *support);
    int (*GpmSampleAlloc)(nvml_gpm_sample *sample);
    int (*GpmSampleFree)(nvml_gpm_sample sample);
    int (*GpmSampleGet)(nvml_device device, nvml_gpm_sample sample);
    int (*GpmMetricsGet)(struct nvml_gpm_get *get);
};
#endif
