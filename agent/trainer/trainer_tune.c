/* Matrix products whose algorithm is chosen by its time (runtime.tune). */
#include "agent/trainer/trainer_internal.h"

#include <stdio.h>

void trainer_begin_tuning(struct trainer *t)
{
    if (!t->config->runtime.tune || !trainer_is_language(t))
        return;
    if (!trainer_may_differ(t)) {
        t->listener->notice(t->listener->ctx,
                            "runtime.tune=true changes nothing: the model runs on "
                            "the CPU, which has no cuBLASLt");
        return;
    }
    t->listener->notice(t->listener->ctx,
                        "runtime.tune=true: cuBLASLt's algorithms are timed where a product is "
                        "first met: two runs from the same start may differ in their last bits, as "
                        "may one that is resumed, or goes on with other nodes");
    device_tune_products(t->device);
}

static double milliseconds(int64_t ns)
{
    return (double)ns / 1e6;
}

void trainer_log_tuning(struct trainer *t)
{
    struct product_tuning tuning;
    char text[320], untimed[128] = "";
    device_product_tuning(t->device, &tuning);
    if (tuning.products == 0 || tuning.products < 2 * t->logged_products)
        return;
    t->logged_products = tuning.products;
    if (tuning.untimed > 0)
        snprintf(untimed, sizeof untimed,
                 "; %lld that only add to their result have its first, untimed",
                 (long long)tuning.untimed);
    snprintf(
        text, sizeof text,
        "cuBLASLt: %lld products timed by step %lld, %lld algorithms of which %lld failed: %lld "
        "have another than the heuristic's first. One run of each takes %.3f ms, by the first "
        "%.3f ms%s",
        (long long)tuning.products, (long long)t->cursor.position.step,
        (long long)tuning.candidates, (long long)tuning.failed, (long long)tuning.changed,
        milliseconds(tuning.fastest_ns), milliseconds(tuning.first_ns), untimed);
    t->listener->notice(t->listener->ctx, text);
}
