/* What GPUs report of themselves at one moment, in base units. Pure: who asks them is nvml.h. */
#ifndef SHOAL_AGENT_TELEMETRY_GPU_SAMPLE_H
#define SHOAL_AGENT_TELEMETRY_GPU_SAMPLE_H

#include <stdint.h>

enum gpu_value {
    GPU_TEMPERATURE,        /* degrees Celsius */
    GPU_MEMORY_TEMPERATURE, /* likewise */
    GPU_POWER,              /* W */
    GPU_ENERGY,             /* J since the driver was loaded */
    GPU_SM_CLOCK,           /* Hz */
    GPU_MEMORY_CLOCK,       /* Hz */
    GPU_BUSY,               /* part of the time in which a kernel ran, 0..1, like those below */
    GPU_COPY_BUSY,          /* memory was read or written */
    GPU_ENCODER_BUSY,
    GPU_DECODER_BUSY,
    GPU_MEMORY_TOTAL, /* bytes, like those below */
    GPU_MEMORY_FREE,
    GPU_MEMORY_USED,
    GPU_MEMORY_RESERVED,  /* by driver and firmware */
    GPU_PROCESS_MEMORY,   /* of this node's ranks */
    GPU_PCIE_REPLAYS,     /* count */
    GPU_NVLINK_BYTES,     /* sent and received, over all links */
    GPU_ROWS_CORRECTABLE, /* remapped after correctable errors */
    GPU_ROWS_UNCORRECTABLE,
    GPU_ROW_FAILURE,   /* 1: remapping failed: the GPU is to be replaced */
    GPU_ROW_PENDING,   /* 1: a row is to be remapped when the GPU is reset */
    GPU_ECC_CORRECTED, /* errors since the driver was loaded */
    GPU_ECC_UNCORRECTED,
    GPU_CLOCK_REASONS, /* why clocks are below their highest: a mask, by bit */
    GPU_LAST_XID,      /* of the last critical error; 0: none since we listen */
    /* Of the profiling counters (Hopper and newer): parts of the time since the last
     * sample, 0..1 */
    GPU_GRAPHICS_ACTIVE,
    GPU_SM_ACTIVE,
    GPU_SM_OCCUPANCY,
    GPU_TENSOR_ACTIVE,
    GPU_DRAM_ACTIVE,
    GPU_FP64_ACTIVE,
    GPU_FP32_ACTIVE,
    GPU_FP16_ACTIVE,
    GPU_PCIE_SENT,     /* bytes/s */
    GPU_PCIE_RECEIVED, /* bytes/s */
    GPU_VALUES,
};

/* Bits of the mask that something depends on (nvml.h, nvmlClocksThrottleReasonHwSlowdown and so
 * on). The first is set with either of the others, too. */
enum gpu_clock_reason {
    GPU_CLOCK_HW_SLOWDOWN = 3,
    GPU_CLOCK_HW_THERMAL = 6,
    GPU_CLOCK_HW_POWER_BRAKE = 7
};
enum { GPU_CLOCK_REASONS_COUNT = 9 };
/* The reason of bit i: "gpu_idle", as DCGM names it. */
const char *gpu_clock_reason_name(int bit);

enum { GPU_TEXT_BYTES = 96, GPU_MAX = 16, GPU_MAX_XIDS = 8 };

/* A kind of critical error, and how often it came since we listen. */
struct gpu_xid {
    uint64_t xid;
    int64_t count;
};

struct gpu_sample {
    int gpu;                   /* as CUDA counts those that this process may see */
    int minor;                 /* N of /dev/nvidiaN; -1: not known */
    char uuid[GPU_TEXT_BYTES]; /* "GPU-..." */
    char pci_bus_id[GPU_TEXT_BYTES];
    char model[GPU_TEXT_BYTES];
    double value[GPU_VALUES];         /* NaN: not reported */
    struct gpu_xid xid[GPU_MAX_XIDS]; /* the first with a count of 0 ends them */
};
#endif
