#include "operator/apply/steps.h"

#include "base/mem.h"
#include "operator/job/event_names.h"
#include "operator/job/job_status.h"

#include <assert.h>
#include <string.h>

#define NOT_STARTED (-1)

enum effect { CHANGES, CREATES, DELETES };

/* How actions of one kind are carried out, and what is said of their outcome, in the words that
 * tools know from the peer operator. The stages are barriers. The status is stored first: were a
 * pod deleted before its restart is counted, a crash of the operator would lose the count. Services
 * come before pods, which look each other's names up as soon as they run. A service is made and
 * goes with its pod, and nobody asks for it: nothing is said of one where nothing fails. */
static const struct action_traits {
    int stage;
    enum effect effect;
    const char *reason; /* of its events, behind "Successful" or "Failed"; NULL: nothing is said */
    const char *done; /* the message if it went well; the object's name follows. NULL: none then */
} action_traits_of[] = {
    [ACTION_SET_STATUS] = {0, CHANGES, "UpdateStatus", NULL},
    [ACTION_EVENT] = {1, CHANGES, NULL, NULL},
    [ACTION_DELETE_POD] = {2, DELETES, "DeletePod", "Deleted pod"},
    [ACTION_FORCE_DELETE_POD] = {2, DELETES, "DeletePod", "Deleted pod"},
    [ACTION_DELETE_SERVICE] = {2, DELETES, "DeleteService", NULL},
    [ACTION_DELETE_POD_GROUP] = {2, DELETES, "DeletePodGroup", "Deleted PodGroup"},
    [ACTION_DELETE_AUTOSCALER] = {2, DELETES, "DeleteAutoscaler", "Deleted autoscaler"},
    [ACTION_DELETE_WORKLOAD] = {2, DELETES, "DeleteWorkload", "Deleted Workload"},
    [ACTION_CREATE_WORKLOAD] = {3, CREATES, "CreateWorkload", "Created Workload"},
    [ACTION_UPDATE_WORKLOAD] = {3, CHANGES, "UpdateWorkload", "Updated Workload"},
    [ACTION_CREATE_POD_GROUP] = {3, CREATES, "CreatePodGroup", "Created PodGroup"},
    [ACTION_UPDATE_POD_GROUP] = {3, CHANGES, "UpdatePodGroup", "Updated PodGroup"},
    [ACTION_CREATE_SERVICE] = {4, CREATES, "CreateService", NULL},
    [ACTION_CREATE_POD] = {5, CREATES, "CreatePod", "Created pod"},
    [ACTION_CREATE_AUTOSCALER] = {6, CREATES, "CreateAutoscaler", "Created autoscaler"},
    [ACTION_UPDATE_AUTOSCALER] = {6, CHANGES, "UpdateAutoscaler", "Updated autoscaler"},
    [ACTION_SET_WORKLOAD_STATUS] = {7, CHANGES, "UpdateWorkload", NULL},
    [ACTION_DELETE_JOB] = {8, DELETES, "DeletePod", "Deleted job"},
};

/* Of the actions of one kind. Above EVENTS_ONE_BY_ONE a plan tells of them in one event. */
struct gathered {
    size_t planned, over;
    bool told;
    struct event_names names; /* of those that went well */
};

struct steps {
    struct arena *arena;
    struct action *actions; /* those that are started at all */
    size_t count, next;
    struct gathered gathered[ACTION_REQUEUE];
    struct action *reported; /* events about outcomes: at most one an action */
    size_t reported_count, reported_next;
    int stage;        /* of the last action that was started */
    size_t window;    /* how many may be in flight in this stage */
    size_t in_flight; /* actions of this stage */
    size_t parallel_max;
    struct history history;
    int64_t requeue_ms;
    struct error failure; /* ERR_NONE: none */
};

static const struct pod_group_spec *copy_of_pod_group(const struct pod_group_spec *group,
                                                      struct arena *arena)
{
    if (!group)
        return NULL;
    struct pod_group_spec *copy = arena_new(arena, struct pod_group_spec);
    *copy = *group;
    copy->queue = arena_strdup(arena, group->queue);
    copy->priority_class = arena_strdup(arena, group->priority_class);
    copy->min_resources.items = arena_array(arena, struct quantity, group->min_resources.count);
    for (size_t i = 0; i < group->min_resources.count; i++) {
        copy->min_resources.items[i] = group->min_resources.items[i];
        copy->min_resources.items[i].resource =
            arena_strdup(arena, group->min_resources.items[i].resource);
    }
    return copy;
}

