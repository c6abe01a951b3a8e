/* Kueue's objects: what is written is read back in both versions, so that nothing is written twice;
 * what Kueue writes is understood; and a status that is written leaves the rest as it was. */
#include "tests/support.h"

#include "base/json.h"
#include "base/lines.h"
#include "base/mem.h"
#include "operator/decode/decode_workload.h"
#include "operator/manifest/manifest.h"
#include "tests/operator/cache/objects.h"
#include "tests/operator/cluster.h"

#include <string.h>

static const char *const versions[] = {"v1beta2", "v1beta1"};

struct reading {
    struct arena *arena;
    struct lines problems;
    struct identity identity;
};

static struct reading reading_open(void)
{
    struct reading r = {.arena = arena_open()};
    lines_init(&r.problems, r.arena);
    r.identity =
        (struct identity){.name = "w", .uid = "u", .owner_uid = "job", .resource_version = "7"};
    return r;
}

static struct workload read_yaml(struct reading *r, const char *yaml)
{
    struct json *object = object_from("%s", yaml);
    struct workload workload = decode_workload(object, &r->identity, r->arena, &r->problems);
    json_free(object);
    return workload;
}

static void workloads_are_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *script;
    } rows[] = {
        {"", "queue q; pass"},
        {"elasticPolicy: {minReplicas: 1, maxReplicas: 2}", "class high; queue q; pass"},
    };
    for (size_t i = 0; i < 2 * array_length(rows); i++) {
        struct cluster *cluster = cluster_open(1, 2, "OnFailure", "", rows[i / 2].spec);
        const char *version = versions[i % 2];
        cluster_do(cluster, rows[i / 2].script);
        const struct action *action = &cluster->plan->actions[cluster->plan->count - 1];
        assert_int_equal(action->kind, ACTION_CREATE_WORKLOAD);
        struct json *object =
            manifest_workload(cluster->job, action->name, action->workload, version);
        struct reading r = reading_open();
        cluster->workload = decode_workload(object, &r.identity, r.arena, &r.problems);
        assert_int_equal(r.problems.count, 0);
        cluster_do(cluster, "settle; pass"); /* comes to rest only if nothing differs */
        assert_int_equal(cluster->plan->count, 0);
        assert_int_equal(cluster->workload.spec.min_workers, i / 2);
        arena_close(r.arena);
        json_free(object);
        cluster_close(cluster);
    }
}

#define CONDITION(type, status, reason, message)                                                   \
    "{type: " type ", status: '" status "', reason: " reason ", message: '" message                \
    "', lastTransitionTime: '2026-01-01T00:00:00Z'}"

