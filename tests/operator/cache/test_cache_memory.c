/* What the caches cost: 1,000 jobs of 8 pods and 8 services each, as an API server sends them (with
 * managedFields, volumes, conditions, all), counted in bytes of the allocator. A bound, and that
 * what is gone costs nothing. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/cache/cache.h"
#include "tests/operator/cache/objects.h"
#include "tests/operator/counted_malloc.h"

#include <stdlib.h>
#include <string.h>

#define JOBS      1000
#define PODS      8
#define MAX_BYTES (10 << 20)

static void ignore_news(void *context, const char *key, bool finished)
{
    (void)context, (void)key, (void)finished;
}

static void ignore(void *context, const char *text)
{
    (void)context, (void)text;
}

static struct cache *open_cache(void)
{
    return cache_open(&(struct cache_options){
        .default_backoff_limit = 6, .changed = ignore_news, .warn = ignore});
}

/* ---- objects as an API server sends them ---- */

#define MANAGED                                                                                    \
    "managedFields: [{manager: kubelet, operation: Update, apiVersion: v1, time: "                 \
    "'2026-01-01T00:00:00Z', fieldsType: FieldsV1, fieldsV1: {'f:status': {'f:conditions': "       \
    "{'k:{\"type\":\"Ready\"}': {'.': {}, 'f:status': {}, 'f:type': {}}}}}}]"
#define UID "7c9e6679-7425-40de-944b-e07fc1f9%04d"
#define OWNED                                                                                        \
    "ownerReferences: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: training-job-%d, uid: " \
    "" UID ", controller: true, blockOwnerDeletion: true}]"
#define LABELS                                                                                        \
    "labels: {training.kubeflow.org/job-name: training-job-%d, training.kubeflow.org/operator-name: " \
    "pytorchjob-controller, training.kubeflow.org/replica-type: worker, "                             \
    "training.kubeflow.org/replica-index: '%d'}"

static struct json *make_job(int job)
{
    return object_from(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"
        "metadata: {name: training-job-%d, namespace: team-a, uid: " UID ", resourceVersion: '%d', "
        "creationTimestamp: '2026-01-01T00:00:00Z', " MANAGED "}\n"
        "spec:\n  runPolicy: {backoffLimit: 3, cleanPodPolicy: None}\n  pytorchReplicaSpecs:\n"
        "    Worker:\n      replicas: 8\n      restartPolicy: OnFailure\n      template: "
        "{metadata: {labels: {app: trainer, team: a}, annotations: {sidecar.istio.io/inject: 'false'}}, "
        "spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}, {name: shm, emptyDir: "
        "{medium: Memory}}], tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}], "
        "containers: [{name: pytorch, image: registry.example.com/team/trainer:1.2.3, command: [python, "
        "-m, train], args: [--epochs, '3', --batch-size, '64'], env: [{name: A, value: b}, {name: C, "
        "value: d}], volumeMounts: [{name: data, mountPath: /data}, {name: shm, mountPath: /dev/shm}], "
        "resources: {limits: {cpu: '8', memory: 64Gi, nvidia.com/gpu: '1'}}}]}}\n"
        "status:\n  conditions: [{type: Created, status: 'True', reason: PyTorchJobCreated, message: "
        "PyTorchJob training-job is created., lastUpdateTime: '2026-01-01T00:00:00Z'}, {type: Running, "
        "status: 'True', reason: PyTorchJobRunning, message: PyTorchJob training-job is running.}]\n"
        "  replicaStatuses: {Worker: {active: 8}}\n  startTime: '2026-01-01T00:00:00Z'\n",
        job, job, job);
}

