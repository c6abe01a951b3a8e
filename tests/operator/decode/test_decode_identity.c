/* Names, owners and replicas of pods and services as an API server sends them. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/decode/decode_fixture.h"

static void who_it_is_and_whose(void **state)
{
    (void)state;
    static const struct {
        const char *metadata;
        const char *expected; /* namespace/name uid version owner job, or the error */
    } rows[] = {
        {"{" KNOWN "}", "ns/j-worker-3 u 7  "},
        {"{" KNOWN ", labels: {training.kubeflow.org/job-name: j, job-name: k}}",
         "ns/j-worker-3 u 7  j"},
        /* the controller is whose it is, whatever the label says */
        {"{" KNOWN ", labels: {training.kubeflow.org/job-name: j}, ownerReferences: [{uid: x}, "
         "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: k, uid: o, controller: true}]}",
         "ns/j-worker-3 u 7 o k"},
        {"{" KNOWN ", labels: {training.kubeflow.org/job-name: j}, ownerReferences: [{apiVersion: "
         "apps/v1, kind: ReplicaSet, name: k, uid: o, controller: true}]}",
         "ns/j-worker-3 u 7 o j"},
        {"{" KNOWN ", ownerReferences: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: k, "
         "uid: o, controller: false}, {kind: PyTorchJob, controller: true}]}",
         "ns/j-worker-3 u 7  "},
        {"{name: p, uid: u}", "metadata.namespace: Required value: must be text"},
        {"{name: 1, namespace: ns}", "metadata.name: Required value: must be text"},
        {"{name: p, namespace: ns, uid: ''}", "metadata.uid: Required value: must be text"},
        {"{name: p, namespace: ns, uid: u}",
         "metadata.resourceVersion: Required value: must be text"},
        {"[]", "metadata.name: Required value: must be text"},
        {"null", "metadata.name: Required value: must be text"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct reading reading;
        auto_free char *text = xasprintf("{metadata: %s}", rows[i].metadata);
        open_reading(&reading, text);
        const struct identity *id = &reading.identity;
        const char *got =
            reading.result
                ? reading.err.msg
                : arena_printf(reading.arena, "%s/%s %s %s %s %s", id->namespace_, id->name,
                               id->uid, id->resource_version, id->owner_uid, id->job_name);
        assert_string_equal(got, rows[i].expected);
        close_reading(&reading);
    }
}

static void labels_say_which_replica(void **state)
{
    (void)state;
    static const struct {
        const char *labels; /* those of training.kubeflow.org, and the attempt */
        enum replica_type type;
        int32_t index, attempt;
    } rows[] = {
        {"{training.kubeflow.org/replica-type: master, training.kubeflow.org/replica-index: '0'}",
         REPLICA_MASTER, 0, 0},
        {"{training.kubeflow.org/replica-type: worker, training.kubeflow.org/replica-index: '12', "
         "shoal.dev/restart-attempt: '3'}",
         REPLICA_WORKER, 12, 3},
        {"{training.kubeflow.org/replica-type: worker, training.kubeflow.org/replica-index: x, "
         "shoal.dev/restart-attempt: z}",
         REPLICA_WORKER, -1, 0},
        {"{training.kubeflow.org/replica-type: launcher, training.kubeflow.org/replica-index: '0'}",
         REPLICA_WORKER, -1, 0},
        {"{}", REPLICA_WORKER, -1, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct reading reading;
        auto_free char *text = xasprintf("{metadata: {" KNOWN ", labels: %s}}", rows[i].labels);
        open_reading(&reading, text);
        struct pod pod =
            decode_pod(reading.object, &reading.identity, reading.arena, &reading.problems);
        struct service service = decode_service(&reading.identity);
        assert_int_equal(pod.type, rows[i].type);
        assert_int_equal(pod.index, rows[i].index);
        assert_int_equal(pod.attempt, rows[i].attempt);
        assert_int_equal(service.type, rows[i].type);
        assert_int_equal(service.index, rows[i].index);
        assert_string_equal(service.name, "j-worker-3");
        assert_string_equal(service.uid, "u");
        assert_false(service.deleting);
        assert_int_equal(reading.problems.count, 0);
        close_reading(&reading);
    }
}

static void a_service_is_being_deleted(void **state)
{
    (void)state;
    struct reading reading;
    open_reading(&reading, "{metadata: {" KNOWN ", deletionTimestamp: '1970-01-01T12:00:00Z'}}");
    struct service service = decode_service(&reading.identity);
    assert_true(service.deleting);
    close_reading(&reading);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_it_is_and_whose),
        cmocka_unit_test(labels_say_which_replica),
        cmocka_unit_test(a_service_is_being_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
