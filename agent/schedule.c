#include "agent/schedule.h"

#include <assert.h>
#include <math.h>

double schedule_lr(const struct schedule *schedule, struct schedule_position position)
{
    switch (schedule->type) {
    case SCHEDULE_CONSTANT:
        return schedule->lr;
    case SCHEDULE_STEP_LR:
        assert(schedule->step_size >= 1);
        return schedule->lr * pow(schedule->gamma, (double)(position.epoch / schedule->step_size));
    }
    assert(!"an unknown schedule");
    return 0;
}
