#include "agent/plan/time_attention.h"

#include <math.h>

/* [SASS] what nvcc 13.0.88 makes of them for 9.0a: tests/sass/budget.txt; masks: what the loop's
 * one branch to beyond them jumps over. */
const struct time_hopper_loop time_hopper_loops[] = {
    {"attention_hopper<64>", 64, false, 128, 2, 607, 168, 12, 66},
    {"attention_hopper<128>", 128, false, 128, 2, 656, 168, 16, 66},
    {"attention_hopper_queries<64>", 64, true, 64, 3, 361, 88, 12, 32},
    {"attention_hopper_queries<128>", 128, true, 64, 3, 417, 88, 20, 32},
    {"attention_hopper_keys<64>", 64, true, 64, 4, 411, 87, 16, 32},
    {"attention_hopper_keys<128>", 128, true, 64, 4, 471, 87, 24, 32},
    {NULL, 0, false, 0, 0, 0, 0, 0, 0},
};

const char time_hopper_note[] = "no GPU has run it";
const char time_backward_note[] = "backward as ours: its speed with equal bits is not known";

/* Of an SM for one warpgroup's tile. Products and the rest do not hide each other: that sum, and
 * not the longer of the two, is what FlashAttention-3 takes at both widths. Other warpgroups fill
 * what waits leave. */
static double cycles_of(const struct time_hopper_loop *l)
{
    enum { ROWS = 64 };
    /* [published] the data sheet's 989 TFLOP/s of 132 SMs at 1.83 GHz */
    const double flops_per_cycle = 4096;
    /* [published] CUDA's guide: 16 results per cycle and SM, so a quarter of it takes 8 for a
     * warp's 32 */
    const double MUFU_cycles = 8;
    /* [fitted] to FA3's forward, causal, 8192 tokens: 460 and 602 TFLOP/s. An instruction takes a
     * cycle at least. */
    const double cycles = 1.29;
    double products = 2.0 * l->products * ROWS * l->columns * l->hd / flops_per_cycle;
    double others = cycles * (l->instructions - l->masks - l->HGMMA);
    return products + fmax(others, MUFU_cycles * l->MUFU);
}

double time_hopper_rate(const struct time_hopper_loop *loops, const struct time_device *d, int hd,
                        bool backward)
{
    enum { ROWS = 64 };
    double per_score = 0, products = backward ? 5 : 2;
    for (const struct time_hopper_loop *l = loops; l->kernel; l++)
        if (l->hd == hd && l->backward == backward)
            per_score += cycles_of(l) / (ROWS * l->columns);
    return 2 * products * hd / per_score * d->SMs * d->hopper_clock;
}

struct time_attention time_attention_hopper(const struct time_device *d)
{
    if (d->hopper_clock <= 0)
        return (struct time_attention){0};
    const struct time_hopper_loop *ours = time_hopper_loops;
    return (struct time_attention){
        .forward = {time_hopper_rate(ours, d, 64, false), time_hopper_rate(ours, d, 128, false)},
        .backward = {time_hopper_rate(ours, d, 64, true), time_hopper_rate(ours, d, 128, true)},
        /* [fitted] to FA3's curves: 0.58 of its forward at 1024 tokens, 0.77 of its backward (not
           causal, for which ramp() takes a half) */
        .half = {950, 730},
    };
}

struct time_attention time_attention_of(const struct time_device *d, enum time_attention_doer doer)
{
    const struct time_attention rates = doer == TIME_BY_CUDNN    ? d->cudnn
                                        : doer == TIME_BY_HOPPER ? time_attention_hopper(d)
                                                                 : d->ours;
    return rates.forward[0] > 0 ? rates : d->ours;
}