static struct json *make_pod(int job, int pod, int version)
{
    return object_from(
        "metadata: {name: training-job-%d-worker-%d, namespace: team-a, uid: " UID
        ", resourceVersion: '%d', creationTimestamp: '2026-01-01T00:00:00Z', " LABELS ", " OWNED
        ", " MANAGED "}\nspec: {nodeName: node-%d, containers: [{name: pytorch, image: "
        "registry.example.com/team/trainer:1.2.3, env: [{name: RANK, value: '%d'}]}]}\n"
        "status: {phase: Running, podIP: 10.0.0.1, conditions: [{type: Initialized, status: 'True'}, {type: "
        "Ready, status: 'True'}, {type: ContainersReady, status: 'True'}, {type: PodScheduled, status: "
        "'True'}], containerStatuses: [{name: pytorch, restartCount: 0, ready: true, image: i, state: "
        "{running: {startedAt: '2026-01-01T00:00:00Z'}}}]}\n",
        job, pod, pod, version, job, pod, job, job, job, pod);
}

/* With what makes a Node large, of which nothing is kept: each image of some 20 that it has. */
static struct json *make_node(int index)
{
    return object_from(
        "metadata: {name: ip-10-0-0-%d.eu-central-1.compute.internal, uid: " UID
        ", resourceVersion: '%d', labels: {kubernetes.io/hostname: node-%d, "
        "node.kubernetes.io/instance-type: p5.48xlarge}, " MANAGED "}\n"
        "spec: {podCIDR: 10.0.0.0/24, providerID: 'aws:///eu-central-1a/i-0123456789', taints: [{key: "
        "nvidia.com/gpu, value: present, effect: NoSchedule}]}\n"
        "status: {capacity: {cpu: '192', memory: 2Ti, pods: '110', nvidia.com/gpu: '8', "
        "vpc.amazonaws.com/efa: '32'}, conditions: [{type: Ready, status: 'True', reason: "
        "KubeletReady, message: kubelet is posting ready status}, {type: DiskPressure, status: "
        "'False'}, {type: GpuMemWatch, status: 'False', message: No Health Failures}], images: "
        "[{names: [registry.example.com/team/trainer@sha256:0123456789abcdef, "
        "registry.example.com/team/trainer:1.2.3], sizeBytes: 9876543210}], nodeInfo: "
        "{kernelVersion: 6.1.0, osImage: Debian GNU/Linux 12}}\n",
        index, index, index, index);
}

static struct json *make_service(int job, int index)
{
    return object_from(
        "metadata: {name: training-job-%d-worker-%d, namespace: team-a, uid: " UID
        ", resourceVersion: '%d', " LABELS ", " OWNED ", " MANAGED
        "}\nspec: {clusterIP: None, ports: [{name: pytorchjob-port, port: 23456}]}\n",
        job, index, index, job, job, index, job, job);
}

/* ---- the cache ---- */

static void feed(struct cache *cache, enum cache_kind kind, struct json *object)
{
    cache_put(cache, kind, object);
    json_free(object);
}

static void feed_all(struct cache *cache)
{
    for (int job = 0; job < JOBS; job++) {
        feed(cache, CACHE_JOBS, make_job(job));
        for (int i = 0; i < PODS; i++) {
            feed(cache, CACHE_PODS, make_pod(job, i, 1));
            feed(cache, CACHE_SERVICES, make_service(job, i));
        }
    }
}

static void drop_all(struct cache *cache)
{
    for (int kind = CACHE_JOBS; kind <= CACHE_SERVICES; kind++) {
        cache_begin_list(cache, (enum cache_kind)kind);
        cache_end_list(cache, (enum cache_kind)kind);
        assert_int_equal(cache_count(cache, (enum cache_kind)kind), 0);
    }
}

/* A pass over a job looks at it and lets go of it. */
static void look_at_all(struct cache *cache)
{
    for (int job = 0; job < JOBS; job++) {
        auto_arena struct arena *arena = arena_open();
        const char *key = arena_printf(arena, "team-a/training-job-%d", job);
        struct cached_job *taken = cache_acquire_job(cache, key);
        struct snapshot snapshot;
        assert_non_null(taken);
        cache_snapshot(cache, taken, 0, arena, &snapshot);
        assert_int_equal(snapshot.pod_count, PODS);
        assert_int_equal(snapshot.service_count, PODS);
        cache_release_job(taken);
    }
}