static void what_kueue_says_is_understood(void **state)
{
    (void)state;
    static const struct {
        const char *conditions;
        bool reserved, admitted, evicted, finished;
        enum pods_ready ready;
        const char *reason, *message;
    } rows[] = {
        {"", false, false, false, false, READY_ABSENT, "", ""},
        {CONDITION("QuotaReserved", "False", "Pending", "no quota"), false, false, false, false,
         READY_ABSENT, "", "no quota"},
        {CONDITION("QuotaReserved", "True", "QuotaReserved", "yes"), true, false, false, false,
         READY_ABSENT, "", ""},
        {CONDITION("QuotaReserved", "True", "QuotaReserved", "yes") ", " CONDITION(
             "Admitted", "True", "Admitted", "yes") ", " CONDITION("PodsReady", "False",
                                                                   "WaitForStart", ""),
         true, true, false, false, READY_WAIT_FOR_START, "", ""},
        {CONDITION("QuotaReserved", "True", "QuotaReserved", "yes") ", " CONDITION(
             "Admitted", "True", "Admitted", "yes") ", " CONDITION("Evicted", "True", "Preempted",
                                                                   "make way"),
         true, true, true, false, READY_ABSENT, "Preempted", "make way"},
        {CONDITION("Evicted", "True", "Preempted", "make way") ", " CONDITION(
             "QuotaReserved", "False", "Pending", "no quota") ", " CONDITION("PodsReady", "True",
                                                                             "Recovered", ""),
         false, false, true, false, READY_RECOVERED, "Preempted", "no quota"},
        {CONDITION("Evicted", "False", "QuotaReserved", "was evicted") ", " CONDITION(
             "Finished", "True", "Succeeded", "") ", " CONDITION("PodsReady", "True", "Started",
                                                                 ""),
         false, false, false, true, READY_STARTED, "", ""},
        {CONDITION("PodsReady", "False", "WaitForRecovery", ""), false, false, false, false,
         READY_WAIT_FOR_RECOVERY, "", ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct reading r = reading_open();
        struct workload w = read_yaml(
            &r, arena_printf(r.arena, "spec: {}\nstatus: {conditions: [%s]}", rows[i].conditions));
        assert_int_equal(r.problems.count, 0);
        assert_int_equal(w.quota_reserved, rows[i].reserved);
        assert_int_equal(w.admitted, rows[i].admitted);
        assert_int_equal(w.evicted, rows[i].evicted);
        assert_int_equal(w.finished, rows[i].finished);
        assert_int_equal(w.pods_ready, rows[i].ready);
        assert_string_equal(w.eviction_reason, rows[i].reason);
        assert_string_equal(w.message, rows[i].message);
        arena_close(r.arena);
    }
}

static void an_admission_is_read(void **state)
{
    (void)state;
    struct reading r = reading_open();
    struct workload w = read_yaml(
        &r, "spec:\n"
            "  queueName: q\n"
            "  active: false\n"
            "  priority: -5\n"
            "  podSets:\n"
            "  - {name: master, count: 1, topologyRequest: {required: rack}}\n"
            "  - {name: worker, count: 4, minCount: 2, topologyRequest: {podIndexLabel: i}}\n"
            "status:\n"
            "  reclaimablePods: [{name: worker, count: 1}]\n"
            "  admission:\n"
            "    podSetAssignments:\n"
            "    - {name: worker, count: 3, flavors: {cpu: spot, memory: spot, gpu: h200},\n"
            "       topologyAssignment: {levels: [host]}}\n"
            "    - {name: master, topologyAssignment: {levels: [host]}}\n"
            "  admissionChecks:\n"
            "  - {name: a, podSetUpdates: [{name: worker, labels: {x: z}}, {name: master}]}\n"
            "  - {name: b, podSetUpdates: [{name: worker, nodeSelector: {k: v}}]}\n");
    const struct pod_set_assignment *master = &w.assigned[REPLICA_MASTER],
                                    *worker = &w.assigned[REPLICA_WORKER];
    assert_int_equal(r.problems.count, 0);
    assert_false(w.active);
    assert_int_equal(w.spec.priority.value, -5);
    assert_int_equal(w.spec.counts[REPLICA_MASTER], 1);
    assert_int_equal(w.spec.counts[REPLICA_WORKER], 4);
    assert_int_equal(w.spec.min_workers, 2);
    assert_int_equal(w.reclaimable[REPLICA_WORKER], 1);
    assert_true(worker->count.set && worker->count.value == 3 && !master->count.set);
    assert_string_equal(worker->flavors, "spot,h200");
    assert_string_equal(worker->updates, "[{\"name\":\"a\",\"labels\":{\"x\":\"z\"}},{\"name\":"
                                         "\"b\",\"nodeSelector\":{\"k\":\"v\"}}]");
    assert_true(worker->topology && worker->topology_implied);
    assert_true(master->topology && !master->topology_implied);
    assert_string_equal(master->flavors, "");
    arena_close(r.arena);
}

static void nonsense_is_no_admission(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "spec: 7\nstatus: 7",
        "status: {conditions: {Admitted: 'True'}}",
        "status: {conditions: [{type: Admitted, status: true}]}",
        "status: {conditions: [7, {type: 9}], admission: {podSetAssignments: [9]}}",
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct reading r = reading_open();
        struct workload w = read_yaml(&r, rows[i]);
        assert_true(r.problems.count > 0);
        assert_false(w.admitted);
        arena_close(r.arena);
    }
}

