/* Gang scheduling: the PodGroup's life, what waits for it, and how pods are marked. Names such as
 * C31 and X24 are those of the peer's cases that a row re-creates. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/decode/decode.h"
#include "operator/job/quantity.h"
#include "operator/manifest/pod.h"
#include "operator/reconcile/policy_gang.h"
#include "tests/operator/cluster.h"

#include <string.h>

static const struct story volcano[] = {
    {"X24 the group comes first", 1, 2, "OnFailure", "", "gang volcano; pass",
     "status Created=T Waiting=T(PodGroupPending: PodGroup j has not been processed by its scheduler) Master=0/0/0 Worker=0/0/0\n"
     "event Normal PodGroupPending: PodGroup j has not been processed by its scheduler\n"
     "create podgroup j min=3 queue=default\n"},
    {"X24 no pods while it is pending, and the scheduler's reason is told", 1, 2, "OnFailure", "",
     "gang volcano; pass; group Pending; refuse NotEnoughResources; pass",
     "status Created=T Waiting=T(PodGroupPending: PodGroup j is not admitted yet: NotEnoughResources) Master=0/0/0 Worker=0/0/0\n"
     "event Warning PodGroupPending: PodGroup j is not admitted yet: NotEnoughResources\n"},
    {"X24 and told once", 1, 2, "OnFailure", "",
     "gang volcano; pass; group Pending; refuse NotEnoughResources; pass; wait 9; pass", ""},
    {"X24 all pods after it, and only now the job starts", 1, 2, "OnFailure", "",
     "gang volcano; settle; group Pending; settle; wait 5000; group Inqueue; pass",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Master=0/0/0 Worker=0/0/0 start=6000\n"
     "create service j-master-0\n"
     "create service j-worker-0\n"
     "create service j-worker-1\n"
     "create pod j-master-0 attempt 0\n"
     "create pod j-worker-0 attempt 0\n"
     "create pod j-worker-1 attempt 0\n"},
    {"X24 it rests when its group runs", 1, 1, "OnFailure", "",
     "gang volcano; settle; group Running; settle; run *; settle; pass", ""},
    {"a pod that failed waits for the group as well", 1, 1, "OnFailure", "",
     "gang volcano; settle; group Running; settle; run *; settle; exit worker-0 1; settle; group "
     "Pending; pass; state",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/0/0 start=1000 failures=1 worker-0:u5:1+0\n"},
    {"C31 the user asks for more than there is", 0, 2, "OnFailure",
     "schedulingPolicy: {minAvailable: 10, queue: q, priorityClass: high, minResources: {cpu: 3}}",
     "gang volcano; pass",
     "status Created=T Waiting=T(PodGroupPending: PodGroup j has not been processed by its scheduler) Worker=0/0/0\n"
     "event Normal PodGroupPending: PodGroup j has not been processed by its scheduler\n"
     "create podgroup j min=10 cpu=3000m queue=q priority=high\n"},
    {"C31 and then for less", 0, 2, "OnFailure", "schedulingPolicy: {minAvailable: 10}",
     "gang volcano; settle; member 2; pass", "update podgroup j min=2 queue=default\n"},
    {"the group follows the number of workers", 0, 2, "OnFailure", "",
     "gang volcano; settle; group Running; settle; scale 3; pass",
     "update podgroup j min=3 queue=default\n"
     "create service j-worker-2\n"
     "create pod j-worker-2 attempt 0\n"},
    {"X25 it goes when the job is finished", 0, 1, "OnFailure", "",
     "gang volcano; settle; group Running; settle; run *; exit * 0; pass",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.) Worker=0/1/0 start=1000 completion=1000 done:worker-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.\n"
     "event Normal JobTerminated: Job has been terminated. Deleting PodGroup\n"
     "delete podgroup j u1\n"},
    {"X25 once", 0, 1, "OnFailure", "",
     "gang volcano; settle; group Running; settle; run *; exit * 0; settle; pass", ""},
    {"it goes when the job is suspended", 0, 1, "OnFailure", "",
     "gang volcano; settle; group Running; settle; run *; settle; suspend; pass",
     "status Created=T Running=F Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Worker=1/0/0 start=1000\n"
     "event Normal JobTerminated: Job has been terminated. Deleting PodGroup\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"
     "delete pod j-worker-0 u3\n"
     "delete service j-worker-0 u2\n"
     "delete podgroup j u1\n"},
    {"and comes again", 0, 1, "OnFailure", "",
     "gang volcano; settle; group Running; settle; run *; settle; suspend; settle; resume; pass",
     "status Created=T Suspended=F Restarting=T Waiting=T(PodGroupPending: PodGroup j has not been processed by its scheduler) Worker=0/0/0 start=1000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "event Normal PodGroupPending: PodGroup j has not been processed by its scheduler\n"
     "create podgroup j min=1 queue=default\n"},
    {"a limit ends it too", 0, 1, "OnFailure", "backoffLimit: 0",
     "gang volcano; settle; group Running; settle; run *; restart *; pass",
     "status Created=T Failed=T(PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)) Worker=1/0/0 start=1000 completion=1000 failures=1 restarts=0 worker-0:u3:1+0\n"
     "event Normal PyTorchJobFailed: Job j has failed because it has reached the specified backoff limit (last failure: pod j-worker-0)\n"
     "event Normal JobTerminated: Job has been terminated. Deleting PodGroup\n"
     "delete podgroup j u1\n"},
    {"the deadline does not run while the group waits", 0, 1, "OnFailure",
     "activeDeadlineSeconds: 2", "gang volcano; settle; wait 9000; pass", ""},
    {"and told of if nobody owns it", 0, 1, "OnFailure", "", "gang volcano; orphan group; pass",
     "status Created=T Waiting=T(FailedCreatePodGroup: Error creating: PodGroup \"j\" already exists and has no owner: delete it (kubectl delete PodGroup j), or make this job its controller (metadata.ownerReferences)) Worker=0/0/0\n"
     "event Warning FailedCreatePodGroup: Error creating: PodGroup \"j\" already exists and has no owner: delete it (kubectl delete PodGroup j), or make this job its controller (metadata.ownerReferences)\n"},
    {"a foreign group of our name is waited for", 0, 1, "OnFailure", "",
     "gang volcano; foreign group; pass",
     "status Created=T Waiting=T(FailedCreatePodGroup: Error creating: PodGroup \"j\" already exists and belongs to another owner) Worker=0/0/0\n"
     "event Warning FailedCreatePodGroup: Error creating: PodGroup \"j\" already exists and belongs to another owner\n"},
    {"one that is not in sight is told of, as the server refuses ours", 0, 1, "OnFailure", "",
     "gang volcano; deny already-there; pass",
     "status Created=T Waiting=T(Refused: already-there) Worker=0/0/0\n"
     "event Warning Refused: already-there\n"
     "create podgroup j min=1 queue=default\n"},
    {"until ours is made", 0, 1, "OnFailure", "",
     "gang volcano; deny already-there; pass; settle; allow; pass",
     "status Created=T Waiting=T(PodGroupPending: PodGroup j has not been processed by its scheduler) Worker=0/0/0\n"
     "event Normal PodGroupPending: PodGroup j has not been processed by its scheduler\n"},
    {"and left alone at the end", 0, 1, "OnFailure", "",
     "gang volcano; foreign group; pass; suspend; pass",
     "status Created=T Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Worker=0/0/0\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"},
};

static const struct story plugins[] = {
    {"the pods are made behind the group, their scheduler holds them", 1, 1, "OnFailure",
     "schedulingPolicy: {queue: q, priorityClass: high, scheduleTimeoutSeconds: 60}",
     "gang coscheduler; pass",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Master=0/0/0 Worker=0/0/0 start=1000\n"
     "create podgroup j min=2 timeout=60\n"
     "create service j-master-0\n"
     "create service j-worker-0\n"
     "create pod j-master-0 attempt 0\n"
     "create pod j-worker-0 attempt 0\n"},
    {"and the reason is the pods'", 1, 1, "OnFailure", "",
     "gang coscheduler; settle; stuck worker-0 Unschedulable; pass",
     "status Created=T Waiting=T(Unschedulable: Pod j-worker-0 is waiting: Unschedulable) Master=0/0/0 Worker=0/0/0 start=1000\n"
     "event Warning Unschedulable: Pod j-worker-0 is waiting: Unschedulable\n"},
    {"X25 it goes when the job is finished", 0, 1, "OnFailure", "",
     "gang coscheduler; settle; run *; exit * 0; pass",
     "status Created=T Succeeded=T(PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.) Worker=0/1/0 start=1000 completion=1000 done:worker-0\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.\n"
     "event Normal JobTerminated: Job has been terminated. Deleting PodGroup\n"
     "delete podgroup j u1\n"},
};

static const struct story elastic[] = {
    {"an elastic job needs its least number of workers", 1, 4, "OnFailure", "",
     "gang volcano; pass",
     "status Created=T Waiting=T(PodGroupPending: PodGroup j has not been processed by its scheduler) Master=0/0/0 Worker=0/0/0\n"
     "event Normal PodGroupPending: PodGroup j has not been processed by its scheduler\n"
     "create podgroup j min=3 queue=default\n"},
};

static void pods_wait_for_volcano(void **state)
{
    (void)state;
    cluster_tell(volcano, array_length(volcano));
}

static void pods_do_not_wait_for_scheduler_plugins(void **state)
{
    (void)state;
    cluster_tell(plugins, array_length(plugins));
}

static void elastic_jobs_need_their_minimum(void **state)
{
    (void)state;
    cluster_tell_of("elasticPolicy: {minReplicas: 2, maxReplicas: 8}", elastic,
                    array_length(elastic));
}

/* A job whose pods ask for something. */
static const char job_text[] =
    "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"
    "metadata: {name: j, namespace: ns, uid: u}\n"
    "spec:\n"
    "  runPolicy: {schedulingPolicy: {%s}}\n"
    "  pytorchReplicaSpecs:\n"
    "    Master: {replicas: 1, template: {spec: {schedulerName: mine, containers: [{name: pytorch,\n"
    "      image: i, resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: 2,\n"
    "      nvidia.com/gpu: 1}}}]}}}\n"
    "    Worker: {replicas: 3, template: {metadata: {annotations: {a: b}}, spec: {initContainers:\n"
    "      [{name: load, image: i, resources: {requests: {memory: 9Gi}}}], containers: [{name:\n"
    "      pytorch, image: i, resources: {limits: {cpu: 1.5}}}, {name: log, image: i,\n"
    "      resources: {requests: {cpu: 0.5}}}]}}}\n";

