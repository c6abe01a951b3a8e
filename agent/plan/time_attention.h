/* How fast our attention for compute capability 9.0 (kernels/cuda/attention_hopper*.cu) would be.
 * No GPU has run it, so that is worked out from what the compiler makes of its loops, by a method
 * that gives FlashAttention-3's published speed of its own loops (tests/agent/test_time_attention.c
 * has both). Pure. */
#ifndef SHOAL_AGENT_PLAN_TIME_ATTENTION_H
#define SHOAL_AGENT_PLAN_TIME_ATTENTION_H

#include "agent/plan/time_model.h"

/* The hot loop of a kernel: a warpgroup's 64 rows of scores, of so many columns. */
struct time_hopper_loop {
    const char *kernel; /* as tests/sass/budget.txt has it */
    int hd;             /* 64 or 128 */
    bool backward;
    int columns;
    int products;     /* of rows by columns by hd multiplications */
    int instructions; /* of a warp, with all that follow */
    int masks;        /* which only tiles at an edge run */
    int HGMMA, MUFU;
};

/* Ours; the last one's kernel is NULL. Of backward there are two for a width, one after the
 * other. */
extern const struct time_hopper_loop time_hopper_loops[];

/* FLOP/s as in struct time_attention, of those of the loops that are of that width and in that
 * direction. */
double time_hopper_rate(const struct time_hopper_loop *loops, const struct time_device *device,
                        int hd, bool backward);

/* What is to be said of it wherever its time is told. */
extern const char time_hopper_note[];
/* Of cuDNN's where backward may not add up in any order. */
extern const char time_backward_note[];

/* All of ours; 0 on a device that does not run them. */
struct time_attention time_attention_hopper(const struct time_device *device);

enum time_attention_doer { TIME_BY_OURS, TIME_BY_CUDNN, TIME_BY_HOPPER, TIME_ATTENTION_DOERS };

/* The speed of who does it; ours for 8.0 where that of another is not known. */
struct time_attention time_attention_of(const struct time_device *device,
                                        enum time_attention_doer doer);
#endif
