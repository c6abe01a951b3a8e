#include "operator/job/policy_manager.h"

#include "base/contract.h"

#include <string.h>

bool policy_managed_here(const struct job *job)
{
    const char *manager = job->run_policy.managed_by;
    return !manager || strcmp(manager, API_MANAGED_BY) == 0;
}
