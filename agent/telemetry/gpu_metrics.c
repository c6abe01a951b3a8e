#include "agent/telemetry/gpu_metrics.h"

#include "agent/telemetry/xid.h"
#include "base/exposition.h"
#include "base/mem.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define MIB 1048576.0

/* A value under our name and under DCGM's; NULL: not there. */
static const struct row {
    enum gpu_value value;
    const char *type;
    const char *native, *native_help;
    const char *dcgm, *dcgm_help;
    double dcgm_units; /* DCGM's unit in ours */
    bool dcgm_is_whole;
} rows[] = {
    {GPU_SM_CLOCK, "gauge", "fsdp_gpu_sm_clock_hertz", "SM clock frequency.",
     "DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", 1e6, true},
    {GPU_MEMORY_CLOCK, "gauge", "fsdp_gpu_memory_clock_hertz", "Memory clock frequency.",
     "DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", 1e6, true},
    {GPU_MEMORY_TEMPERATURE, "gauge", "fsdp_gpu_memory_temperature_celsius", "Memory temperature.",
     "DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C).", 1, true},
    {GPU_TEMPERATURE, "gauge", "fsdp_gpu_temperature_celsius", "GPU temperature.",
     "DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", 1, true},
    {GPU_POWER, "gauge", "fsdp_gpu_power_watts", "Power draw.", "DCGM_FI_DEV_POWER_USAGE",
     "Power draw (in W).", 1, false},
    {GPU_ENERGY, "counter", "fsdp_gpu_energy_joules_total",
     "Energy consumed since the driver was loaded.", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
     "Total energy consumption since boot (in mJ).", 1e-3, true},
    {GPU_PCIE_REPLAYS, "counter", "fsdp_gpu_pcie_replays_total", "PCIe retries.",
     "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "Total number of PCIe retries.", 1, true},
    {GPU_BUSY, "gauge", "fsdp_gpu_utilization_ratio", "Fraction of time in which a kernel ran.",
     "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", 0.01, true},
    {GPU_COPY_BUSY, "gauge", "fsdp_gpu_memory_utilization_ratio",
     "Fraction of time in which memory was read or written.", "DCGM_FI_DEV_MEM_COPY_UTIL",
     "Memory utilization (in %).", 0.01, true},
    {GPU_ENCODER_BUSY, "gauge", NULL, NULL, "DCGM_FI_DEV_ENC_UTIL", "Encoder utilization (in %).",
     0.01, true},
    {GPU_DECODER_BUSY, "gauge", NULL, NULL, "DCGM_FI_DEV_DEC_UTIL", "Decoder utilization (in %).",
     0.01, true},
    {GPU_MEMORY_TOTAL, "gauge", "fsdp_gpu_memory_total_bytes", "Total GPU memory.",
     "DCGM_FI_DEV_FB_TOTAL", "Total framebuffer memory (in MiB).", MIB, true},
    {GPU_MEMORY_FREE, "gauge", "fsdp_gpu_memory_free_bytes", "Free GPU memory.",
     "DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", MIB, true},
    {GPU_MEMORY_USED, "gauge", "fsdp_gpu_memory_used_bytes", "GPU memory used by all processes.",
     "DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", MIB, true},
    {GPU_MEMORY_RESERVED, "gauge", "fsdp_gpu_memory_reserved_bytes",
     "GPU memory reserved by driver and firmware.", "DCGM_FI_DEV_FB_RESERVED",
     "Framebuffer memory reserved (in MiB).", MIB, true},
    {GPU_PROCESS_MEMORY, "gauge", "fsdp_gpu_process_memory_bytes",
     "GPU memory used by this node's ranks.", NULL, NULL, 1, true},
    {GPU_NVLINK_BYTES, "counter", "fsdp_gpu_nvlink_bytes_total",
     "Bytes sent and received over NVLink.", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
     "Total number of NVLink bandwidth counters for all lanes (in KiB).", 1024, true},
    {GPU_ROWS_UNCORRECTABLE, "counter", "fsdp_gpu_rows_remapped_uncorrectable_total",
     "Rows remapped after uncorrectable errors.", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
     "Number of remapped rows for uncorrectable errors.", 1, true},
    {GPU_ROWS_CORRECTABLE, "counter", "fsdp_gpu_rows_remapped_correctable_total",
     "Rows remapped after correctable errors.", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
     "Number of remapped rows for correctable errors.", 1, true},
    {GPU_ROW_FAILURE, "gauge", "fsdp_gpu_row_remap_failure",
     "1: remapping failed, the GPU is to be replaced.", "DCGM_FI_DEV_ROW_REMAP_FAILURE",
     "Whether remapping of rows has failed.", 1, true},
    {GPU_ECC_CORRECTED, "counter", "fsdp_gpu_ecc_corrected_errors_total",
     "Single-bit errors since the driver was loaded.", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
     "Total number of single-bit volatile ECC errors.", 1, true},
    {GPU_ECC_UNCORRECTED, "counter", "fsdp_gpu_ecc_uncorrected_errors_total",
     "Double-bit errors since the driver was loaded.", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
     "Total number of double-bit volatile ECC errors.", 1, true},
    {GPU_CLOCK_REASONS, "gauge", NULL, NULL, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
     "Bitmask of why clocks are below their highest.", 1, true},
    {GPU_CLOCK_REASONS, "gauge", NULL, NULL, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
     "The older name of DCGM_FI_DEV_CLOCKS_EVENT_REASONS.", 1, true},
    {GPU_GRAPHICS_ACTIVE, "gauge", "fsdp_gpu_graphics_active_ratio",
     "Fraction of time in which any engine was active.", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
     "Ratio of time the graphics engine is active.", 1, false},
    {GPU_SM_ACTIVE, "gauge", "fsdp_gpu_sm_active_ratio",
     "Fraction of time in which an SM had a warp, averaged over SMs.", "DCGM_FI_PROF_SM_ACTIVE",
     "Ratio of cycles an SM has at least 1 warp assigned.", 1, false},
    {GPU_SM_OCCUPANCY, "gauge", "fsdp_gpu_sm_occupancy_ratio",
     "Ratio of resident warps to the maximum.", "DCGM_FI_PROF_SM_OCCUPANCY",
     "Ratio of number of warps resident on an SM.", 1, false},
    {GPU_TENSOR_ACTIVE, "gauge", "fsdp_gpu_tensor_active_ratio",
     "Fraction of time in which the tensor cores were active.", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
     "Ratio of cycles the tensor (HMMA) pipe is active.", 1, false},
    {GPU_DRAM_ACTIVE, "gauge", "fsdp_gpu_dram_active_ratio",
     "Fraction of time in which the memory interface was active.", "DCGM_FI_PROF_DRAM_ACTIVE",
     "Ratio of cycles the device memory interface is active.", 1, false},
    {GPU_FP64_ACTIVE, "gauge", NULL, NULL, "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
     "Ratio of cycles the fp64 pipes are active.", 1, false},
    {GPU_FP32_ACTIVE, "gauge", NULL, NULL, "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
     "Ratio of cycles the fp32 pipes are active.", 1, false},
    {GPU_FP16_ACTIVE, "gauge", NULL, NULL, "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
     "Ratio of cycles the fp16 pipes are active.", 1, false},
    {GPU_PCIE_SENT, "gauge", "fsdp_gpu_pcie_sent_bytes_per_second", "Rate of data sent over PCIe.",
     "DCGM_FI_PROF_PCIE_TX_BYTES", "Rate of data transmitted over the PCIe bus (in bytes/s).", 1,
     true},
    {GPU_PCIE_RECEIVED, "gauge", "fsdp_gpu_pcie_received_bytes_per_second",
     "Rate of data received over PCIe.", "DCGM_FI_PROF_PCIE_RX_BYTES",
     "Rate of data received over the PCIe bus (in bytes/s).", 1, true},
};

/* What a page is made from. */
struct page {
    const struct gpu_sample *gpus;
    int count;
    const struct gpu_labels *labels;
    struct str *out;
};

static void add_label(const char *name, const char *value, struct str *out)
{
    if (value[0])
        exposition_label(name, value, out);
}

/* NAME{labels of the GPU}; left open for more. */
static void open_native(const struct page *p, const char *name, const struct gpu_sample *g)
{
    char number[16];
    snprintf(number, sizeof number, "%d", g->gpu);
    str_printf(p->out, "%s{", name);
    exposition_label("gpu", number, p->out);
    add_label("uuid", g->uuid, p->out);
    add_label("model_name", g->model, p->out);
    add_label("job_name", p->labels->job, p->out);
    add_label("node", p->labels->hostname, p->out);
}

/* The same with the labels of DCGM's exporter, in its order. The newest ones write "hostname", all
 * before them "Hostname": dashboards ask for either. */
static void open_dcgm(const struct page *p, const char *name, const struct gpu_sample *g)
{
    char number[16], device[32] = "";
    snprintf(number, sizeof number, "%d", g->gpu);
    if (g->minor >= 0)
        snprintf(device, sizeof device, "nvidia%d", g->minor);
    str_printf(p->out, "%s{", name);
    exposition_label("gpu", number, p->out);
    add_label("UUID", g->uuid, p->out);
    add_label("pci_bus_id", g->pci_bus_id, p->out);
    add_label("device", device, p->out);
    add_label("modelName", g->model, p->out);
    add_label("Hostname", p->labels->hostname, p->out);
    add_label("hostname", p->labels->hostname, p->out);
    add_label("DCGM_FI_DRIVER_VERSION", p->labels->driver, p->out);
    add_label("container", p->labels->container, p->out);
    add_label("namespace", p->labels->pod_namespace, p->out);
    add_label("pod", p->labels->pod, p->out);
}

static bool any_gpu_has(const struct page *p, enum gpu_value value)
{
    for (int i = 0; i < p->count; i++)
        if (!isnan(p->gpus[i].value[value]))
            return true;
    return false;
}

static void add_native(const struct page *p, const struct row *r)
{
    exposition_head(r->native, r->native_help, r->type, p->out);
    for (int i = 0; i < p->count; i++) {
        const struct gpu_sample *g = &p->gpus[i];
        if (isnan(g->value[r->value]))
            continue;
        open_native(p, r->native, g);
        str_add(p->out, "}");
        exposition_value(g->value[r->value], p->out);
    }
}

static void add_dcgm(const struct page *p, const struct row *r)
{
    exposition_head(r->dcgm, r->dcgm_help, r->type, p->out);
    for (int i = 0; i < p->count; i++) {
        const struct gpu_sample *g = &p->gpus[i];
        double value = g->value[r->value] / r->dcgm_units;
        if (isnan(value))
            continue;
        open_dcgm(p, r->dcgm, g);
        str_printf(p->out, r->dcgm_is_whole ? "} %.0f\n" : "} %f\n", value);
    }
}

/* ---- what is more than one number ---- */

static void add_reasons(const struct page *p)
{
    static const char name[] = "fsdp_gpu_throttle_reason";
    if (!any_gpu_has(p, GPU_CLOCK_REASONS))
        return;
    exposition_head(name, "1: why clocks are below their highest.", "gauge", p->out);
    for (int i = 0; i < p->count; i++) {
        const struct gpu_sample *g = &p->gpus[i];
        for (int bit = 0; bit < GPU_CLOCK_REASONS_COUNT; bit++) {
            if (isnan(g->value[GPU_CLOCK_REASONS]))
                continue;
            open_native(p, name, g);
            exposition_label("reason", gpu_clock_reason_name(bit), p->out);
            bool is_set = (uint64_t)g->value[GPU_CLOCK_REASONS] >> bit & 1;
            str_printf(p->out, "} %d\n", is_set);
        }
    }
}

/* The kth number that a GPU has reported; left open for more. */
static void open_xid(const struct page *p, const char *name, const struct gpu_sample *g, int k)
{
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)g->xid[k].xid);
    open_native(p, name, g);
    exposition_label("xid", number, p->out);
}