static const struct autoscaler_spec *copy_of_autoscaler(const struct autoscaler_spec *autoscaler,
                                                        struct arena *arena)
{
    if (!autoscaler)
        return NULL;
    struct autoscaler_spec *copy = arena_new(arena, struct autoscaler_spec);
    *copy = *autoscaler;
    copy->metrics_hash = arena_strdup(arena, autoscaler->metrics_hash);
    return copy;
}

static const struct workload_spec *copy_of_workload(const struct workload_spec *workload,
                                                    struct arena *arena)
{
    if (!workload)
        return NULL;
    struct workload_spec *copy = arena_new(arena, struct workload_spec);
    *copy = *workload;
    copy->queue = arena_strdup(arena, workload->queue);
    copy->pods_hash = arena_strdup(arena, workload->pods_hash);
    copy->priority.class_name = arena_strdup(arena, workload->priority.class_name);
    return copy;
}

static const struct workload_status *copy_of_workload_status(const struct workload_status *status,
                                                             struct arena *arena)
{
    if (!status)
        return NULL;
    struct workload_status *copy = arena_new(arena, struct workload_status);
    *copy = *status;
    copy->conditions = arena_strdup(arena, status->conditions);
    copy->eviction_reason = arena_strdup(arena, status->eviction_reason);
    copy->message = arena_strdup(arena, status->message);
    copy->finished_reason = arena_strdup(arena, status->finished_reason);
    copy->finished_message = arena_strdup(arena, status->finished_message);
    return copy;
}

static const struct placement *copy_of_placement(const struct placement *placement,
                                                 struct arena *arena)
{
    if (!placement)
        return NULL;
    struct placement *copy = arena_new(arena, struct placement);
    *copy = *placement;
    copy->fields = arena_strdup(arena, placement->fields);
    return copy;
}

/* The plan lives in the arena of its pass, which is over before the first answer comes. */
static struct action copy_of(const struct action *action, struct arena *arena)
{
    struct action copy = *action;
    copy.name = arena_strdup(arena, action->name);
    copy.uid = arena_strdup(arena, action->uid);
    copy.version = arena_strdup(arena, action->version);
    copy.reason = arena_strdup(arena, action->reason);
    copy.message = arena_strdup(arena, action->message);
    copy.pod_group = copy_of_pod_group(action->pod_group, arena);
    copy.autoscaler = copy_of_autoscaler(action->autoscaler, arena);
    copy.workload = copy_of_workload(action->workload, arena);
    copy.workload_status = copy_of_workload_status(action->workload_status, arena);
    copy.placement = copy_of_placement(action->placement, arena);
    if (action->status) {
        struct job_status *status = arena_new(arena, struct job_status);
        *status = job_status_copy(action->status, arena);
        copy.status = status;
    }
    return copy;
}

struct steps *steps_open(const struct plan *plan, const struct job_status *status,
                         size_t parallel_max)
{
    assert(parallel_max > 0);
    struct arena *arena = arena_open();
    struct steps *steps = arena_new(arena, struct steps);
    steps->arena = arena;
    steps->parallel_max = parallel_max;
    steps->stage = NOT_STARTED;
    steps->actions = arena_array(arena, struct action, plan->count);
    steps->reported = arena_array(arena, struct action, plan->count);
    for (size_t i = 0; i < plan->count; i++) {
        enum action_kind kind = plan->actions[i].kind;
        if (kind == ACTION_REQUEUE) {
            steps->requeue_ms = plan->actions[i].at_ms;
            continue;
        }
        steps->actions[steps->count++] = copy_of(&plan->actions[i], arena);
        steps->gathered[kind].planned++;
    }
    /* Pods are made with the history that this plan stores, not with the one it was made from: the
     * attempt and the restart count are in it. */
    bool has_status = steps->count && steps->actions[0].kind == ACTION_SET_STATUS;
    steps->history =
        has_status ? steps->actions[0].status->history : job_status_copy(status, arena).history;
    return steps;
}

