/* PodGroups and autoscalers in the caches: found by the name of the job, whoever owns them. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/cache/cache.h"
#include "tests/operator/cache/objects.h"

#include <stdlib.h>
#include <string.h>

static void on_changed(void *context, const char *key, bool finished)
{
    assert_false(finished);
    str_printf(context, " %s", key);
}

static void on_warn(void *context, const char *message)
{
    (void)context;
    fail_msg("%s", message);
}

static void put(struct cache *cache, enum cache_kind kind, struct json *object)
{
    cache_put(cache, kind, object);
    json_free(object);
}

static struct snapshot look(struct cache *cache, const char *key, struct arena *arena)
{
    struct cached_job *job = cache_acquire_job(cache, key);
    struct snapshot snapshot;
    assert_non_null(job);
    cache_snapshot(cache, job, 1, arena, &snapshot);
    cache_release_job(job);
    return snapshot;
}

static void put_both(struct cache *cache)
{
    put(cache, CACHE_POD_GROUPS,
        object_from("{metadata: {name: j, namespace: ns, uid: g, resourceVersion: '2'}, spec: "
                    "{minMember: 2, queue: q, minResources: {cpu: 500m, memory: 1}}, status: "
                    "{phase: Pending, conditions: [{type: Unschedulable, status: 'True', message: "
                    "full}]}}"));
    put(cache, CACHE_AUTOSCALERS,
        object_from("{metadata: {name: j, namespace: ns, uid: a, resourceVersion: '3', "
                    "ownerReferences: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: j, "
                    "uid: o, controller: true}]}, spec: {maxReplicas: 3}}"));
}

static void check_both(const struct snapshot *snapshot)
{
    assert_string_equal(snapshot->pod_group->uid, "g");
    assert_string_equal(snapshot->pod_group->owner_uid, "");
    assert_string_equal(snapshot->pod_group->phase, "Pending");
    assert_string_equal(snapshot->pod_group->message, "full");
    assert_string_equal(snapshot->pod_group->spec.queue, "q");
    assert_int_equal(snapshot->pod_group->spec.min_resources.count, 2);
    assert_string_equal(snapshot->pod_group->spec.min_resources.items[1].resource, "memory");
    assert_int_equal(snapshot->pod_group->spec.min_resources.items[1].milli, 1000);
    assert_string_equal(snapshot->autoscaler->name, "j");
    assert_string_equal(snapshot->autoscaler->owner_uid, "o");
    assert_int_equal(snapshot->autoscaler->spec.max_replicas, 3);
    assert_int_equal(snapshot->pod_count + snapshot->service_count, 0);
}

static void they_are_found_by_the_jobs_name(void **state)
{
    (void)state;
    struct str changed;
    str_init(&changed, 4096);
    struct cache *cache = cache_open(
        &(struct cache_options){.changed = on_changed, .warn = on_warn, .context = &changed});
    struct arena *arena = arena_open();
    put(cache, CACHE_POD_GROUPS,
        object_from("{metadata: {name: none, namespace: ns, uid: x, resourceVersion: '4'}}"));
    assert_string_equal(str_text(&changed), ""); /* nobody's business */
    put(cache, CACHE_JOBS, object_job("j", "o", 1, 1));
    put_both(cache);
    put_both(cache); /* the same version again is no news */
    assert_string_equal(str_text(&changed), " ns/j ns/j ns/j");
    struct snapshot snapshot = look(cache, "ns/j", arena);
    check_both(&snapshot);
    assert_int_equal(cache_count(cache, CACHE_POD_GROUPS), 2);
    str_clear(&changed);
    struct json *group =
        object_from("{metadata: {name: j, namespace: ns, uid: g, resourceVersion: '5'}}");
    cache_delete(cache, CACHE_POD_GROUPS, group);
    json_free(group);
    cache_begin_list(cache, CACHE_AUTOSCALERS);
    cache_end_list(cache, CACHE_AUTOSCALERS);
    assert_string_equal(str_text(&changed), " ns/j ns/j");
    snapshot = look(cache, "ns/j", arena);
    assert_null(snapshot.pod_group);
    assert_null(snapshot.autoscaler);
    arena_close(arena);
    str_free(&changed);
    cache_close(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(they_are_found_by_the_jobs_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
