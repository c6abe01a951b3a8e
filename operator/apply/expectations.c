#include "operator/apply/expectations.h"

#include "base/mem.h"

#include <string.h>

struct expectation {
    const char *uid;     /* NULL: any object of this name */
    const char *name;    /* with a uid: not needed */
    const char *version; /* that was written over, or has changed; NULL: none */
    enum expectation_kind kind;
    bool gone;
    bool force; /* gone: its end is not waited for */
};

struct expectations {
    struct arena *arena;
    struct expectation *items; /* in the order in which they were done: so the view shows them */
    size_t first, count, size;
    const char *older_than_view; /* a resourceVersion; NULL: any will do */
};

struct expectations *expectations_open(void)
{
    struct arena *arena = arena_open();
    struct expectations *expect = arena_new(arena, struct expectations);
    expect->arena = arena;
    return expect;
}

void expectations_close(struct expectations *expect)
{
    if (expect)
        arena_close(expect->arena);
}

static void await(struct expectations *expect, enum expectation_kind kind,
                  struct expectation expectation)
{
    expectation.kind = kind;
    if (expect->first + expect->count == expect->size) {
        /* An arena frees nothing before its end. So what was seen at the front is left behind with
         * the old array. */
        expect->size = expect->size ? 2 * expect->size : 16;
        struct expectation *more = arena_array(expect->arena, struct expectation, expect->size);
        if (expect->count)
            memcpy(more, expect->items + expect->first, expect->count * sizeof *more);
        expect->items = more;
        expect->first = 0;
    }
    expectation.uid = arena_strdup(expect->arena, expectation.uid);
    expectation.name = arena_strdup(expect->arena, expectation.name);
    expectation.version = arena_strdup(expect->arena, expectation.version);
    expect->items[expect->first + expect->count++] = expectation;
}

void expectations_done(struct expectations *expect, const struct action *action, const char *uid)
{
    /* Of a create without an answer the UID is not known: it is awaited by its name. */
    struct expectation made = {.uid = uid, .name = uid ? NULL : action->name};
    struct expectation deleted = {.uid = action->uid, .gone = true};
    switch (action->kind) {
    case ACTION_CREATE_POD:
        await(expect, EXPECTATION_POD, made);
        break;
    case ACTION_CREATE_SERVICE:
        await(expect, EXPECTATION_SERVICE, made);
        break;
    case ACTION_CREATE_POD_GROUP:
        await(expect, EXPECTATION_POD_GROUP, made);
        break;
    case ACTION_CREATE_AUTOSCALER:
        await(expect, EXPECTATION_AUTOSCALER, made);
        break;
    case ACTION_CREATE_WORKLOAD:
        await(expect, EXPECTATION_WORKLOAD, made);
        break;
    case ACTION_UPDATE_WORKLOAD:
    case ACTION_SET_WORKLOAD_STATUS:
        await(expect, EXPECTATION_WORKLOAD,
              (struct expectation){.uid = action->uid, .version = action->version});
        break;
    case ACTION_DELETE_WORKLOAD:
        await(expect, EXPECTATION_WORKLOAD, deleted);
        break;
    case ACTION_FORCE_DELETE_POD:
        deleted.force = true;
        await(expect, EXPECTATION_POD, deleted);
        break;
    case ACTION_DELETE_POD:
        await(expect, EXPECTATION_POD, deleted);
        break;
    case ACTION_DELETE_SERVICE:
        await(expect, EXPECTATION_SERVICE, deleted);
        break;
    default:
        break;
    }
}

void expectations_changed(struct expectations *expect, const struct action *action)
{
    await(expect, EXPECTATION_POD,
          (struct expectation){.uid = action->uid, .version = action->version});
}

void expectations_newer(struct expectations *expect, const char *resource_version)
{
    expect->older_than_view = arena_strdup(expect->arena, resource_version);
}

/* What is being deleted counts as gone: that is all a delete can bring about at once. */
static bool is_going(const struct pod *pod, bool force)
{
    return pod->deleted_ms && (!force || pod->grace_ms == 0);
}

static bool is_in_version(const struct pod *pod, const char *version)
{
    return pod->version && strcmp(pod->version, version) == 0;
}

static bool is_it(const struct expectation *expectation, const char *uid, const char *name)
{
    return expectation->uid ? strcmp(uid, expectation->uid) == 0
                            : strcmp(name, expectation->name) == 0;
}

