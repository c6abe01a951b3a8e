#include "tests/operator/reconcile/training_fixture.h"

void training_fixture_tell(struct cluster *cluster, int64_t began_s, int64_t initialization_s,
                           int64_t steps_s, int64_t step)
{
    cluster->told = training_open();
    cluster->told.world_size = 1;
    cluster->told.process_ms = CREATED_MS + 1000 * began_s;
    cluster->told.progress_ms = cluster->now_ms;
    cluster->told.spent_ms[TRAINING_SPENT_INITIALIZATION] = 1000 * initialization_s;
    cluster->told.spent_ms[TRAINING_SPENT_STEP] = 1000 * steps_s;
    cluster->told.step = step;
    cluster->told.resumed_step = began_s > 500 ? 50 : 0;
}
