/* The learning rate of each step. Pure: a function of the position in the run, so that a resumed
 * run needs no state of it. */
#ifndef SHOAL_AGENT_SCHEDULE_H
#define SHOAL_AGENT_SCHEDULE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum schedule_type {
    SCHEDULE_CONSTANT,
    SCHEDULE_STEP_LR, /* torch.optim.lr_scheduler.StepLR, stepped once an epoch */
};

struct schedule {
    enum schedule_type type;
    double lr;         /* of the first epoch */
    double gamma;      /* STEP_LR: the rate is multiplied by it ... */
    int64_t step_size; /* ... every so many epochs, >= 1 */
};

/* Where the run is: epochs and optimizer steps before this one. */
struct schedule_position {
    int64_t epoch, step;
};

/* STEP_LR: lr * gamma^floor(epoch / step_size). */
double schedule_lr(const struct schedule *schedule, struct schedule_position position);

#ifdef __cplusplus
}
#endif
#endif
