#include "operator/reconcile/policy_waiting.h"

#include "base/mem.h"
#include "operator/reconcile/children.h"

void obstacle_set(struct obstacle *obstacle, const char *reason, const char *message)
{
    if (!obstacle->reason)
        *obstacle = (struct obstacle){.reason = reason, .message = message};
}

/* A pod on its way out is in nobody's way, until it should be gone. */
static void tell_overdue(const struct view *view, struct obstacle *obstacle, struct arena *arena)
{
    for (size_t i = 0; i < view->pods.count; i++) {
        const struct child *child = &view->pods.items[i];
        if (child->overdue && !child->lost)
            obstacle_set(obstacle, "PodTerminating",
                         arena_printf(arena,
                                      "Pod %s is being deleted and does not end; its node is not "
                                      "known to be lost, so it is not deleted by force",
                                      child->name));
    }
}

void policy_waiting(const struct job *job, const struct view *view, struct obstacle *obstacle,
                    struct arena *arena)
{
    tell_overdue(view, obstacle, arena);
    for (size_t i = 0; i < view->pods.count; i++) {
        const struct child *child = &view->pods.items[i];
        const struct pod *pod = child->pod;
        if (child->deleting || !pod->waiting_reason || !children_wanted(job, child) ||
            pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED)
            continue;
        obstacle_set(obstacle, pod->waiting_reason,
                     arena_printf(arena, "Pod %s waits: %s%s%s", pod->name, pod->waiting_reason,
                                  pod->waiting_message ? ": " : "",
                                  pod->waiting_message ? pod->waiting_message : ""));
        return;
    }
}
