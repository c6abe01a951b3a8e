/* Kueue in the cache: which Workload is a job's, whose it is, and what its admission gives to the
 * pods. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/cache/cache.h"
#include "tests/operator/cache/cache_fixture.h"

#include <string.h>

#define HASH "annotations: {shoal.dev/pods-hash: h}"

/* Of the job of this UID; `what` is metadata, then its spec and status. */
static void put_workload(struct fixture *f, const char *name, int version, const char *owner_uid,
                         const char *metadata, const char *status)
{
    feed_put(f, CACHE_WORKLOADS,
             object_from("metadata: {name: %s, namespace: ns, uid: u-%s, resourceVersion: '%d', "
                         "ownerReferences: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: "
                         "j, uid: %s, controller: true}], %s}\n"
                         "spec: {queueName: q, podSets: [{name: master, count: 1}, {name: worker, "
                         "count: 1}]}\nstatus: {%s}\n",
                         name, name, version, owner_uid, metadata, status));
}

static struct json *queued_job(const char *labels)
{
    struct json *job = object_job("j", "j1", 1, 1);
    struct json *more = object_from("{kueue.x-k8s.io/queue-name: q%s}", labels);
    json_set(json_get(job, "metadata"), "labels", more);
    return job;
}

static struct queue_view look(struct fixture *f, struct arena *arena)
{
    struct cached_job *job = cache_acquire_job(f->cache, "ns/j");
    struct snapshot snapshot;
    assert_non_null(job);
    cache_snapshot(f->cache, job, 0, arena, &snapshot);
    cache_release_job(job);
    return snapshot.queue;
}

static void put_flavor(struct fixture *f, const char *name, const char *spec)
{
    feed_put(f, CACHE_FLAVORS, object_from("metadata: {name: %s}\nspec: {%s}\n", name, spec));
}

static void a_workload_is_its_owners(void **state)
{
    struct fixture *f = *state;
    auto_arena struct arena *arena = arena_open();
    feed_put(f, CACHE_JOBS, queued_job(""));
    assert_told(f->changed, " j");
    put_workload(f, "w", 1, "j1", HASH, "");
    assert_told(f->changed, " j");
    assert_string_equal(look(f, arena).workload->name, "w");
    assert_null(look(f, arena).other);
    put_workload(f, "w", 1, "j1", HASH, ""); /* the same version */
    assert_told(f->changed, "");
    put_workload(f, "theirs", 1, "j1", "", "");
    assert_string_equal(look(f, arena).other, "theirs");
    put_workload(f, "w", 2, "j0", HASH, ""); /* of an earlier job of that name */
    assert_null(look(f, arena).workload);
    feed_gone(f, CACHE_WORKLOADS,
              object_from("metadata: {name: theirs, namespace: ns, uid: "
                          "u-theirs, resourceVersion: '3'}"));
    assert_told(f->changed, " j j j");
    assert_null(look(f, arena).other);
}

static void others_workloads_take_no_room(void **state)
{
    struct fixture *f = *state;
    feed_put(f, CACHE_WORKLOADS,
             object_from("metadata: {name: batch, namespace: ns, uid: u, resourceVersion: '1', "
                         "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: j1, "
                         "controller: true}]}\nspec: {}"));
    assert_int_equal(cache_count(f->cache, CACHE_WORKLOADS), 0);
    assert_told(f->changed, "");
}

static void a_list_replaces_what_was_known(void **state)
{
    struct fixture *f = *state;
    auto_arena struct arena *arena = arena_open();
    feed_put(f, CACHE_JOBS, queued_job(""));
    put_workload(f, "w", 1, "j1", HASH, "");
    put_flavor(f, "a", "");
    str_clear(&f->changed);
    for (enum cache_kind kind = CACHE_WORKLOADS; kind < CACHE_KINDS; kind++) {
        cache_begin_list(f->cache, kind);
        cache_end_list(f->cache, kind);
        assert_int_equal(cache_count(f->cache, kind), 0);
    }
    assert_told(f->changed, " j j");
    assert_null(look(f, arena).workload);
}

#define ADMITTED                                                                                   \
    "conditions: [{type: QuotaReserved, status: 'True'}, {type: Admitted, status: 'True'}], "
#define MARKS  "\"annotations\":{\"kueue.x-k8s.io/workload\":\"w\"},\"labels\":{" LABELS "}"
#define LABELS "\"kueue.x-k8s.io/podset\":\"worker\",\"kueue.x-k8s.io/local-queue-name\":\"q\""