/* Returns the most bytes that were in use. */
static size_t fill_and_empty(void)
{
    struct cache *cache = open_cache();
    feed_all(cache);
    look_at_all(cache);
    size_t bytes = bytes_in_use;
    drop_all(cache);
    cache_close(cache);
    return bytes;
}

static void a_thousand_jobs_fit(void **state)
{
    (void)state;
    fill_and_empty(); /* the C library keeps what it makes once, such as time zones */
    size_t empty = bytes_in_use, full = fill_and_empty();
    assert_int_equal(bytes_in_use, empty);
    assert_true(!COUNTS || full - empty > JOBS * PODS * sizeof(struct pod)); /* it does count */
    assert_true(full - empty < MAX_BYTES);
    print_message("# %d jobs, %d pods: %zu KiB\n", JOBS, JOBS * PODS, (full - empty) >> 10);
}

/* However often a pod changes, it is kept once. */
static void news_cost_nothing(void **state)
{
    (void)state;
    struct cache *cache = open_cache();
    feed(cache, CACHE_JOBS, make_job(0));
    feed(cache, CACHE_PODS, make_pod(0, 0, 1));
    size_t before = bytes_in_use;
    for (int version = 2; version < 10; version++)
        feed(cache, CACHE_PODS, make_pod(0, 0, version));
    assert_int_equal(bytes_in_use, before);
    cache_close(cache);
}

/* Each of a megabyte, suspended or finished: what they cost is not by that. */
static void large_jobs_at_rest_cost_little(void **state)
{
    (void)state;
    enum { LARGE_JOBS = 100, BYTES = 1000 * 1000, LARGE_MAX_BYTES = 1 << 20 };
    struct cache *cache = open_cache();
    size_t before = bytes_in_use;
    char *value = xmalloc(BYTES + 1);
    memset(value, 'x', BYTES);
    value[BYTES] = '\0';
    for (int job = 0; job < LARGE_JOBS; job++) {
        struct json *object = make_job(job), *at = object;
        static const char *const path[] = {"spec", "pytorchReplicaSpecs", "Worker", "template",
                                           "spec", "containers"};
        for (size_t i = 0; i < array_length(path); i++)
            at = json_get(at, path[i]);
        at = json_at(json_get(json_at(at, 0), "env"), 0);
        json_set(at, "value", json_new_text(value));
        at = json_get(json_get(object, "spec"), "runPolicy");
        json_set(at, "suspend", json_new_bool(true));
        feed(cache, CACHE_JOBS, object);
    }
    free(value);
    assert_true(bytes_in_use - before < LARGE_MAX_BYTES);
    cache_close(cache);
}

/* 5,000 nodes, watched for their taints and conditions. */
static void five_thousand_nodes_cost_little(void **state)
{
    (void)state;
    enum { NODES = 5000, NODES_MAX_BYTES = 2 << 20, AGAIN = 50 };
    struct cache *cache = cache_open(&(struct cache_options){
        .signs = {NODE_TAINTS, NODE_CONDITIONS}, .changed = ignore_news, .warn = ignore});
    size_t before = bytes_in_use;
    for (int i = 0; i < NODES; i++)
        feed(cache, CACHE_NODES, make_node(i));
    assert_int_equal(cache_count(cache, CACHE_NODES), NODES);
    size_t bytes = bytes_in_use - before;
    assert_true(!COUNTS || bytes > NODES * sizeof(void *));
    assert_true(bytes < NODES_MAX_BYTES);
    print_message("# %d nodes: %zu KiB\n", NODES, bytes >> 10);
    for (int i = 0; i < AGAIN; i++)
        feed(cache, CACHE_NODES, make_node(i * (NODES / AGAIN)));
    /* a piece may be 16 bytes larger than it was, where the allocator could not part it from the
     * rest; the smallest piece that is left behind has 32 */
    size_t now = bytes_in_use - before, unparted = COUNTS ? AGAIN * 16 : 0;
    assert_in_range(now, bytes - unparted, bytes + unparted);
    cache_close(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_jobs_fit),
        cmocka_unit_test(news_cost_nothing),
        cmocka_unit_test(large_jobs_at_rest_cost_little),
        cmocka_unit_test(five_thousand_nodes_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