static struct manifest *decode_job_text(const char *scheduling)
{
    struct manifest *manifest = NULL;
    struct error err;
    auto_free char *text = xasprintf(job_text, scheduling);
    assert_ok(decode_manifest(text, strlen(text), "t", 6, &manifest, &err), &err);
    return manifest;
}

static void resources_are_what_the_first_members_ask_for(void **state)
{
    (void)state;
    static const struct {
        const char *scheduling;
        int64_t cpu, memory_mi, gpu; /* cpu in thousandths */
    } rows[] = {
        {"", 500 + 3 * 2000, 1024 + 3 * 9216, 1},
        {"minAvailable: 2", 500 + 2000, 1024 + 9216, 1},
        {"minAvailable: 1", 500, 1024, 1},
        {"minAvailable: 99", 500 + 3 * 2000, 1024 + 3 * 9216, 1},
        {"minResources: {cpu: 7}", 7000, 0, 0},
        {"minResources: {}", 0, 0, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct manifest *manifest = decode_job_text(rows[i].scheduling);
        struct snapshot snapshot = {.job = manifest->jobs[0],
                                    .options.gang = {GANG_PLUGINS, "coscheduler"}};
        struct pod_group_spec spec = policy_gang_spec(&snapshot, manifest->arena);
        const struct quantities *sum = &spec.min_resources;
        assert_int_equal(quantities_get(sum, "cpu"), rows[i].cpu);
        assert_int_equal(quantities_get(sum, "memory"), rows[i].memory_mi * 1000 << 20);
        assert_int_equal(quantities_get(sum, "nvidia.com/gpu"), rows[i].gpu * 1000);
        decode_close(manifest);
    }
}

/* As Kubernetes' PodRequests: sidecars run beside all that comes after them. */
static void sidecars_and_overhead_count(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        int64_t cpu;
    } rows[] = {
        {"initContainers: [{name: s, image: i, restartPolicy: Always, resources: {requests: {cpu: 4}}}]",
         12},
        {"initContainers: [{name: l, image: i, resources: {requests: {cpu: 11}}}]", 11},
        {"initContainers: [{name: s, image: i, restartPolicy: Always, resources: {requests: {cpu: 4}}},\n"
         "{name: l, image: i, resources: {requests: {cpu: 11}}}]",
         15},
        {"initContainers: [{name: l, image: i, resources: {requests: {cpu: 11}}},\n"
         "{name: s, image: i, restartPolicy: Always, resources: {requests: {cpu: 4}}}]",
         12},
        {"initContainers: [{name: s, image: i, restartPolicy: Always, resources: {requests: {cpu: 4}}},\n"
         "{name: t, image: i, restartPolicy: Always, resources: {requests: {cpu: 5}}}]",
         17},
        {"overhead: {cpu: 1}", 9},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct manifest *manifest = NULL;
        struct error err;
        auto_free char *text =
            xasprintf("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"
                      "metadata: {name: j, namespace: ns, uid: u}\n"
                      "spec: {pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {\n"
                      "containers: [{name: pytorch, image: i, resources: {requests: {cpu: 8}}}],\n"
                      "%s}}}}}\n",
                      rows[i].pod);
        assert_ok(decode_manifest(text, strlen(text), "t", 6, &manifest, &err), &err);
        struct snapshot snapshot = {.job = manifest->jobs[0],
                                    .options.gang = {GANG_PLUGINS, "coscheduler"}};
        struct pod_group_spec spec = policy_gang_spec(&snapshot, manifest->arena);
        assert_int_equal(quantities_get(&spec.min_resources, "cpu"), rows[i].cpu * 1000);
        decode_close(manifest);
    }
}

