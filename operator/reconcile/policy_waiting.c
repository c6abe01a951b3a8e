#include "operator/reconcile/policy_waiting.h"

#include "base/mem.h"
#include "operator/reconcile/children.h"

void blocker_set(struct blocker *blocker, const char *reason, const char *message)
{
    if (!blocker->reason)
        *blocker = (struct blocker){.reason = reason, .message = message};
}

void blocker_name_taken(struct blocker *blocker, const char *reason, const char *kind,
                        const char *name, const char *owner_uid, struct arena *arena)
{
    const char *problem =
        *owner_uid
            ? arena_printf(arena,
                           "Error creating: %s \"%s\" already exists and belongs to another owner",
                           kind, name)
            : arena_printf(arena,
                           "Error creating: %s \"%s\" already exists and has no owner: delete it "
                           "(kubectl delete %s %s), or make this job its controller "
                           "(metadata.ownerReferences)",
                           kind, name, kind, name);
    blocker_set(blocker, reason, problem);
}

/* A pod on its way out is in nobody's way, until it should be gone. */
static void set_overdue_blocker(const struct view *view, struct blocker *blocker,
                                struct arena *arena)
{
    for (size_t i = 0; i < view->pods.count; i++) {
        const struct child *child = &view->pods.items[i];
        if (child->overdue && !child->lost)
            blocker_set(
                blocker, "PodTerminating",
                arena_printf(arena,
                             "Pod %s is past its deletion grace period; its node is not "
                             "known to be lost, so the operator does not force the deletion",
                             child->name));
    }
}

void policy_waiting(const struct job *job, const struct view *view, struct blocker *blocker,
                    struct arena *arena)
{
    set_overdue_blocker(view, blocker, arena);
    for (size_t i = 0; i < view->pods.count; i++) {
        const struct child *child = &view->pods.items[i];
        const struct pod *pod = child->pod;
        if (child->deleting || !pod->waiting_reason || !children_desired(job, child) ||
            pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED)
            continue;
        blocker_set(blocker, pod->waiting_reason,
                    arena_printf(arena, "Pod %s is waiting: %s%s%s", pod->name, pod->waiting_reason,
                                 pod->waiting_message ? ": " : "",
                                 pod->waiting_message ? pod->waiting_message : ""));
        return;
    }
}
