/* Jobs in the caches, and what cannot be read. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/operator/cache/cache_fixture.h"

#include <string.h>

/* ---- jobs ---- */

static void a_job_that_is_taken_stays(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 2);
    struct cached_job *old = cache_acquire_job(f->cache, "ns/j");
    assert_ptr_equal(cache_acquire_job(f->cache, "ns/j"), old);
    put_job(f, "j", "o", 2, 5);
    struct cached_job *new = cache_acquire_job(f->cache, "ns/j");
    assert_int_equal(old->job->replicas[REPLICA_WORKER].replicas.value, 2);
    assert_int_equal(new->job->replicas[REPLICA_WORKER].replicas.value, 5);
    cache_release_job(old);
    feed_gone(f, CACHE_JOBS, object_job("j", "o", 3, 5));
    assert_null(cache_acquire_job(f->cache, "ns/j"));
    assert_string_equal(old->job->name, "j");
    auto_arena struct arena *arena = arena_open();
    assert_string_equal(world_text(f, new, arena), "");
    cache_release_job(old);
    cache_release_job(new);
    cache_release_job(NULL);
}

static void a_job_is_decoded_whole(void **state)
{
    struct fixture *f = *state;
    feed_put(f, CACHE_JOBS,
             object_from(
                 "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, namespace: "
                 "ns, uid: o, resourceVersion: '8', managedFields: [{manager: m}], annotations: "
                 "{a: b, kubectl.kubernetes.io/last-applied-configuration: '{}'}}, spec: "
                 "{pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {nodeName: node-1, "
                 "containers: [{name: pytorch, image: i}]}}}}}, status: {history: {failures: 3}, "
                 "startTime: '1970-01-01T00:00:05Z'}}"));
    struct cached_job *job = cache_acquire_job(f->cache, "ns/j");
    assert_null(job->job->invalid);
    assert_int_equal(job->job->run_policy.backoff_limit.value, 6);
    assert_int_equal(job->status->history.failures, 3);
    assert_int_equal(job->status->start_ms, 5000);
    struct json *expected = object_from("{name: j, namespace: ns, uid: o, resourceVersion: '8', "
                                        "annotations: {a: b}}");
    assert_true(json_is_equal(json_get(job->object, "metadata"), expected));
    json_free(expected);
    struct json *raw = (struct json *)job->job->replicas[REPLICA_MASTER].template_.raw;
    assert_string_equal(json_as_text(json_get(json_get(raw, "spec"), "nodeName")), "node-1");
    cache_release_job(job);
}

/* A job of 100 KB of environment, a third of it that of an init container. */
static struct json *large_job(int version, const char *run_policy, const char *conditions)
{
    enum { BYTES = 33 * 1000 };
    static char text[BYTES + 1];
    memset(text, 'x', BYTES);
    return object_from(
        "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, namespace: ns, uid: "
        "o, resourceVersion: '%d'}, spec: {runPolicy: {%s}, pytorchReplicaSpecs: {Worker: "
        "{replicas: 2, template: {metadata: {labels: {a: b}}, spec: {terminationGracePeriodSeconds: 7, "
        "containers: [{name: pytorch, image: i, ports: [{name: p, containerPort: 1}], resources: "
        "{requests: {cpu: 2}}, env: [{name: A, value: %s}], args: [%s]}], initContainers: [{name: init, "
        "image: k, env: [{name: B, value: %s}]}]}}}}}, status: {conditions: [%s]}}",
        version, run_policy, text, text, text, conditions);
}