static void volcanos_queue_stays(void **state)
{
    (void)state;
    struct manifest *manifest = decode_job_text("queue: wanted");
    struct pod_group group = {.owner_uid = "u", .spec = {.queue = "first"}};
    struct snapshot snapshot = {.job = manifest->jobs[0],
                                .options.gang = {GANG_VOLCANO, "volcano"}};
    assert_string_equal(policy_gang_spec(&snapshot, manifest->arena).queue, "wanted");
    snapshot.pod_group = &group;
    assert_string_equal(policy_gang_spec(&snapshot, manifest->arena).queue, "first");
    decode_close(manifest);
}

static const char *find(const struct pairs *pairs, const char *key)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->items[i].key, key) == 0)
            return pairs->items[i].value;
    return "(none)";
}

static void pods_are_marked_for_their_scheduler(void **state)
{
    (void)state;
    struct manifest *manifest = decode_job_text("");
    struct history history = {0};
    struct pod_options options = {.gang = {GANG_VOLCANO, "volcano"}};
    const struct job *job = manifest->jobs[0];
    struct pod_spec *pod = pod_build(job, &history, REPLICA_WORKER, 0, &options, manifest->arena);
    assert_string_equal(pod->scheduler_name, "volcano");
    assert_string_equal(find(&pod->annotations, "scheduling.k8s.io/group-name"), "j");
    assert_string_equal(find(&pod->annotations, "volcano.sh/task-spec"), "worker");
    assert_string_equal(find(&pod->annotations, "a"), "b");
    assert_string_equal(find(&pod->labels, "scheduling.x-k8s.io/pod-group"), "(none)");
    pod = pod_build(job, &history, REPLICA_MASTER, 0, &options, manifest->arena);
    assert_null(pod->scheduler_name); /* C14: the template has its own */
    options.gang = (struct gang){GANG_PLUGINS, "coscheduler"};
    pod = pod_build(job, &history, REPLICA_WORKER, 0, &options, manifest->arena);
    assert_string_equal(pod->scheduler_name, "coscheduler");
    assert_string_equal(find(&pod->labels, "scheduling.x-k8s.io/pod-group"), "j");
    assert_string_equal(find(&pod->annotations, "scheduling.k8s.io/group-name"), "(none)");
    decode_close(manifest);
}

