/* Elastic jobs: their autoscaler, and when they stop growing. Names such as P12 and X22 are those
 * of the peer's cases that a row re-creates. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/decode/decode.h"
#include "tests/operator/cluster.h"

#include <string.h>

static const struct story metered[] = {
    {"P10 the autoscaler is made behind the pods", 0, 1, "OnFailure", "", "autoscale; pass",
     "status Created=T(PyTorchJobCreated: PyTorchJob j is created.) Worker=0/0/0 start=1000\n"
     "create service j-worker-0\n"
     "create pod j-worker-0 attempt 0\n"
     "create autoscaler j 1-3 by 803ec9c2f1a08959\n"},
    {"P10 and the job rests", 0, 1, "OnFailure", "", "autoscale; pass; pass", ""},
    {"P11 one success is the job's, and X22 the autoscaler goes", 0, 2, "OnFailure", "",
     "autoscale; settle; run *; settle; exit worker-1 0; pass",
     "status Created=T Running=F Succeeded=T(PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.) Worker=1/1/0 start=1000 completion=1000 done:worker-1\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-1 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob ns/j successfully completed.\n"
     "delete autoscaler j u5\n"},
    {"P12 suspending deletes it", 0, 1, "OnFailure", "", "autoscale; settle; suspend; pass",
     "status Created=T Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) Worker=1/0/0 start=1000\n"
     "event Normal PyTorchJobSuspended: PyTorchJob j is suspended.\n"
     "delete pod j-worker-0 u2\n"
     "delete service j-worker-0 u1\n"
     "delete autoscaler j u3\n"},
    {"P12 and resuming makes it again", 0, 1, "OnFailure", "",
     "autoscale; settle; suspend; settle; resume; pass",
     "status Created=T Suspended=F Restarting=T(PyTorchJobResumed: PyTorchJob j is resumed.) Worker=0/0/0 start=1000\n"
     "event Normal PyTorchJobResumed: PyTorchJob j is resumed.\n"
     "create service j-worker-0\n"
     "create pod j-worker-0 attempt 0\n"
     "create autoscaler j 1-3 by 803ec9c2f1a08959\n"},
    {"without metrics it goes", 0, 1, "OnFailure", "", "autoscale; settle; unmetered; pass",
     "delete autoscaler j u3\n"},
    {"a foreign one is told of and the job runs without", 0, 1, "OnFailure", "",
     "autoscale; foreign autoscaler; pass",
     "status Created=T Waiting=T(FailedCreateAutoscaler: Error creating: HorizontalPodAutoscaler \"j\" already exists and belongs to another owner) Worker=0/0/0 start=1000\n"
     "event Warning FailedCreateAutoscaler: Error creating: HorizontalPodAutoscaler \"j\" already exists and belongs to another owner\n"
     "create service j-worker-0\n"
     "create pod j-worker-0 attempt 0\n"},
    {"where autoscalers are not watched none is made", 0, 1, "OnFailure", "", "settle; pass", ""},
    {"it scales: that is an edit like any other", 0, 1, "OnFailure", "",
     "autoscale; settle; scale 3; pass",
     "create service j-worker-1\n"
     "create service j-worker-2\n"
     "create pod j-worker-1 attempt 0\n"
     "create pod j-worker-2 attempt 0\n"},
};

static const struct story growing[] = {
    {"once a worker has succeeded no more are made", 1, 2, "OnFailure", "",
     "settle; run *; settle; exit worker-1 0; settle; scale 3; pass", ""},
    {"nor is one that fails then made again", 1, 2, "OnFailure", "",
     "settle; run *; settle; exit worker-1 0; settle; exit worker-0 1; settle; state",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0 Worker=0/1/0 start=1000 failures=1 worker-0:u5:1+0 done:worker-1\n"},
    {"but the master is", 1, 2, "OnFailure", "",
     "settle; run *; settle; exit worker-1 0; settle; exit master-0 1; settle; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because 1 Master replica(s) failed.) Master=0/0/0 Worker=1/1/0 start=1000 failures=1 master-0:u4:1+0 done:worker-1\n"},
};

static void autoscalers_live_with_their_job(void **state)
{
    (void)state;
    cluster_tell_of("elasticPolicy: {minReplicas: 1, maxReplicas: 3, metrics: [{type: Resource}]}",
                    metered, array_length(metered));
}

static void elastic_jobs_stop_growing(void **state)
{
    (void)state;
    cluster_tell_of("elasticPolicy: {minReplicas: 1, maxReplicas: 3}", growing,
                    array_length(growing));
}

static void autoscalers_follow_the_policy(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(
        0, 1, "OnFailure", "",
        "elasticPolicy: {minReplicas: 1, maxReplicas: 3, metrics: [{type: Resource}]}");
    cluster_do(cluster, "autoscale; settle");
    struct elastic_policy *elastic = &cluster->job->elastic;
    const char *hash = elastic->metrics_hash;
    struct action *action;
    elastic->max_replicas.value = 5;
    cluster_plan(cluster);
    action = &cluster->plan->actions[0];
    assert_int_equal(action->kind, ACTION_UPDATE_AUTOSCALER);
    assert_int_equal(action->autoscaler->max_replicas, 5);
    cluster_do(cluster, "settle");
    elastic->metrics_hash = "other";
    cluster_plan(cluster);
    action = &cluster->plan->actions[0];
    assert_int_equal(action->kind, ACTION_UPDATE_AUTOSCALER);
    assert_string_equal(action->uid, cluster->autoscaler.uid);
    elastic->metrics_hash = hash;
    cluster_plan(cluster);
    assert_int_equal(cluster->plan->count, 0);
    cluster_close(cluster);
}

static const char *hash_of(const char *metrics, struct arena *arena)
{
    struct manifest *manifest = NULL;
    struct error err;
    auto_free char *text = xasprintf(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {elasticPolicy: "
        "{%s}, pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: "
        "i}]}}}}}\n",
        metrics);
    assert_ok(decode_manifest(text, strlen(text), "t", 6, &manifest, &err), &err);
    const char *hash = arena_strdup(arena, manifest->jobs[0]->elastic.metrics_hash);
    decode_close(manifest);
    return hash;
}

static void metrics_are_told_apart(void **state)
{
    (void)state;
    struct arena *arena = arena_open();
    const char *one = hash_of("metrics: [{type: Resource, resource: {name: cpu}}]", arena);
    assert_string_equal(one, hash_of("metrics: [{resource: {name: cpu}, type: Resource}]", arena));
    assert_string_not_equal(one,
                            hash_of("metrics: [{resource: {name: gpu}, type: Resource}]", arena));
    assert_non_null(hash_of("metrics: []", arena));
    assert_null(hash_of("", arena));
    arena_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(autoscalers_live_with_their_job),
        cmocka_unit_test(elastic_jobs_stop_growing),
        cmocka_unit_test(autoscalers_follow_the_policy),
        cmocka_unit_test(metrics_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