/* What only pods need is kept for jobs that may make some. */
static void a_large_job_is_kept_as_far_as_it_is_needed(void **state)
{
    static const struct {
        const char *run_policy, *conditions;
        bool whole;
    } rows[] = {
        {"", "", true},
        {"", "{type: Running, status: 'True'}", true},
        {"", "{type: Restarting, status: 'True'}", true},
        {"suspend: true", "", false},
        {"suspend: true", "{type: Suspended, status: 'True'}", false},
        {"", "{type: Suspended, status: 'True'}", true}, /* it goes on now */
        {"", "{type: Succeeded, status: 'True'}", false},
        {"", "{type: Failed, status: 'True'}", false},
        {"", "{type: Failed, status: 'False'}", true},
        {"managedBy: kueue.x-k8s.io/multikueue", "", false},
        {"managedBy: kubeflow.org/training-operator", "", true}, /* that is us */
        {"suspend: true, backoffLimit: -2", "", true},           /* it is wrong */
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < array_length(rows); i++) {
        feed_put(f, CACHE_JOBS, large_job((int)i + 1, rows[i].run_policy, rows[i].conditions));
        struct cached_job *job = cache_acquire_job(f->cache, "ns/j");
        auto_free char *text = json_print(job->object, JSON_COMPACT);
        if ((strlen(text) > 99000) != rows[i].whole)
            fail_msg("row %zu: %zu bytes are kept", i, strlen(text));
        assert_true(job->bytes > 99000); /* what it was */
        const struct pod_template *template_ = &job->job->replicas[REPLICA_WORKER].template_;
        assert_int_equal(job->job->replicas[REPLICA_WORKER].replicas.value, 2);
        assert_int_equal(template_->container_count + template_->init_container_count, 2);
        assert_string_equal(template_->containers[0].image, "i");
        assert_int_equal(template_->containers[0].requests.count, 1);
        assert_int_equal(template_->containers[0].env_count, rows[i].whole);
        assert_int_equal(template_->grace_period_s.value, 7);
        cache_release_job(job);
    }
}

static void put_in_state(struct fixture *f, int version, const char *conditions)
{
    auto_free char *text = xasprintf(
        "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, namespace: ns, uid: "
        "o, resourceVersion: '%d'}, spec: {}, status: {conditions: [%s]}}",
        version, conditions);
    feed_put(f, CACHE_JOBS, object_from(text));
}

static void jobs_are_counted_by_their_state(void **state)
{
    static const struct {
        const char *conditions;
        enum condition_type state;
    } rows[] = {
        {"", CONDITION_CREATED},
        {"{type: Created, status: 'True'}", CONDITION_CREATED},
        {"{type: Created, status: 'True'}, {type: Running, status: 'True'}", CONDITION_RUNNING},
        {"{type: Running, status: 'False'}, {type: Failed, status: 'True'}", CONDITION_FAILED},
    };
    struct fixture *f = *state;
    put_job(f, "other", "p", 1, 2);
    for (size_t i = 0; i < array_length(rows); i++) {
        put_in_state(f, (int)i + 1, rows[i].conditions);
        for (enum condition_type s = 0; s < CONDITION_TYPES; s++)
            assert_int_equal(cache_jobs_in_state(f->cache, s),
                             (s == rows[i].state) + (s == CONDITION_CREATED));
    }
    feed_gone(f, CACHE_JOBS, object_job("j", "o", 9, 1));
    assert_int_equal(cache_jobs_in_state(f->cache, CONDITION_FAILED), 0);
}

static void a_wrong_spec_is_a_job_that_says_so(void **state)
{
    struct fixture *f = *state;
    feed_put(f, CACHE_JOBS,
             object_from("{metadata: {name: j, namespace: ns, uid: o, resourceVersion: "
                         "'1'}, spec: none}"));
    put_pod(f, "j-worker-0", "p", "o", 2, "Pending");
    assert_told(f->warn, "");
    struct cached_job *job = cache_acquire_job(f->cache, "ns/j");
    assert_non_null(strstr(job->job->invalid, "spec: must be a mapping"));
    cache_release_job(job);
    assert_world(f, "ns/j", "j-worker-0:p:Pending");
}

/* ---- what cannot be read ---- */

