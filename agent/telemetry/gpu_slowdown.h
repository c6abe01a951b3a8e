/* When it is told that a GPU slows itself down to stay whole: its hardware has halved its clocks,
 * or more, as it is too hot or gets too little power (nvml.h: HW Slowdown, HW Thermal Slowdown, HW
 * Power Brake Slowdown). Pure.
 *
 * It is a warning, and no reason to leave a node: what is computed is right, only late. NVIDIA's
 * own tools judge likewise: to DCGM thermal throttling is an error to monitor (DCGM_ERROR_MONITOR
 * of DCGM_FR_CLOCK_THROTTLE_THERMAL), where a lost NVLink asks to isolate the GPU; NVSentinel calls
 * it not fatal. Software's slowdown (SW Thermal Slowdown, SW Power Cap) keeps a GPU at its target,
 * and is told by the metric alone. */
#ifndef SHOAL_AGENT_TELEMETRY_GPU_SLOWDOWN_H
#define SHOAL_AGENT_TELEMETRY_GPU_SLOWDOWN_H

#include "agent/telemetry/gpu_sample.h"

#include <stdbool.h>

enum {
    GPU_SLOWDOWN_MS = 60 * 1000, /* HW Slowdown may also show for a moment as clocks change */
    GPU_SLOWDOWN_BYTES = 256
};

/* Of one GPU; zero at first. */
struct gpu_slowdown {
    int64_t for_ms; /* how much longer it was slow than not, so far: 0 .. least_ms */
    bool was_slow;  /* when it was looked at last, and answered */
    bool is_told;
};

enum gpu_slowdown_news { GPU_SLOWDOWN_NONE, GPU_SLOWDOWN_BEGINS, GPU_SLOWDOWN_IS_OVER };

/* What it reports now, passed_ms after it was looked at last. least_ms 0: nothing is told. BEGINS:
 * it was slow for least_ms longer than it was not; IS_OVER: that has been made up for. Each once,
 * in turns. passed_ms counts only if both looks found the same: a look sees a moment, and what is
 * between two different ones is not known. If NVML does not answer now (NaN), none of it counts. */
enum gpu_slowdown_news gpu_slowdown_look(struct gpu_slowdown *s, const struct gpu_sample *now,
                                         int64_t passed_ms, int64_t least_ms);

/* In what words: "GPU 3 is slowed down by its hardware to half its clocks or less, as it is too hot
 * (...), at 91 degrees Celsius: look at its cooling and power"; or that it is so no more. */
void gpu_slowdown_describe(const struct gpu_sample *now, char ret_text[GPU_SLOWDOWN_BYTES]);
#endif
