#include "operator/apply/expect.h"

#include "base/mem.h"

#include <string.h>

struct sight {
    const char *uid;  /* NULL: any object of this name */
    const char *name; /* with a uid: not needed */
    enum expect_kind kind;
    bool gone;
    bool force; /* gone: its end is not waited for */
};

struct expect {
    struct arena *arena;
    struct sight *sights; /* in the order in which they were done: so the view shows them */
    size_t first, count, size;
    const char *older_than_view; /* a resourceVersion; NULL: any will do */
};

struct expect *expect_open(void)
{
    struct arena *arena = arena_open();
    struct expect *expect = arena_new(arena, struct expect);
    expect->arena = arena;
    return expect;
}

void expect_close(struct expect *expect)
{
    if (expect)
        arena_close(expect->arena);
}

static void await(struct expect *expect, enum expect_kind kind, struct sight sight)
{
    sight.kind = kind;
    if (expect->first + expect->count == expect->size) {
        /* An arena frees nothing before its end. So what was seen at the front is left behind with
         * the old array. */
        expect->size = expect->size ? 2 * expect->size : 16;
        struct sight *more = arena_array(expect->arena, struct sight, expect->size);
        if (expect->count)
            memcpy(more, expect->sights + expect->first, expect->count * sizeof *more);
        expect->sights = more;
        expect->first = 0;
    }
    sight.uid = arena_strdup(expect->arena, sight.uid);
    sight.name = arena_strdup(expect->arena, sight.name);
    expect->sights[expect->first + expect->count++] = sight;
}

void expect_done(struct expect *expect, const struct action *action, const char *uid)
{
    /* Of a create without an answer the UID is not known: it is awaited by its name. */
    struct sight made = {.uid = uid, .name = uid ? NULL : action->name};
    struct sight deleted = {.uid = action->uid, .gone = true};
    switch (action->kind) {
    case ACTION_CREATE_POD:
        await(expect, EXPECT_POD, made);
        break;
    case ACTION_CREATE_SERVICE:
        await(expect, EXPECT_SERVICE, made);
        break;
    case ACTION_CREATE_POD_GROUP:
        await(expect, EXPECT_POD_GROUP, made);
        break;
    case ACTION_FORCE_DELETE_POD:
        deleted.force = true;
        await(expect, EXPECT_POD, deleted);
        break;
    case ACTION_DELETE_POD:
        await(expect, EXPECT_POD, deleted);
        break;
    case ACTION_DELETE_SERVICE:
        await(expect, EXPECT_SERVICE, deleted);
        break;
    default:
        break;
    }
}

void expect_newer(struct expect *expect, const char *resource_version)
{
    expect->older_than_view = arena_strdup(expect->arena, resource_version);
}

/* What is being deleted counts as gone: that is all a delete can bring about at once. */
static bool is_going(const struct pod *pod, bool force)
{
    return pod->deleted_ms && (!force || pod->grace_ms == 0);
}

static bool is_it(const struct sight *sight, const char *uid, const char *name)
{
    return sight->uid ? strcmp(uid, sight->uid) == 0 : strcmp(name, sight->name) == 0;
}

static bool shows(const struct snapshot *snapshot, const struct sight *sight)
{
    const struct pod_group *group = snapshot->pod_group;
    /* Deletes of PodGroups are not expected: the next pass deletes one that is still there again,
     * which does no harm. */
    if (sight->kind == EXPECT_POD_GROUP)
        return group && is_it(sight, group->uid, group->name);
    for (size_t i = 0; sight->kind == EXPECT_POD && i < snapshot->pod_count; i++)
        if (is_it(sight, snapshot->pods[i].uid, snapshot->pods[i].name))
            return !sight->gone || is_going(&snapshot->pods[i], sight->force);
    for (size_t i = 0; sight->kind == EXPECT_SERVICE && i < snapshot->service_count; i++)
        if (is_it(sight, snapshot->services[i].uid, snapshot->services[i].name))
            return !sight->gone || snapshot->services[i].deleting;
    return sight->gone;
}

static bool is_newer(const struct expect *expect, const char *resource_version)
{
    return !expect->older_than_view || strcmp(expect->older_than_view, resource_version) != 0;
}

bool expect_is_empty(const struct expect *expect)
{
    return expect->count == 0 && !expect->older_than_view;
}

bool expect_is_met(struct expect *expect, const struct snapshot *snapshot,
                   const char *resource_version)
{
    /* Only from the front: what was done first is seen first, so a pass over a thousand pods
     * compares a few and not all. */
    while (expect->count && shows(snapshot, &expect->sights[expect->first])) {
        expect->first++;
        expect->count--;
    }
    return expect->count == 0 && is_newer(expect, resource_version);
}

void expect_missing(const struct expect *expect, const struct snapshot *snapshot,
                    const char *resource_version, bool ret_missing[EXPECT_KINDS])
{
    ret_missing[EXPECT_JOB] = !is_newer(expect, resource_version);
    ret_missing[EXPECT_POD] = ret_missing[EXPECT_SERVICE] = ret_missing[EXPECT_POD_GROUP] = false;
    for (size_t i = 0; i < expect->count; i++) {
        const struct sight *sight = &expect->sights[expect->first + i];
        ret_missing[sight->kind] |= !shows(snapshot, sight);
    }
}