/* A Workload in another version than the one written over is as good as ours. */
static bool shows_workload(const struct snapshot *snapshot, const struct expectation *expectation)
{
    const struct workload *workload = snapshot->queue.workload;
    bool there = workload && is_it(expectation, workload->uid, workload->name);
    if (expectation->gone)
        return !there || workload->deleting;
    if (expectation->version)
        return !there || strcmp(workload->version, expectation->version) != 0;
    return there || snapshot->queue.other;
}

static bool is_at(const struct snapshot *snapshot, const struct expectation *expectation, size_t at)
{
    return expectation->kind == EXPECTATION_POD
               ? is_it(expectation, snapshot->pods[at].uid, snapshot->pods[at].name)
               : is_it(expectation, snapshot->services[at].uid, snapshot->services[at].name);
}

/* Where the pod or service is among those of the snapshot; SIZE_MAX: nowhere. It is looked for from
 * the last one on, both ways: what is awaited in one order is shown in that order or in the
 * opposite one, but for a few that changed places. */
static size_t find(const struct snapshot *snapshot, const struct expectation *expectation,
                   size_t *last)
{
    size_t count =
        expectation->kind == EXPECTATION_POD ? snapshot->pod_count : snapshot->service_count;
    for (size_t away = 0; away < count; away++) {
        if (*last + away < count && is_at(snapshot, expectation, *last + away))
            return *last += away;
        if (away <= *last && is_at(snapshot, expectation, *last - away))
            return *last -= away;
    }
    return SIZE_MAX;
}

/* last: of each kind, where the last one was. */
static bool shows(const struct snapshot *snapshot, const struct expectation *expectation,
                  size_t last[EXPECTATION_KINDS])
{
    const struct pod_group *group = snapshot->pod_group;
    const struct autoscaler *autoscaler = snapshot->autoscaler;
    /* Deletes of PodGroups and autoscalers are not expected: the next pass deletes one that is
     * still there again, which does no harm. */
    if (expectation->kind == EXPECTATION_POD_GROUP)
        return group && is_it(expectation, group->uid, group->name);
    if (expectation->kind == EXPECTATION_AUTOSCALER)
        return autoscaler && is_it(expectation, autoscaler->uid, autoscaler->name);
    if (expectation->kind == EXPECTATION_WORKLOAD)
        return shows_workload(snapshot, expectation);
    size_t at = find(snapshot, expectation, &last[expectation->kind]);
    if (expectation->version)
        return at == SIZE_MAX || !is_in_version(&snapshot->pods[at], expectation->version);
    if (at == SIZE_MAX || !expectation->gone)
        return (at == SIZE_MAX) == expectation->gone;
    return expectation->kind == EXPECTATION_POD ? is_going(&snapshot->pods[at], expectation->force)
                                                : snapshot->services[at].deleting;
}

static bool is_newer(const struct expectations *expect, const char *resource_version)
{
    return !expect->older_than_view || strcmp(expect->older_than_view, resource_version) != 0;
}

bool expectations_is_empty(const struct expectations *expect)
{
    return expect->count == 0 && !expect->older_than_view;
}

bool expectations_is_met(struct expectations *expect, const struct snapshot *snapshot,
                         const char *resource_version)
{
    /* Only from the front: what was done first is seen first, so a pass over a thousand pods
     * compares a few and not all. */
    size_t last[EXPECTATION_KINDS] = {0};
    while (expect->count && shows(snapshot, &expect->items[expect->first], last)) {
        expect->first++;
        expect->count--;
    }
    return expect->count == 0 && is_newer(expect, resource_version);
}

void expectations_view(const struct expectations *expect, const struct snapshot *snapshot,
                       const char *resource_version,
                       enum expectation_view ret_views[EXPECTATION_KINDS])
{
    for (int kind = 0; kind < EXPECTATION_KINDS; kind++)
        ret_views[kind] = VIEW_IS_MET;
    if (!is_newer(expect, resource_version))
        ret_views[EXPECTATION_JOB] = VIEW_IS_OLD;
    size_t last[EXPECTATION_KINDS] = {0};
    for (size_t i = 0; i < expect->count; i++) {
        const struct expectation *expectation = &expect->items[expect->first + i];
        enum expectation_view *view = &ret_views[expectation->kind];
        if (shows(snapshot, expectation, last))
            continue;
        if (expectation->gone || expectation->version)
            *view = VIEW_IS_OLD;
        else if (*view == VIEW_IS_MET)
            *view = VIEW_LACKS;
    }
}