static void the_unreadable_is_told_and_disturbs_nobody(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "j-worker-0", "p", "o", 2, "Pending");
    str_clear(&f->changed);
    feed_put(f, CACHE_PODS, object_from("{metadata: {namespace: ns, uid: u}}"));
    assert_told(f->warn, "pod ns/: metadata.name: Required value: must be text\n");
    feed_put(f, CACHE_SERVICES, object_from("{metadata: []}"));
    assert_told(f->warn, "service /: metadata.name: Required value: must be text\n");
    feed_gone(f, CACHE_JOBS, object_from("{metadata: {name: x, namespace: ns}}"));
    assert_told(f->warn, "PyTorchJob ns/x: metadata.uid: Required value: must be text\n");
    assert_told(f->changed, "");
    assert_world(f, "ns/j", "j-worker-0:p:Pending");
}

static void a_known_one_that_became_unreadable_is_forgotten(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "j-worker-0", "p", "o", 2, "Pending");
    str_clear(&f->changed);
    feed_put(f, CACHE_PODS, object_from("{metadata: {name: j-worker-0, namespace: ns, uid: p}}"));
    assert_told(f->changed, " j");
    assert_told(f->warn, "pod ns/j-worker-0: metadata.resourceVersion: Required value: must be "
                         "text\n");
    assert_world(f, "ns/j", "");
    feed_put(f, CACHE_JOBS,
             object_from("{metadata: {name: j, namespace: ns, resourceVersion: '3'}}"));
    assert_told(f->changed, " j");
    assert_null(cache_acquire_job(f->cache, "ns/j"));
    put_job(f, "j", "o", 4, 1);
    assert_world(f, "ns/j", "");
}

static void a_spoilt_pod_keeps_its_place(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "j-worker-0", "p", "o", 2, "Running");
    put_pod(f, "j-worker-0", "p", "o", 3, "Dancing");
    assert_told(f->warn, "pod ns/j-worker-0: status.phase: Unsupported value: \"Dancing\": "
                         "supported values: \"Pending\", \"Running\", \"Succeeded\", \"Failed\", "
                         "\"Unknown\"\n");
    assert_world(f, "ns/j", "j-worker-0:p:Unknown");
    put_pod(f, "j-worker-0", "p", "o", 3, "Dancing");
    assert_told(f->warn, ""); /* told once a version */
}

#define ENTRY(manager, second, fields)                                                             \
    "{manager: " manager ", subresource: status, time: '2026-01-01T00:00:" second                  \
    "Z', fieldsV1: {'f:status': {" fields "}}}"
#define OURS(second)   ENTRY("shoal-operator", second, "'f:conditions': {}")
#define THEIRS(second) ENTRY("manager", second, "'f:replicaStatuses': {'.': {}}")
#define MERGED         ENTRY("ancient-changes", "01", "'f:replicaStatuses': {'.': {}}")
#define FORGED_BY(manager)                                                                         \
    "{manager: " manager                                                                           \
    ", operation: Update, time: '2099-01-01T00:00:00Z', fieldsV1: {'f:status': "                   \
    "{'f:replicaStatuses': {'f:Zed': {}}}}}"
#define FORGED      FORGED_BY("evil")
#define FORGED_OURS FORGED_BY("shoal-operator")

/* A job whose status has so many active workers; entries of managedFields, NULL: as the reader of a
 * list leaves them (json_lenient.h). */
static struct json *written_job(int version, int active, const char *run_policy,
                                const char *entries)
{
    auto_free char *fields = entries ? xasprintf("[%s]", entries) : NULL;
    return object_from(
        "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, namespace: ns, uid: "
        "o, resourceVersion: '%d', managedFields: %s}, spec: {runPolicy: {%s}, "
        "pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: "
        "pytorch, image: i}]}}}}}, status: {conditions: [], replicaStatuses: {Worker: {active: "
        "%d}}}}",
        version, fields ? fields : "null", run_policy, active);
}