static void other_schedulers_are_warned_of(void **state)
{
    (void)state;
    static const struct {
        const char *master, *worker; /* schedulerName of the templates */
        int warnings;
    } rows[] = {
        /* C14 */
        {NULL, NULL, 0},
        {"volcano", "volcano", 0},
        {"mine", "mine", 2},
        {NULL, "mine", 1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct cluster *cluster = cluster_open(1, 1, "OnFailure", "", "");
        cluster->job->replicas[REPLICA_MASTER].template_.scheduler_name = rows[i].master;
        cluster->job->replicas[REPLICA_WORKER].template_.scheduler_name = rows[i].worker;
        cluster_do(cluster, "gang volcano; settle; group Running");
        cluster_plan(cluster);
        int warnings = 0;
        for (size_t k = 0; k < cluster->plan->count; k++)
            warnings += cluster->plan->actions[k].kind == ACTION_EVENT &&
                        !strcmp(cluster->plan->actions[k].reason, "SetPodTemplateSchedulerName");
        assert_int_equal(warnings, rows[i].warnings);
        cluster_close(cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_wait_for_volcano),
        cmocka_unit_test(pods_do_not_wait_for_scheduler_plugins),
        cmocka_unit_test(elastic_jobs_need_their_minimum),
        cmocka_unit_test(resources_are_what_the_first_members_ask_for),
        cmocka_unit_test(sidecars_and_overhead_count),
        cmocka_unit_test(volcanos_queue_stays),
        cmocka_unit_test(pods_are_marked_for_their_scheduler),
        cmocka_unit_test(other_schedulers_are_warned_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