void steps_close(struct steps *steps)
{
    if (steps)
        arena_close(steps->arena);
}

static bool may_start(struct steps *steps, const struct action_traits *action_traits)
{
    if (action_traits->stage != steps->stage) {
        if (steps->in_flight)
            return false;
        steps->stage = action_traits->stage;
        /* Slow start, as in Kubernetes' Job controller: a quota that refuses pods refuses one, and
         * not a thousand at once. Each success widens the window by one, which doubles it per round
         * trip. */
        steps->window = action_traits->effect == CREATES ? 1 : steps->parallel_max;
    }
    return steps->in_flight < steps->window;
}

const struct action *steps_next(struct steps *steps)
{
    if (steps->reported_next < steps->reported_count)
        return &steps->reported[steps->reported_next++];
    if (steps->next == steps->count || steps->failure.code)
        return NULL;
    const struct action *action = &steps->actions[steps->next];
    if (!may_start(steps, &action_traits_of[action->kind]))
        return NULL;
    steps->next++;
    if (action->kind != ACTION_EVENT)
        steps->in_flight++;
    return action;
}

/* It may be deleted at any time, by people or by Kueue: then there is nobody to tell. */
static bool is_of_workload(const struct action *action)
{
    return action->kind == ACTION_SET_WORKLOAD_STATUS || action->kind == ACTION_UPDATE_WORKLOAD;
}

/* A delete that the API server refused with 409: another object has the name, or it has another
 * version. */
static bool is_conflict_of_delete(const struct action *action, enum error_code code)
{
    return action_traits_of[action->kind].effect == DELETES && code == ERR_CONFLICT;
}

/* A status that was written over or did not get through comes again by itself; one that is refused
 * does not, and nothing of the plan is done without it. */
static bool is_reported(const struct action *action, const struct error *failure)
{
    if (!failure)
        return action_traits_of[action->kind].done != NULL;
    /* Kueue writes it, too: the next pass sees what it wrote. */
    if (is_of_workload(action))
        return failure->code != ERR_CONFLICT;
    if (is_conflict_of_delete(action, failure->code)) /* the next pass sees what is there */
        return false;
    return action->kind != ACTION_SET_STATUS || failure->code == ERR_FORBIDDEN ||
           failure->code == ERR_INPUT;
}

/* Returns whether it is told with others of its kind, when all are over. */
static bool gather(struct steps *steps, const struct action *action)
{
    struct gathered *gathered = &steps->gathered[action->kind];
    if (gathered->planned <= EVENTS_ONE_BY_ONE)
        return false;
    event_names_add(&gathered->names, action->name, steps->arena);
    return true;
}

/* After a failure no more of a kind are started. */
static void tell_gathered(struct steps *steps, enum action_kind kind)
{
    struct gathered *gathered = &steps->gathered[kind];
    bool is_over =
        gathered->over == gathered->planned || (steps->failure.code && !steps->in_flight);
    if (!gathered->names.count || gathered->told || !is_over)
        return;
    gathered->told = true;
    const char *done = action_traits_of[kind].done, *what = strchr(done, ' ') + 1;
    size_t count = gathered->names.count;
    steps->reported[steps->reported_count++] = (struct action){
        .kind = ACTION_EVENT,
        .event_type = EVENT_NORMAL,
        .reason = arena_printf(steps->arena, "Successful%s", action_traits_of[kind].reason),
        .message =
            arena_printf(steps->arena, "%.*s%zu %s%s: %s", (int)(what - done), done, count, what,
                         count > 1 ? "s" : "", event_names_text(&gathered->names, steps->arena)),
    };
}

static void report(struct steps *steps, const struct action *action, const struct error *failure)
{
    const struct action_traits *action_traits = &action_traits_of[action->kind];
    if (!is_reported(action, failure) || (!failure && gather(steps, action)))
        return;
    static const char *const failed[] = {
        [CHANGES] = "Error updating", [CREATES] = "Error creating", [DELETES] = "Error deleting"};
    const char *what = action->kind == ACTION_SET_STATUS
                           ? "Error updating status, without which nothing is done for this job"
                           : failed[action_traits->effect];
    steps->reported[steps->reported_count++] = (struct action){
        .kind = ACTION_EVENT,
        .event_type = failure ? EVENT_WARNING : EVENT_NORMAL,
        .reason = arena_printf(steps->arena, "%s%s", failure ? "Failed" : "Successful",
                               action_traits->reason),
        .message = arena_printf(steps->arena, "%s: %s", failure ? what : action_traits->done,
                                failure ? failure->msg : action->name),
    };
}