static void what_another_operator_writes_is_told(void **state)
{
    struct fixture *f = *state;
    feed_put(f, CACHE_JOBS, written_job(1, 1, "", NULL)); /* of a list */
    assert_told(f->wrote, "");
    /* a person's edit */
    feed_put(f, CACHE_JOBS, written_job(2, 1, "backoffLimit: 3", OURS("01") ", " THEIRS("02")));
    assert_told(f->wrote, "");
    feed_put(f, CACHE_JOBS, written_job(3, 2, "", OURS("01") ", " THEIRS("03")));
    assert_told(f->wrote, " ns/j:manager");
    feed_put(f, CACHE_JOBS, written_job(3, 2, "", OURS("01") ", " THEIRS("03")));
    assert_told(f->wrote, ""); /* the same version again */
    feed_put(
        f, CACHE_JOBS,
        written_job(4, 1, "managedBy: kueue.x-k8s.io/multikueue", OURS("01") ", " THEIRS("04")));
    assert_told(f->wrote, ""); /* it is meant to */
}

/* Whoever may update a job may forge an entry. The API server keeps it beside our writes. */
static void a_forged_entry_tells_nothing(void **state)
{
    struct fixture *f = *state;
    feed_put(f, CACHE_JOBS, written_job(1, 1, "", NULL));
    feed_put(f, CACHE_JOBS, written_job(2, 1, "", OURS("01") ", " FORGED));
    feed_put(f, CACHE_JOBS, written_job(3, 2, "", OURS("02") ", " FORGED)); /* our write */
    feed_put(f, CACHE_JOBS, written_job(4, 2, "suspend: true", FORGED));    /* ours taken away */
    feed_put(f, CACHE_JOBS, written_job(5, 0, "suspend: true", FORGED ", " OURS("03")));
    assert_told(f->wrote, "");
    /* after a list: what was known before is not */
    feed_put(f, CACHE_JOBS, written_job(6, 0, "", NULL));
    feed_put(f, CACHE_JOBS, written_job(7, 1, "", OURS("04") ", " FORGED));
    assert_told(f->wrote, "");
    /* it does not hide whose write this is */
    feed_put(f, CACHE_JOBS, written_job(8, 2, "", OURS("04") ", " FORGED ", " THEIRS("05")));
    assert_told(f->wrote, " ns/j:manager");
}

/* With ten newer ones beside it, the API server merges ours away while we write. */
static void forged_entries_that_push_ours_out_tell_nothing(void **state)
{
    struct fixture *f = *state;
    feed_put(f, CACHE_JOBS, written_job(1, 1, "", NULL)); /* of a list: no entry is known */
    feed_put(f, CACHE_JOBS, written_job(2, 2, "", MERGED ", " FORGED));
    feed_put(f, CACHE_JOBS, written_job(3, 1, "", MERGED ", " FORGED));
    assert_told(f->wrote, "");
    /* nor does one in our name hide whose write this is */
    feed_put(f, CACHE_JOBS, written_job(4, 1, "suspend: true", FORGED_OURS));
    feed_put(f, CACHE_JOBS, written_job(5, 2, "suspend: true", FORGED_OURS ", " THEIRS("05")));
    assert_told(f->wrote, " ns/j:manager");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_job_that_is_taken_stays),
        test(a_job_is_decoded_whole),
        test(a_large_job_is_kept_as_far_as_it_is_needed),
        test(jobs_are_counted_by_their_state),
        test(a_wrong_spec_is_a_job_that_says_so),
        test(the_unreadable_is_told_and_disturbs_nobody),
        test(a_known_one_that_became_unreadable_is_forgotten),
        test(a_spoilt_pod_keeps_its_place),
        test(what_another_operator_writes_is_told),
        test(a_forged_entry_tells_nothing),
        test(forged_entries_that_push_ours_out_tell_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
