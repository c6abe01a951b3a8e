#include "agent/telemetry/gpu_slowdown.h"

#include <math.h>
#include <stdio.h>

/* By NVML's names (nvml.h); the first that is set says the most. */
static const struct {
    enum gpu_clock_reason bit;
    const char *name, *why;
} reasons[] = {
    {GPU_CLOCK_HW_THERMAL, "HwThermalSlowdown", "it is too hot"},
    {GPU_CLOCK_HW_POWER_BRAKE, "HwPowerBrakeSlowdown", "its power supply asks for it"},
    {GPU_CLOCK_HW_SLOWDOWN, "HwSlowdown", "it is too hot or draws too much power"},
};
enum { REASONS = sizeof reasons / sizeof reasons[0] };

/* REASONS: none of them, or nothing is reported. */
static int find_reason(const struct gpu_sample *now)
{
    double mask = now->value[GPU_CLOCK_REASONS];
    int i = isnan(mask) ? REASONS : 0;
    while (i < REASONS && !((uint64_t)mask >> reasons[i].bit & 1))
        i++;
    return i;
}

enum gpu_slowdown_news gpu_slowdown_look(struct gpu_slowdown *s, const struct gpu_sample *now,
                                         int64_t passed_ms, int64_t least_ms)
{
    bool is_slow = find_reason(now) < REASONS, was_slow = s->was_slow;
    if (isnan(now->value[GPU_CLOCK_REASONS]))
        return GPU_SLOWDOWN_NONE;
    s->was_slow = is_slow;
    if (is_slow == was_slow)
        s->for_ms += is_slow ? passed_ms : -passed_ms;
    s->for_ms = s->for_ms < 0 ? 0 : s->for_ms > least_ms ? least_ms : s->for_ms;
    if (!s->is_told && is_slow && s->for_ms == least_ms && least_ms > 0) {
        s->is_told = true;
        return GPU_SLOWDOWN_BEGINS;
    }
    if (s->is_told && s->for_ms == 0) {
        s->is_told = false;
        return GPU_SLOWDOWN_IS_OVER;
    }
    return GPU_SLOWDOWN_NONE;
}

void gpu_slowdown_describe(const struct gpu_sample *now, char ret_text[GPU_SLOWDOWN_BYTES])
{
    int reason = find_reason(now);
    double celsius = now->value[GPU_TEMPERATURE];
    char at[32] = "";
    if (!isnan(celsius))
        snprintf(at, sizeof at, ", at %.0f degrees Celsius", celsius);
    if (reason == REASONS)
        snprintf(ret_text, GPU_SLOWDOWN_BYTES, "GPU %d is slowed down by its hardware no more%s",
                 now->gpu, at);
    else
        snprintf(ret_text, GPU_SLOWDOWN_BYTES,
                 "GPU %d is slowed down by its hardware to half its clocks or less, as %s "
                 "(nvmlClocksThrottleReason%s)%s: look at its cooling and power",
                 now->gpu, reasons[reason].why, reasons[reason].name, at);
}