/* ---- what we write of a status ---- */

#define SEEN                                                                                       \
    "[{\"type\":\"Custom\",\"status\":\"True\",\"reason\":\"X\",\"message\":\"m\","                \
    "\"lastTransitionTime\":\"t0\",\"observedGeneration\":3},"                                     \
    "{\"type\":\"QuotaReserved\",\"status\":\"True\",\"reason\":\"R\",\"message\":\"m\","          \
    "\"lastTransitionTime\":\"t0\"},"                                                              \
    "{\"type\":\"Admitted\",\"status\":\"True\",\"reason\":\"A\",\"message\":\"m\","               \
    "\"lastTransitionTime\":\"t0\"}]"
#define KEPT                                                                                       \
    "{\"type\":\"Custom\",\"status\":\"True\",\"reason\":\"X\",\"message\":\"m\","                 \
    "\"lastTransitionTime\":\"t0\",\"observedGeneration\":3}"
#define META "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"status\":{"
#define NOW  "\"lastTransitionTime\":\"1970-01-01T00:00:09Z\""

static void a_status_keeps_what_others_wrote(void **state)
{
    (void)state;
    static const struct {
        struct workload_status status;
        const char *patch;
    } rows[] = {
        {{.conditions = SEEN,
          .releases = true,
          .requeues = true,
          .eviction_reason = "Preempted",
          .message = "make way",
          .reclaims = true},
         META "\"admission\":null,\"reclaimablePods\":[],\"conditions\":[" KEPT
              ",{\"type\":\"QuotaReserved\",\"status\":\"False\",\"reason\":\"Pending\","
              "\"message\":\"make way\"," NOW "},{\"type\":\"Admitted\",\"status\":\"False\","
              "\"reason\":\"NoReservation\",\"message\":\"The workload has no reservation\"," NOW
              "},{\"type\":\"Requeued\",\"status\":\"True\",\"reason\":\"Preempted\",\"message\":"
              "\"make way\"," NOW "}]}}"},
        {{.conditions = "",
          .pods_ready = READY_STARTED,
          .reclaims = true,
          .reclaimable = {0, 2},
          .finished_reason = "Failed",
          .finished_message = "limit"},
         META "\"reclaimablePods\":[{\"name\":\"worker\",\"count\":2}],\"conditions\":["
              "{\"type\":\"PodsReady\",\"status\":\"True\",\"reason\":\"Started\",\"message\":"
              "\"All pods run or have succeeded\"," NOW "},{\"type\":\"Finished\",\"status\":"
              "\"True\",\"reason\":\"Failed\",\"message\":\"limit\"," NOW "}]}}"},
        /* the time is that of the last change of the status alone */
        {{.conditions = "[{\"type\":\"PodsReady\",\"status\":\"True\",\"reason\":\"Started\","
                        "\"message\":\"m\",\"lastTransitionTime\":\"t0\"}]",
          .pods_ready = READY_RECOVERED},
         META "\"conditions\":[{\"type\":\"PodsReady\",\"status\":\"True\",\"reason\":"
              "\"Recovered\",\"message\":\"All pods run again or have succeeded\","
              "\"lastTransitionTime\":\"t0\"}]}}"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct json *patch = manifest_workload_status(&rows[i].status, "u", "7", "v1beta2", 9000);
        struct json *expected = json_parse_text(rows[i].patch, JSON_STRICT, NULL);
        auto_free char *text = json_print(patch, JSON_COMPACT);
        if (!json_is_equal(patch, expected))
            fail_msg("%zu: %s", i, text);
        json_free(patch);
        json_free(expected);
    }
}

#define ADMITTED(status, time)                                                                     \
    "[{\"type\":\"Admitted\",\"status\":\"" status "\",\"lastTransitionTime\":\"" time "\"}]"

#define PREEMPTED "Preempted"
#define OVER      "DeactivatedDueToMaximumExecutionTimeExceeded"
#define NONE_LEFT (-1) /* what there is is taken away */

static void execution_time_is_added_up(void **state)
{
    (void)state;
    static const struct {
        int32_t before_s;
        const char *conditions;
        bool releases;
        int64_t sum_s; /* 0: not written */
        const char *reason;
    } rows[] = {
        {0, ADMITTED("True", "1970-01-01T00:00:02Z"), true, 7, PREEMPTED},
        {30, ADMITTED("True", "1970-01-01T00:00:02Z"), true, 37, PREEMPTED},
        {INT32_MAX, ADMITTED("True", "1970-01-01T00:00:02Z"), true, INT32_MAX, PREEMPTED},
        {30, ADMITTED("True", "1970-01-01T00:00:02Z"), false, 0, PREEMPTED}, /* it goes on */
        {30, ADMITTED("False", "1970-01-01T00:00:02Z"), true, 0, PREEMPTED},
        {30, ADMITTED("True", "1970-01-01T00:00:11Z"), true, 0, PREEMPTED}, /* another clock */
        {30, ADMITTED("True", "soon"), true, 0, PREEMPTED},
        {30, "", true, 0, PREEMPTED},
        {30, ADMITTED("True", "1970-01-01T00:00:02Z"), true, NONE_LEFT, OVER},
        {30, ADMITTED("True", "soon"), true, NONE_LEFT, OVER},
        {30, ADMITTED("True", "1970-01-01T00:00:02Z"), false, 0, OVER},
        {30, ADMITTED("True", "1970-01-01T00:00:02Z"), true, 37,
         "DeactivatedDueToRequeuingLimitExceeded"},
    };
    static const char *const fields[] = {"accumulatedPastExecutionTimeSeconds",
                                         "accumulatedPastExexcutionTimeSeconds"};
    for (size_t i = 0; i < 2 * array_length(rows); i++) {
        const struct workload_status status = {.conditions = rows[i / 2].conditions,
                                               .past_execution_s = rows[i / 2].before_s,
                                               .releases = rows[i / 2].releases,
                                               .eviction_reason = rows[i / 2].reason,
                                               .message = "",
                                               .pods_ready = READY_WAIT_FOR_START};
        struct json *patch = manifest_workload_status(&status, "u", "7", versions[i % 2], 9000);
        const struct json *body = json_get(patch, "status"), *sum = json_get(body, fields[i % 2]);
        int64_t seconds = sum && !json_is_null(sum) ? json_as_integer(sum) : 0;
        assert_int_equal(json_is_null(sum) ? NONE_LEFT : seconds, rows[i / 2].sum_s);
        assert_null(json_get(body, fields[1 - i % 2]));
        struct reading r = reading_open();
        struct workload w = decode_workload(patch, &r.identity, r.arena, &r.problems);
        assert_int_equal(w.past_execution_s, seconds);
        arena_close(r.arena);
        json_free(patch);
    }
}

static void priority_is_said_in_both_versions(void **state)
{
    (void)state;
    static const struct {
        struct workload_priority priority;
        const char *texts[2];
    } rows[] = {
        {{PRIORITY_NONE, "", 3},
         {"{\"queueName\":\"q\",\"priority\":3,\"priorityClassRef\":null}",
          "{\"queueName\":\"q\",\"priority\":3,\"priorityClassName\":null,"
          "\"priorityClassSource\":null}"}},
        {{PRIORITY_POD_CLASS, "p", 3},
         {"{\"queueName\":\"q\",\"priority\":3,\"priorityClassRef\":{\"group\":"
          "\"scheduling.k8s.io\",\"kind\":\"PriorityClass\",\"name\":\"p\"}}",
          "{\"queueName\":\"q\",\"priority\":3,\"priorityClassName\":\"p\","
          "\"priorityClassSource\":\"scheduling.k8s.io/priorityclass\"}"}},
    };
    for (size_t i = 0; i < 2 * array_length(rows); i++) {
        const struct workload_spec spec = {.queue = "q", .priority = rows[i / 2].priority};
        struct json *patch = manifest_workload_update(&spec, "u", "7", versions[i % 2]);
        auto_free char *text = json_print(json_get(patch, "spec"), JSON_COMPACT);
        assert_string_equal(text, rows[i / 2].texts[i % 2]);
        json_free(patch);
    }
}

/* ---- topology ---- */

static void a_template_asks_for_a_topology(void **state)
{
    (void)state;
    static const struct {
        const char *annotations, *request;
    } rows[] = {
        {"", "{\"podIndexLabel\":\"training.kubeflow.org/replica-index\"}"},
        {"kueue.x-k8s.io/podset-required-topology: rack",
         "{\"required\":\"rack\",\"podIndexLabel\":\"training.kubeflow.org/replica-index\"}"},
        {"kueue.x-k8s.io/podset-unconstrained-topology: 'true'",
         "{\"unconstrained\":true,\"podIndexLabel\":\"training.kubeflow.org/replica-index\"}"},
        {"kueue.x-k8s.io/podset-preferred-topology: block, "
         "kueue.x-k8s.io/podset-slice-required-topology: rack, "
         "kueue.x-k8s.io/podset-slice-size: '2'",
         "{\"preferred\":\"block\",\"podSetSliceRequiredTopology\":\"rack\",\"podSetSliceSize\":2,"
         "\"podIndexLabel\":\"training.kubeflow.org/replica-index\"}"},
        {"kueue.x-k8s.io/podset-slice-size: many",
         "{\"podSetSliceSize\":\"many\",\"podIndexLabel\":\"training.kubeflow.org/"
         "replica-index\"}"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *text = xasprintf(
            "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j, uid: u, labels: "
            "{kueue.x-k8s.io/queue-name: q}}\nspec: {pytorchReplicaSpecs: {Worker: {template: "
            "{metadata: {name: n, annotations: {%s}}, spec: {containers: [{name: pytorch, image: "
            "i}]}}}}}",
            rows[i].annotations);
        struct manifest *manifest;
        struct error err;
        assert_ok(decode_manifest(text, strlen(text), "test", 6, &manifest, &err), &err);
        const struct workload_spec spec = {
            .queue = "q", .pods_hash = "h", .counts = {0, 1}, .priority = {.class_name = ""}};
        for (size_t v = 0; v < array_length(versions); v++) {
            struct json *object = manifest_workload(manifest->jobs[0], "w", &spec, versions[v]);
            const struct json *set = json_at(json_get(json_get(object, "spec"), "podSets"), 0);
            const struct json *request = json_get(set, "topologyRequest");
            auto_free char *said = request ? json_print(request, JSON_COMPACT) : xstrdup("none");
            bool is_left_out = !*rows[i].annotations && strcmp(versions[v], "v1beta1") == 0;
            assert_string_equal(said, is_left_out ? "none" : rows[i].request);
            assert_null(json_get(json_get(json_get(set, "template"), "metadata"), "name"));
            json_free(object);
        }
        decode_close(manifest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workloads_are_read_back),
        cmocka_unit_test(what_kueue_says_is_understood),
        cmocka_unit_test(an_admission_is_read),
        cmocka_unit_test(nonsense_is_no_admission),
        cmocka_unit_test(a_status_keeps_what_others_wrote),
        cmocka_unit_test(execution_time_is_added_up),
        cmocka_unit_test(priority_is_said_in_both_versions),
        cmocka_unit_test(a_template_asks_for_a_topology),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