static void add_native_xids(const struct page *p)
{
    static const char name[] = "fsdp_gpu_xid_errors_total", info[] = "fsdp_gpu_xid_info";
    if (!any_gpu_has(p, GPU_LAST_XID))
        return;
    exposition_head(name, "Critical errors that the driver reported.", "counter", p->out);
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < GPU_MAX_XIDS && p->gpus[i].xid[k].count > 0; k++) {
            open_xid(p, name, &p->gpus[i], k);
            str_printf(p->out, "} %lld\n", (long long)p->gpus[i].xid[k].count);
        }
    exposition_head(info, "What the errors that the driver reported mean, and what to do at once.",
                    "gauge", p->out);
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < GPU_MAX_XIDS && p->gpus[i].xid[k].count > 0; k++) {
            const struct xid *xid = xid_find(p->gpus[i].xid[k].xid);
            open_xid(p, info, &p->gpus[i], k);
            exposition_label("meaning", xid ? xid->meaning : "not in NVIDIA's catalog", p->out);
            exposition_label("action", xid_action_text(xid ? xid->action : XID_FOLLOW), p->out);
            str_add(p->out, "} 1\n");
        }
}

static void add_dcgm_xids(const struct page *p)
{
    static const char name[] = "DCGM_FI_DEV_XID_ERRORS";
    if (!any_gpu_has(p, GPU_LAST_XID))
        return;
    exposition_head(name, "Value of the last XID error encountered.", "gauge", p->out);
    for (int i = 0; i < p->count; i++) {
        const struct gpu_sample *g = &p->gpus[i];
        if (isnan(g->value[GPU_LAST_XID]))
            continue;
        char number[24];
        snprintf(number, sizeof number, "%.0f", g->value[GPU_LAST_XID]);
        open_dcgm(p, name, g);
        exposition_label("err_code", number, p->out);
        const struct xid *xid = xid_find((uint64_t)g->value[GPU_LAST_XID]);
        exposition_label("err_msg", xid ? xid->meaning : "", p->out);
        str_printf(p->out, "} %s\n", number);
    }
}

void gpu_metrics_print(const struct gpu_sample *gpus, int count, enum gpu_names names,
                       const struct gpu_labels *labels, struct str *out)
{
    const struct page page = {gpus, count, labels, out};
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct row *r = &rows[i];
        if (!any_gpu_has(&page, r->value))
            continue;
        if (r->native && names != GPU_NAMES_DCGM)
            add_native(&page, r);
        if (r->dcgm && names != GPU_NAMES_NATIVE)
            add_dcgm(&page, r);
    }
    if (names != GPU_NAMES_DCGM) {
        add_reasons(&page);
        add_native_xids(&page);
    }
    if (names != GPU_NAMES_NATIVE)
        add_dcgm_xids(&page);
}
