#include "agent/telemetry/gpu_hardware.h"

#include "agent/telemetry/xid.h"

#include <inttypes.h>
#include <stdio.h>

bool gpu_hardware_xid(int gpu, uint64_t number, char ret_sign[GPU_SIGN_BYTES])
{
    const struct xid *xid = xid_find(number);
    if (!xid || !xid_is_hardware(xid->action))
        return false;
    snprintf(ret_sign, GPU_SIGN_BYTES, "GPU %d reports Xid %" PRIu64 ": %s: %s", gpu, number,
             xid->meaning, xid_action_text(xid->action));
    return true;
}

/* What is not reported, NaN, is more than nothing. */
static bool has_grown(const struct gpu_sample *first, const struct gpu_sample *now,
                      enum gpu_value value)
{
    return now->value[value] > first->value[value];
}

bool gpu_hardware_memory(const struct gpu_sample *first, const struct gpu_sample *now,
                         char ret_sign[GPU_SIGN_BYTES])
{
    static const struct {
        enum gpu_value value;
        const char *text;
    } signs[] = {
        {GPU_ROW_FAILURE, "cannot replace a faulty row of its memory any more"},
        {GPU_ROW_PENDING, "has a faulty row of its memory, which is replaced when it is reset"},
        {GPU_ECC_UNCORRECTED, "has a memory error that ECC could not correct"},
    };
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (!has_grown(first, now, signs[i].value))
            continue;
        snprintf(ret_sign, GPU_SIGN_BYTES, "GPU %d %s", now->gpu, signs[i].text);
        return true;
    }
    return false;
}