static void an_admission_becomes_fields_of_pods(void **state)
{
    static const struct {
        const char *status, *fields, *obstacle;
    } rows[] = {
        {"admission: {podSetAssignments: [{name: worker, flavors: {cpu: a}}]}", NULL, NULL},
        {ADMITTED "admission: {podSetAssignments: [{name: worker, flavors: {cpu: a, memory: b}}]}",
         "{\"nodeSelector\":{\"pool\":\"a\",\"zone\":\"z\"},\"tolerations\":[{\"key\":\"a\"}]," MARKS
         "}",
         NULL},
        {ADMITTED "admission: {clusterQueue: all, podSetAssignments: [{name: worker}]}",
         "{\"annotations\":{\"kueue.x-k8s.io/workload\":\"w\"},\"labels\":{" LABELS
         ",\"kueue.x-k8s.io/cluster-queue-name\":\"all\"}}",
         NULL},
        {ADMITTED "admission: {clusterQueue: all.of.them, podSetAssignments: [{name: worker}]}",
         "{" MARKS "}", NULL},
        {ADMITTED "admission: {podSetAssignments: [{name: worker, flavors: {cpu: none}}]}",
         "{" MARKS "}", "ResourceFlavor \"none\" of the admission is not known (yet)"},
        {ADMITTED
         "admission: {podSetAssignments: [{name: worker, topologyAssignment: {levels: [h]}}]}",
         "{\"annotations\":{\"kueue.x-k8s.io/workload\":\"w\",\"kueue.x-k8s.io/podset-unconstrained-topology\":"
         "\"true\"},\"labels\":{" LABELS "},\"schedulingGates\":[{\"name\":"
         "\"kueue.x-k8s.io/topology\"}]}",
         NULL},
        {ADMITTED
         "admission: {podSetAssignments: [{name: worker, flavors: {cpu: a}}]}, admissionChecks: [{name: c, "
         "podSetUpdates: [{name: worker, nodeSelector: {host: h}, tolerations: [{key: t}]}]}]",
         "{\"nodeSelector\":{\"pool\":\"a\",\"host\":\"h\"},\"tolerations\":[{\"key\":\"a\"},{\"key\":\"t\"}]," MARKS
         "}",
         NULL},
        {ADMITTED
         "admission: {podSetAssignments: [{name: worker, flavors: {cpu: a}}]}, admissionChecks: [{name: c, "
         "podSetUpdates: [{name: worker, nodeSelector: {pool: x}}]}]",
         NULL, "admission check c sets nodeSelector \"pool\" to \"x\", and it is \"a\" already"},
    };
    struct fixture *f = *state;
    feed_put(f, CACHE_JOBS, queued_job(""));
    put_flavor(f, "a", "nodeLabels: {pool: a}, tolerations: [{key: a}]");
    put_flavor(f, "b", "nodeLabels: {zone: z}");
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        put_workload(f, "w", (int)i + 1, "j1", HASH, rows[i].status);
        struct queue_view view = look(f, arena);
        const char *fields = view.fields[REPLICA_WORKER];
        if (rows[i].obstacle)
            assert_string_equal(view.obstacle, rows[i].obstacle);
        else
            assert_null(view.obstacle);
        if (!rows[i].fields) {
            assert_true(!fields == !rows[i].obstacle);
            continue;
        }
        struct json *got = json_parse_text(fields, JSON_STRICT, NULL),
                    *expected = json_parse_text(rows[i].fields, JSON_STRICT, NULL);
        if (!json_is_equal(got, expected))
            fail_msg("%zu: %s", i, fields);
        json_free(got);
        json_free(expected);
    }
}

static void classes_have_values(void **state)
{
    static const struct {
        const char *labels;
        int32_t value;
        bool unknown;
    } rows[] = {
        {"", 5, false}, /* the default of pods */
        {", kueue.x-k8s.io/priority-class: high", 100, false},
        {", kueue.x-k8s.io/priority-class: usual", 0, true}, /* that is a class of pods */
    };
    struct fixture *f = *state;
    feed_put(f, CACHE_WORKLOAD_PRIORITIES, object_from("metadata: {name: high}\nvalue: 100\n"));
    feed_put(f, CACHE_PRIORITIES,
             object_from("metadata: {name: usual}\nvalue: 5\nglobalDefault: true\n"));
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct json *job = queued_job(rows[i].labels);
        json_set_text(json_get(job, "metadata"), "resourceVersion", arena_printf(arena, "v%zu", i));
        feed_put(f, CACHE_JOBS, job);
        struct queue_view view = look(f, arena);
        assert_int_equal(view.priority.value, rows[i].value);
        assert_int_equal(view.priority_unknown, rows[i].unknown);
    }
    str_clear(&f->changed);
    feed_put(f, CACHE_WORKLOAD_PRIORITIES, object_from("metadata: {name: high}\nvalue: 100\n"));
    assert_told(f->changed, "");
    feed_put(f, CACHE_WORKLOAD_PRIORITIES, object_from("metadata: {name: high}\nvalue: 7\n"));
    assert_told(f->changed, " j");
    feed_gone(f, CACHE_WORKLOAD_PRIORITIES, object_from("metadata: {name: high}\n"));
    assert_told(f->changed, " j");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_workload_is_its_owners),
        test(others_workloads_take_no_room),
        test(a_list_replaces_what_was_known),
        test(an_admission_becomes_fields_of_pods),
        test(classes_have_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
