#include "agent/launch/job_name.h"

#include <stdio.h>
#include <string.h>

struct job_name job_name_of(const char *job, const char *rendezvous_id, const char *pod_namespace)
{
    struct job_name result = {.name = rendezvous_id};
    const char *slash = job ? strchr(job, '/') : NULL;
    if (slash && slash > job && slash[1]) {
        result.name = slash + 1;
        snprintf(result.namespace_, sizeof result.namespace_, "%.*s", (int)(slash - job), job);
    }
    if (pod_namespace && *pod_namespace)
        snprintf(result.namespace_, sizeof result.namespace_, "%s", pod_namespace);
    return result;
}
