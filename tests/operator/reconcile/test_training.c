/* How the training goes, in the status, and the story that events tell of it. */
#include "tests/operator/reconcile/training_fixture.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode_status.h"
#include "operator/job/job_status.h"
#include "operator/manifest/manifest.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STATUS                                                                                     \
    "status Created=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) Master=1/0/0"
#define TOLD "told worldSize 1; told restarts 0; told lastProgressTime 100; told steps 5000; "

#define HANG                                                                                       \
    "told lastHangRank 3; told lastHangStep 40; told lastHangCollective 17; told lastHangTime "    \
    "500; told hangPhase data; told hangUnit layers.3; "

static const struct story stories[] = {
    {"an agent that has no step yet", 1, 0, "OnFailure", "", RUNS TOLD "pass",
     STATUS " start=1000 step=\n"},
    {"the first step", 1, 0, "OnFailure", "", RUNS TOLD "told step 1; told secondsLeft 4800; pass",
     STATUS " start=1000 step=1/5000 left=1h20m\n"
            "event Normal TrainingStarted: PyTorchJob j trains on 1 rank: step 1/5000.\n"},
    {"a further step", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 1; pass; told step 2; told secondsLeft 59; pass",
     STATUS " start=1000 step=2/5000 left=59s\n"},
    {"nothing new costs nothing", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 1; pass; wait 60000; pass", ""},
    {"the first checkpoint", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 2; pass; told lastCheckpointStep 2; told lastCheckpointTime 7000; pass",
     STATUS " start=1000 step=2/5000\nevent Normal CheckpointSaved: A checkpoint is kept of step "
            "2 (told once an hour at most).\n"},
    {"the next within the hour", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 2; told lastCheckpointStep 2; told lastCheckpointTime 7000; pass; told "
               "lastCheckpointStep 4; told lastCheckpointTime 7199; pass",
     STATUS " start=1000 step=2/5000\n"},
    {"... and in the hour after it", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 2; told lastCheckpointStep 2; told lastCheckpointTime 7199; pass; told "
               "lastCheckpointStep 4; told lastCheckpointTime 7200; pass",
     STATUS " start=1000 step=2/5000\nevent Normal CheckpointSaved: A checkpoint is kept of step "
            "4 (told once an hour at most).\n"},
    {"ranks start again in their pods", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 40; pass; told restarts 1; told step 41; pass",
     STATUS " start=1000 step=41/5000\nevent Normal TrainingRecovered: PyTorchJob j trains again, "
            "on 1 rank: step 41/5000, restart 1.\n"},
    {"the kubelet starts a container again, which knows of no restart", 1, 0, "OnFailure", "",
     RUNS TOLD "told processStartTime 3; told step 40; pass; told processStartTime 900; told step "
               "41; pass",
     STATUS " start=1000 step=41/5000\nevent Normal TrainingRecovered: PyTorchJob j trains again, "
            "on 1 rank: step 41/5000.\n"},
    {"... and goes on", 1, 0, "OnFailure", "",
     RUNS TOLD "told processStartTime 900; told step 41; pass; told step 42; pass",
     STATUS " start=1000 step=42/5000\n"},
    {"fewer ranks go on", 1, 0, "OnFailure", "",
     RUNS TOLD "told worldSize 8; told step 40; pass; told worldSize 7; pass",
     STATUS " start=1000 step=40/5000\nevent Normal TrainingRecovered: PyTorchJob j trains again, "
            "on 7 ranks instead of 8: step 40/5000, restart 0.\n"},
    {"a rank hangs", 1, 2, "OnFailure", "",
     RUNS TOLD "told step 40; pass; told hungRank 5; told hungNode 2; pass",
     STATUS " Worker=2/0/0 start=1000 step=40/5000\nevent Warning RankHung: Rank 5 in pod "
            "j-worker-1 hangs at step 40/5000, and others wait for it. The log of rank 0 has its "
            "phase and collective, its own log its call stacks.\n"},
    {"... and hangs on", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 40; told hungRank 0; told hungNode 0; pass; told loss 3; pass",
     STATUS " start=1000 step=40/5000\n"},
    {"... of a job without a master", 0, 2, "OnFailure", "",
     RUNS TOLD "told step 40; pass; told hungRank 1; told hungNode 1; pass",
     "status Created=T Running=T(PyTorchJobRunning: PyTorchJob ns/j is running.) Worker=2/0/0 "
     "start=1000 step=40/5000\nevent Warning RankHung: Rank 1 hangs at step 40/5000, and others "
     "wait for it. The log of rank 0 has its phase and collective, its own log its call stacks.\n"},
    {"a hang that was over before anybody asked", 1, 2, "OnFailure", "",
     RUNS TOLD "told step 41; pass; " HANG "told hangPod j-worker-1; pass",
     STATUS " Worker=2/0/0 start=1000 step=41/5000\nevent Warning RankHung: Rank 3 in pod "
            "j-worker-1 hung in phase data at step 40, and others waited for it; its last "
            "collective: 17, all_gather of layers.3. Its log has its call stacks.\n"},
    {"... is told once", 1, 2, "OnFailure", "",
     RUNS TOLD "told step 41; " HANG "pass; told step 42; pass",
     STATUS " Worker=2/0/0 start=1000 step=42/5000\n"},
    {"... and the next one, which hangs on, of a pod that the job does not have", 1, 2, "OnFailure",
     "",
     RUNS TOLD "told step 41; " HANG "pass; told lastHangTime 600; told hungRank 3; told hangPod "
               "x-worker-1; pass; told loss 3; pass; told lastHangTime 700; told hungRank 4; told "
               "lastHangRank 4; pass",
     STATUS " Worker=2/0/0 start=1000 step=41/5000\nevent Warning RankHung: Rank 4 hangs in phase "
            "data at step 40, and others wait for it; its last collective: 17, all_gather of "
            "layers.3. Its log has its call stacks.\n"},
    {"the pod is gone: the last numbers stay", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 40; told secondsLeft 60; pass; untold; wait 1000; pass", ""},
    {"... but for how it goes, where it does not", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 40; told secondsLeft 60; pass; untold; gone master-0; pass; state",
     "status Created=T Restarting=T(PyTorchJobRestarting: PyTorchJob j is restarting because no "
     "Master replica is running.) Master=0/0/0 start=1000 step=40/5000\n"},
    {"... or nobody knows", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 40; told secondsLeft 60; pass; untold; lose master-0; pass; state",
     STATUS " start=1000 step=40/5000\n"},
    {"an invalid edit stands in nobody's way", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 40; pass; spoil; pass; told step 41; told secondsLeft 60; pass",
     "status Created=T Waiting=T Running=T(PyTorchJobRunning: PyTorchJob j is running.) "
     "Master=1/0/0 start=1000 step=41/5000 left=1m0s\n"},
    {"the end keeps them, and no time is left", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 4999; told secondsLeft 1; pass; told step 5000; exit master-0 0; pass",
     "status Created=T Running=F Succeeded=T(PyTorchJobSucceeded: PyTorchJob j is successfully "
     "completed.) Master=0/1/0 start=1000 completion=2000 done:master-0 step=5000/5000\n"
     "event Normal ExitedWithCode: Pod: ns.j-master-0 exited with code 0\n"
     "event Normal PyTorchJobSucceeded: PyTorchJob j is successfully completed.\n"},
    {"a suspended job keeps them, too", 1, 0, "OnFailure", "",
     RUNS TOLD "told step 40; told secondsLeft 60; pass; suspend; settle; state",
     "status Created=T Running=F Suspended=T(PyTorchJobSuspended: PyTorchJob j is suspended.) "
     "Master=0/0/0 start=1000 step=40/5000\n"},
};

/* Of three workers the second is gone: the last has node 2 in the round, and is worker 2. */
static const struct story elastic[] = {
    {"a rank of an elastic run hangs", 1, 3, "OnFailure", "",
     RUNS TOLD "told step 40; gone worker-1; pass; told hungRank 2; told hungNode 2; pass",
     STATUS " Worker=2/0/0 start=1000 step=40/5000\nevent Warning RankHung: Rank 2 hangs at step "
            "40/5000, and others wait for it. The log of rank 0 has its phase and collective, its "
            "own log its call stacks.\n"},
    {"... which tells its pod", 1, 3, "OnFailure", "",
     RUNS TOLD "told step 40; gone worker-1; pass; " HANG "told hangPod j-worker-2; pass",
     STATUS " Worker=2/0/0 start=1000 step=40/5000\nevent Warning RankHung: Rank 3 in pod "
            "j-worker-2 hung in phase data at step 40, and others waited for it; its last "
            "collective: 17, all_gather of layers.3. Its log has its call stacks.\n"},
};

static void events_tell_the_story(void **state)
{
    (void)state;
    cluster_tell(stories, array_length(stories));
    cluster_tell_of("elasticPolicy: {minReplicas: 1, maxReplicas: 3}", elastic,
                    array_length(elastic));
}

/* What the status says is what is asked for, and what kubectl's columns show. */
static void the_status_has_the_numbers(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster_do(cluster, RUNS TOLD
               "told step 1200; told epoch 0.123456; told loss 2.3456789; told evalLoss 2.5;"
               "told tokensPerSecond 123456.7; told mfu 0.41234; told secondsLeft 4830;"
               "told lastCheckpointStep 1000; told lastCheckpointTime 90; pass");
    struct json *json = manifest_status(cluster->job, &cluster->status);
    auto_free char *text = json_print(json_get(json, "training"), JSON_COMPACT);
    assert_string_equal(
        text,
        "{\"progress\":\"1200/5000\",\"step\":1200,\"steps\":5000,\"epoch\":0.1235,\"loss\":2.3457,"
        "\"evalLoss\":2.5,\"tokensPerSecond\":1.235e5,\"mfu\":0.412,\"secondsLeft\":4830,"
        "\"worldSize\":1,\"restarts\":0,\"lastCheckpointStep\":1000,\"lastCheckpointTime\":"
        "\"2000-01-01T00:01:30Z\",\"lastProgressTime\":\"2000-01-01T00:01:40Z\",\"timeLeft\":"
        "\"1h20m\",\"estimatedCompletionTime\":\"2000-01-01T01:22:10Z\"}");
    cluster->status.training.seconds_left =
        TRAINING_COUNT_MAX; /* of a rate that has gone to pieces */
    struct json *endless = manifest_status(cluster->job, &cluster->status);
    assert_null(json_get(json_get(endless, "training"), "estimatedCompletionTime"));
    json_free(endless);
    cluster->status.training.seconds_left = 4830;
    struct job_status read = decode_status(json, cluster->arena);
    assert_true(training_equal(&read.training, &cluster->status.training));
    assert_true(job_status_equal(&read, &cluster->status));
    read.training.loss = 2.3458;
    assert_false(job_status_equal(&read, &cluster->status));
    json_free(json);
    cluster_close(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_tell_the_story),
        cmocka_unit_test(the_status_has_the_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
