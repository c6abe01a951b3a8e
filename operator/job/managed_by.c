#include "operator/job/managed_by.h"

#include "base/contract.h"

#include <string.h>

bool managed_by_us(const struct job *job)
{
    const char *manager = job->run_policy.managed_by;
    return !manager || strcmp(manager, API_MANAGED_BY) == 0;
}