/* A name that a next attempt needs may belong to a pod of the attempt before that no watch has
 * shown yet: other pods of the next attempt would meet it. */
static bool may_be_old_attempt(const struct action *action)
{
    return action->kind == ACTION_CREATE_POD && action->attempt > 0;
}

/* Failures that mean it is so already. A delete names the UID it means: a conflict is another
 * object under that name, or, if it names a version, one that has changed: the next pass looks at
 * it. Where no version was named the delete has failed: the API server may have its reasons.
 * No pod is made for somebody else's group. Of a Workload that is gone there is nothing to tell. */
static bool is_as_good(const struct action *action, enum error_code code)
{
    enum effect effect = action_traits_of[action->kind].effect;
    bool may_be_anothers =
        action->kind == ACTION_CREATE_POD_GROUP || action->kind == ACTION_CREATE_WORKLOAD;
    return (effect == CREATES && code == ERR_EXISTS && !may_be_anothers &&
            !may_be_old_attempt(action)) ||
           (effect == DELETES && code == ERR_NOT_FOUND) ||
           (is_conflict_of_delete(action, code) && action->version) ||
           (is_of_workload(action) && code == ERR_NOT_FOUND);
}

bool steps_creates(enum action_kind kind)
{
    return action_traits_of[kind].effect == CREATES;
}

static void widen(struct steps *steps)
{
    if (steps->window < steps->parallel_max)
        steps->window++;
}

static bool note_outcome(struct steps *steps, const struct action *action, const struct error *err)
{
    if (err->code && !is_as_good(action, err->code)) {
        report(steps, action, err);
        if (!steps->failure.code)
            steps->failure = *err;
        return false;
    }
    if (steps_creates(action->kind))
        widen(steps);
    if (!err->code || err->code == ERR_EXISTS) /* whose name it is, people must look */
        report(steps, action, err->code ? err : NULL);
    return true;
}

static void note_end(struct steps *steps, enum action_kind kind)
{
    assert(steps->in_flight > 0 && kind != ACTION_EVENT);
    steps->in_flight--;
    steps->gathered[kind].over++;
}

static void tell_all_gathered(struct steps *steps)
{
    for (enum action_kind kind = 0; kind < ACTION_REQUEUE; kind++)
        tell_gathered(steps, kind);
}

bool steps_done(struct steps *steps, const struct action *action, const struct error *err)
{
    note_end(steps, action->kind);
    bool reached = note_outcome(steps, action, err);
    tell_all_gathered(steps);
    return reached;
}

void steps_adopted(struct steps *steps, const struct action *action)
{
    assert(steps_creates(action->kind));
    note_end(steps, action->kind);
    widen(steps);
    /* of pods and services nothing has changed: it was made so, by an operator before or a try
     * that was late */
    if (action->kind != ACTION_CREATE_POD && action->kind != ACTION_CREATE_SERVICE) {
        const char *what = action_traits_of[action->kind].reason + strlen("Create");
        steps->reported[steps->reported_count++] = (struct action){
            .kind = ACTION_EVENT,
            .event_type = EVENT_NORMAL,
            .reason = arena_printf(steps->arena, "SuccessfulAdopt%s", what),
            .message = arena_printf(steps->arena, "Adopted %s: %s", what, action->name),
        };
    }
    tell_all_gathered(steps);
}

bool steps_are_finished(const struct steps *steps)
{
    return steps->in_flight == 0 && steps->reported_next == steps->reported_count &&
           (steps->failure.code || steps->next == steps->count);
}

const struct error *steps_failure(const struct steps *steps)
{
    return steps->failure.code ? &steps->failure : NULL;
}

int64_t steps_requeue_ms(const struct steps *steps)
{
    return steps->requeue_ms;
}

const struct history *steps_history(const struct steps *steps)
{
    return &steps->history;
}
