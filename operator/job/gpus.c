#include "operator/job/gpus.h"

#include <string.h>

enum { COUNT_MAX = 1000000 }; /* of replicas and of GPUs in a pod: more is no number to add up */

static bool is_gpu(const char *resource)
{
    const char *slash = strchr(resource, '/');
    return slash && (strcmp(slash, "/gpu") == 0 || strncmp(slash, "/mig-", strlen("/mig-")) == 0);
}

static int64_t of_pod(const struct pod_template *template_)
{
    int64_t milli = 0;
    for (size_t c = 0; c < template_->container_count; c++) {
        const struct quantities *asked = &template_->containers[c].requests;
        for (size_t q = 0; q < asked->count; q++)
            if (is_gpu(asked->items[q].resource) &&
                asked->items[q].milli <= (int64_t)COUNT_MAX * 1000)
                milli += asked->items[q].milli;
    }
    return milli / 1000;
}

int64_t gpus_asked(const struct job *job)
{
    int64_t sum = 0;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &job->replicas[type];
        int64_t count = replica->replicas.set ? replica->replicas.value : 1;
        if (replica->present && count >= 0 && count <= COUNT_MAX)
            sum += count * of_pod(&replica->template_);
    }
    return sum;
}
