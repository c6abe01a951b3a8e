/* Whether the API server keeps status.training. Without its history a job runs on, and so it does
 * without this. */
#include "operator/apply/executor_internal.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/manifest/manifest.h"

#include <stdio.h>

/* How long after it was lost last a job tells all the same, to see whether the
 * CustomResourceDefinition is another. */
enum { TRAINING_AGAIN_MS = 5 * 60 * 1000 };

void executor_check_training_kept(struct run *run, const struct job_status *written,
                                  const struct json *answer)
{
    struct executor *executor = run->executor;
    const struct json *status = json_get(answer, "status");
    if (!(written->training.known || written->goodput.known) || !json_is_object(status))
        return;
    auto_arena struct arena *arena = arena_open();
    const char *lost = manifest_lost_training(written, json_get(status, "training"), arena);
    if (!lost) {
        /* What has not what was lost proves nothing. */
        if (executor_training_is_pruned(executor) &&
            manifest_has_training(written, executor->training_lost))
            executor->training_lost[0] = '\0';
        return;
    }
    if (!executor_training_is_pruned(executor))
        log_warning("The CustomResourceDefinition pytorchjobs.kubeflow.org is not this version's "
                    "and does not keep all of status.training (%s is missing): no job tells how "
                    "its training goes. Apply deploy/crd (Helm: kubectl apply -f "
                    "charts/shoal/crds)",
                    lost);
    run->written_without = *written;
    run->written_without.goodput = run->status->goodput;
    run->written = &run->written_without;
    snprintf(executor->training_lost, sizeof executor->training_lost, "%s", lost);
    executor->training_again_ms = executor->options.clocks->steady_ms() + TRAINING_AGAIN_MS;
}

bool executor_may_tell_training(const struct executor *executor)
{
    return !executor_training_is_pruned(executor) ||
           executor->options.clocks->steady_ms() >= executor->training_again_ms;
}

bool executor_training_is_pruned(const struct executor *executor)
{
    return executor->training_lost[0] != '\0';
}
