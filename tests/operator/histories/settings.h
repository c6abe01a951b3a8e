/* The jobs whose every history is tried, and what may happen to each. */
#ifndef SHOAL_TESTS_OPERATOR_HISTORIES_SETTINGS_H
#define SHOAL_TESTS_OPERATOR_HISTORIES_SETTINGS_H

#include "tests/operator/histories/world.h"

#define SETTING_RUN_POLICY "cleanPodPolicy: All, backoffLimit: 1"
#define SETTING_GROUP      ", restartScope: Job"

/* IN_ALL: what takes less than an hour together. BY_NAME: only where it is named: what is part of a
 * larger row of the same job, or takes an hour. */
enum extent { ALWAYS, IN_ALL, BY_NAME };

struct setting {
    enum extent extent;
    struct world_setting setting;
};

extern const struct setting settings[];
extern const size_t setting_count;
#endif
