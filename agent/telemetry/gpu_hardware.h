/* Signs that nothing more is to be computed on a GPU until somebody has acted: an Xid of those
 * buckets (xid.h), memory that fails. Only what is new since the run began counts: with what was
 * there before, the run was started all the same. NVLinks that fail are told by Xids. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_GPU_HARDWARE_H
#define SHOAL_AGENT_TELEMETRY_GPU_HARDWARE_H

#include "agent/telemetry/gpu_sample.h"

#include <stdbool.h>

enum { GPU_SIGN_BYTES = 200 };

/* Whether the Xid is such a sign, and in what words: "GPU 3 reports Xid 79: ...". */
bool gpu_hardware_xid(int gpu, uint64_t xid, char ret_sign[GPU_SIGN_BYTES]);
/* The same of what a GPU reports now, beside what it reported at first. */
bool gpu_hardware_memory(const struct gpu_sample *first, const struct gpu_sample *now,
                         char ret_sign[GPU_SIGN_BYTES]);
#endif
