#include "agent/telemetry/gpu_sample.h"

#include <assert.h>
#include <stddef.h>

const char *gpu_clock_reason_name(int bit)
{
    static const char *const names[GPU_CLOCK_REASONS_COUNT] = {
        "gpu_idle",   "clocks_setting", "power_cap",      "hw_slowdown",   "sync_boost",
        "sw_thermal", "hw_thermal",     "hw_power_brake", "display_clocks"};
    assert(bit >= 0 && bit < GPU_CLOCK_REASONS_COUNT);
    return names[bit];
}

const char *gpu_xid_text(uint64_t xid)
{
    static const struct {
        uint64_t xid;
        const char *text;
    } rows[] = {
        {13, "graphics engine exception"},
        {31, "GPU memory page fault"},
        {43, "GPU stopped processing"},
        {45, "preemptive cleanup"},
        {48, "double bit ECC error"},
        {62, "internal micro-controller halt"},
        {63, "row remapping recorded"},
        {64, "row remapping failed"},
        {74, "NVLink error"},
        {79, "GPU has fallen off the bus"},
        {92, "high single-bit ECC error rate"},
        {94, "contained ECC error"},
        {95, "uncontained ECC error"},
        {119, "GSP RPC timeout"},
        {120, "GSP error"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].xid == xid)
            return rows[i].text;
    return "";
}
