#include "agent/telemetry/gpu_sample.h"

#include <assert.h>

const char *gpu_clock_reason_name(int bit)
{
    static const char *const names[GPU_CLOCK_REASONS_COUNT] = {
        "gpu_idle",   "clocks_setting", "power_cap",      "hw_slowdown",   "sync_boost",
        "sw_thermal", "hw_thermal",     "hw_power_brake", "display_clocks"};
    assert(bit >= 0 && bit < GPU_CLOCK_REASONS_COUNT);
    return names[bit];
}
