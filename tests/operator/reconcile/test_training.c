/* How the training goes, in the status, and the story that events tell of it. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode_status.h"
#include "operator/job/job_status.h"
#include "operator/manifest/manifest.h"
#include "tests/operator/cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUNS "settle; run *; settle; wait 1000; "
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

#define CREATED_MS INT64_C(1767225600000)

/* A process that began so many seconds after the job, and what it has spent since. */
static void tell_of(struct cluster *cluster, int64_t began_s, int64_t initialization_s,
                    int64_t steps_s, int64_t step)
{
    cluster->told = training_open();
    cluster->told.world_size = 1;
    cluster->told.process_ms = CREATED_MS + 1000 * began_s;
    cluster->told.progress_ms = cluster->now_ms;
    cluster->told.spent_ms[TRAINING_SPENT_INITIALIZATION] = 1000 * initialization_s;
    cluster->told.spent_ms[TRAINING_SPENT_STEP] = 1000 * steps_s;
    cluster->told.step = step;
    cluster->told.resumed_step = began_s > 500 ? 50 : 0;
}

static int64_t spent_s(const struct cluster *cluster, int kind)
{
    return cluster->status.goodput.ms[kind] / 1000;
}

/* A job waits, trains, is suspended, is resumed ten steps back, and succeeds. */
static void the_time_of_a_job_adds_up(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster->job->created_ms = cluster->now_ms = CREATED_MS;
    cluster_do(cluster, "settle; wait 30000; run *");
    struct pod *pod = cluster_pod(cluster, "j-master-0");
    pod->scheduled_ms = CREATED_MS + 10000;
    pod->started_ms = CREATED_MS + 28000;
    cluster_do(cluster, "settle; wait 70000");
    tell_of(cluster, 30, 8, 60, 60); /* told at 100 s, when the last step was 2 s ago */
    cluster_do(cluster, "pass; untold; suspend; pass; wait 500000; settle");
    assert_int_equal(cluster->status.goodput.ms[GOODPUT_SUSPENDED], 0);
    cluster_do(cluster, "resume; settle; wait 20000; run *");
    assert_int_equal(spent_s(cluster, GOODPUT_SUSPENDED), 500);
    pod = cluster_pod(cluster, "j-master-0");
    pod->scheduled_ms = CREATED_MS + 605000;
    pod->started_ms = CREATED_MS + 620000;
    cluster_do(cluster, "settle; wait 30000");
    tell_of(cluster, 625, 5, 20, 70);
    cluster_do(cluster, "pass; exit master-0 0; wait 3000; pass");
    static const int64_t seconds[GOODPUT_KINDS] = {
        [GOODPUT_PENDING] = 10 + 5,      [GOODPUT_CONTAINER_START] = 20 + 20,
        [GOODPUT_SUSPENDED] = 500,       [TRAINING_SPENT_INITIALIZATION] = 8 + 5,
        [TRAINING_SPENT_STEP] = 60 + 10, [TRAINING_SPENT_LOST_WORK] = 10,
        [TRAINING_SPENT_OTHER] = 3 + 2,
    };
    for (int k = 0; k < GOODPUT_KINDS; k++)
        if (spent_s(cluster, k) != seconds[k])
            fail_msg("%s: %d s", goodput_kind_name(k), (int)spent_s(cluster, k));
    assert_true(cluster->status.completion_ms == cluster->now_ms);
    assert_true(goodput_sum_ms(&cluster->status.goodput) ==
                cluster->status.completion_ms - CREATED_MS);
    struct json *json = manifest_status(cluster->job, &cluster->status);
    const struct json *training = json_get(json, "training");
    assert_true(json_as_number(json_get(training, "goodput")) == 0.458);
    assert_true(json_as_number(json_get(json_get(training, "seconds"), "suspended")) == 500);
    json_free(json);
    cluster_close(cluster);
}

/* A master that a node takes 10 s after its creation, and whose container runs 18 s later. */
static struct cluster *open_started(int masters, int workers, const char *run_policy)
{
    struct cluster *cluster = cluster_open(masters, workers, "OnFailure", run_policy, "");
    cluster->job->created_ms = cluster->now_ms = CREATED_MS;
    cluster_do(cluster, "settle; wait 10000; settle");
    struct pod *pod = cluster_pod(cluster, masters ? "j-master-0" : "j-worker-0");
    pod->scheduled_ms = CREATED_MS + 10000;
    cluster_do(cluster, "settle; wait 18000; run *");
    pod->started_ms = CREATED_MS + 28000;
    cluster_do(cluster, "settle; wait 2000");
    return cluster;
}

static void expect_kinds(struct cluster *cluster, const int64_t seconds[GOODPUT_KINDS])
{
    for (int k = 0; k < GOODPUT_KINDS; k++)
        if (spent_s(cluster, k) != seconds[k])
            fail_msg("%s: %d s, not %d", goodput_kind_name(k), (int)spent_s(cluster, k),
                     (int)seconds[k]);
    cluster_close(cluster);
}

/* The account goes on without a write: only what turns is written. */
static void what_goes_on_costs_no_write(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster->job->created_ms = cluster->now_ms = CREATED_MS;
    cluster_do(cluster, "settle; wait 60000; pass");
    assert_int_equal(cluster->plan->count, 0);
    assert_int_equal(cluster->status.goodput.now, GOODPUT_PENDING);
    cluster_pod(cluster, "j-master-0")->scheduled_ms = CREATED_MS + 70000;
    cluster_do(cluster, "wait 15000; pass");
    assert_int_equal(cluster->plan->count, 1);
    assert_int_equal(spent_s(cluster, GOODPUT_PENDING), 70);
    assert_int_equal(cluster->status.goodput.now, GOODPUT_CONTAINER_START);
    cluster_do(cluster, "wait 3600000; pass");
    assert_int_equal(cluster->plan->count, 0);
    struct json *json = manifest_status(cluster->job, &cluster->status);
    auto_free char *text = json_print(json_get(json, "training"), JSON_COMPACT);
    assert_string_equal(text,
                        "{\"seconds\":{\"pending\":70.0},\"secondsKind\":\"containerStart\"}");
    struct job_status read = decode_status(json, cluster->arena);
    assert_true(job_status_equal(&read, &cluster->status));
    json_free(json);
    cluster_close(cluster);
}

/* A server that drops the account would be told of it again with each pass. */
static void what_is_dropped_is_not_accounted_for(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster->job->created_ms = cluster->now_ms = CREATED_MS;
    cluster->unaccounted = true;
    cluster_do(cluster, "settle; wait 60000; pass");
    assert_false(cluster->status.goodput.known);
    assert_int_equal(cluster->plan->count, 0);
    cluster_close(cluster);
}

/* A server that drops what goes on now, and keeps the seconds. */
static void what_goes_on_is_not_written_where_it_is_dropped(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "");
    cluster->quiet = cluster->unaccounted = true;
    cluster->status.goodput.now = GOODPUT_INSIDE; /* as it is read */
    cluster_do(cluster, "wait 58000; pass");
    assert_int_equal(cluster->plan->count, 0);
    assert_true(cluster->status.goodput.known);
    cluster_close(cluster);
}

/* Of a program that is no agent it is known how long it ran, and no more. */
static void another_program_is_untold(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "");
    assert_int_equal(cluster->status.goodput.now, GOODPUT_INSIDE); /* it may be one */
    cluster->quiet = true;
    cluster_do(cluster, "wait 58000; pass");
    assert_int_equal(cluster->status.goodput.now, GOODPUT_UNTOLD);
    cluster->quiet = false; /* another operator, which has not asked yet */
    cluster_do(cluster, "wait 2000; pass");
    assert_int_equal(cluster->plan->count, 0);
    struct pod *pod = cluster_pod(cluster, "j-master-0"); /* it ends; the kubelet starts it again */
    pod->started_ms = 0;
    pod->exited = true;
    pod->exited_ms = CREATED_MS + 90000;
    cluster_do(cluster, "wait 10000; pass");
    assert_int_equal(spent_s(cluster, GOODPUT_UNTOLD), 62);
    pod->exited = false;
    pod->started_ms = CREATED_MS + 110000;
    cluster_do(cluster, "wait 20000; pass");
    assert_int_equal(spent_s(cluster, GOODPUT_CONTAINER_START), 18);
    assert_int_equal(spent_s(cluster, GOODPUT_RECOVERY), 20);
    assert_int_equal(cluster->status.goodput.now, GOODPUT_INSIDE);
    cluster_do(cluster, "exit master-0 0; wait 10000; pass");
    expect_kinds(cluster, (int64_t[GOODPUT_KINDS]){[GOODPUT_PENDING] = 10,
                                                   [GOODPUT_CONTAINER_START] = 18,
                                                   [GOODPUT_RECOVERY] = 20,
                                                   [GOODPUT_UNTOLD] = 62 + 20});
}

/* Nobody knows when it ended, an eviction say: until it is seen it ran. */
static void an_end_without_a_time_is_when_it_is_seen(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "");
    cluster->quiet = true;
    cluster_do(cluster, "wait 58000; pass");
    struct pod *pod = cluster_pod(cluster, "j-master-0");
    pod->started_ms = pod->exited_ms = 0;
    pod->exited = true;
    cluster_do(cluster, "wait 10000; pass");
    assert_int_equal(cluster->status.goodput.now, GOODPUT_RECOVERY);
    assert_int_equal(spent_s(cluster, GOODPUT_UNTOLD), 70);
    cluster_close(cluster);
}

/* Who resumes before a pass has seen the pods go. */
static void a_short_pause_is_one(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "");
    tell_of(cluster, 30, 8, 60, 60);
    cluster_do(cluster, "wait 68000; pass; suspend; pass; wait 50000; gone master-0; resume; pass");
    /* what was told is told again, by who asked the pod that is gone */
    tell_of(cluster, 30, 8, 60, 60);
    cluster_do(cluster, "untold; pass");
    expect_kinds(cluster, (int64_t[GOODPUT_KINDS]){[GOODPUT_PENDING] = 10,
                                                   [GOODPUT_CONTAINER_START] = 20,
                                                   [TRAINING_SPENT_INITIALIZATION] = 8,
                                                   [TRAINING_SPENT_STEP] = 60,
                                                   [TRAINING_SPENT_OTHER] = 0,
                                                   [GOODPUT_SUSPENDED] = 50});
}

/* What ran before the pause does not run again: its new pods wait for nodes. */
static void who_resumes_at_once_waits(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "");
    cluster_do(cluster, "wait 68000; pass; suspend; pass; wait 50000; gone master-0; resume; pass");
    assert_int_equal(cluster->status.goodput.now, GOODPUT_PENDING);
    cluster_do(cluster, "wait 20000; run *; pass");
    assert_int_equal(spent_s(cluster, GOODPUT_RECOVERY), 0);
    cluster_close(cluster);
}

/* The last failure of a job is its end, and not a recovery. */
static void a_job_that_fails_does_not_recover(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(1, 0, "backoffLimit: 0");
    tell_of(cluster, 30, 8, 60, 60);
    cluster_do(cluster, "wait 68000; pass; untold; wait 7000; fail master-0 1; pass");
    assert_true(cluster->status.completion_ms == cluster->now_ms);
    expect_kinds(cluster, (int64_t[GOODPUT_KINDS]){[GOODPUT_PENDING] = 10,
                                                   [GOODPUT_CONTAINER_START] = 20,
                                                   [TRAINING_SPENT_INITIALIZATION] = 8,
                                                   [TRAINING_SPENT_STEP] = 60,
                                                   [TRAINING_SPENT_OTHER] = 7});
}

/* Of a job without a master rank 0 may be done before the others. */
static void who_is_done_does_not_recover(void **state)
{
    (void)state;
    struct cluster *cluster = open_started(0, 2, "");
    tell_of(cluster, 30, 8, 60, 60);
    cluster_do(cluster, "wait 68000; pass; untold; exit worker-0 0; pass; wait 60000; pass");
    assert_int_equal(cluster->status.goodput.now, TRAINING_SPENT_OTHER);
    cluster_do(cluster, "exit worker-1 0; pass");
    expect_kinds(cluster, (int64_t[GOODPUT_KINDS]){[GOODPUT_PENDING] = 10,
                                                   [GOODPUT_CONTAINER_START] = 20,
                                                   [TRAINING_SPENT_INITIALIZATION] = 8,
                                                   [TRAINING_SPENT_STEP] = 60,
                                                   [TRAINING_SPENT_OTHER] = 60});
}

static void tell_restarts(struct cluster *cluster, int64_t restarts)
{
    tell_of(cluster, 30 + restarts, 1, 0, 1);
    cluster->told.restarts = restarts;
    cluster_do(cluster, "pass; pass");
}

/* What launchers start again is counted once, beside the failures of replicas; SHOAL_RESTART_COUNT
 * has both, for the pod that is. */
static void restarts_of_ranks_are_counted(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "ExitCode", "", "");
    const struct history *history = &cluster->status.history;
    cluster_do(cluster, RUNS "pass");
    tell_restarts(cluster, 0);
    tell_restarts(cluster, 2);
    tell_restarts(cluster, 2);
    assert_int_equal(history->rank_restarts, 2);
    tell_restarts(cluster, 3);
    cluster_do(cluster, "untold; exit master-0 138; settle; wait 600000; settle; run *; settle");
    assert_int_equal(history->restarts, 1);
    tell_restarts(cluster, 1); /* another pod, which began with the one of its replica */
    assert_int_equal(history->rank_restarts, 3);
    tell_restarts(cluster, 2);
    assert_int_equal(history->rank_restarts, 4);
    struct json *json = manifest_status(cluster->job, &cluster->status);
    assert_int_equal(json_as_integer(json_get(json, "restarts")), 5);
    json_free(json);
    cluster_close(cluster);
}

/* A server that keeps the history and drops how the training goes. */
static void restarts_of_ranks_are_counted_once_where_they_are_dropped(void **state)
{
    (void)state;
    static const struct training dropped;
    for (int all = 0; all < 2; all++) {
        struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
        cluster_do(cluster, RUNS "pass");
        for (int pass = 0; pass < 3; pass++) {
            tell_restarts(cluster, 2);
            cluster->status.training.restarts = -1;
            if (all)
                cluster->status.training = dropped;
            assert_int_equal(cluster->status.history.rank_restarts, 2);
        }
        tell_restarts(cluster, 3);
        assert_int_equal(cluster->status.history.rank_restarts, 3);
        cluster_close(cluster);
    }
}

/* A job that is resumed has other pods, which begin to count anew. */
static void restarts_of_ranks_are_counted_after_a_pause(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster_do(cluster, RUNS "pass");
    tell_restarts(cluster, 0);
    tell_restarts(cluster, 2);
    const struct training told = cluster->told;
    cluster_do(cluster, "untold; suspend; settle; wait 5000; resume; settle");
    cluster->told = told; /* by who asked the pod that is gone */
    cluster_do(cluster, "pass");
    assert_int_equal(cluster->status.history.rank_restarts, 2);
    cluster_do(cluster, "untold; suspend; settle; wait 5000; resume; settle; run *; settle");
    tell_restarts(cluster, 1);
    assert_int_equal(cluster->status.history.rank_restarts, 3);
    cluster_close(cluster);
}

/* The kubelet starts a container again: it is told the same as before. */
static void restarts_of_containers_are_no_ranks(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 0, "OnFailure", "", "");
    cluster_do(cluster, RUNS "pass");
    tell_restarts(cluster, 1);
    cluster_do(cluster, "untold");
    cluster_pod(cluster, "j-master-0")->restart_count = 1;
    cluster_do(cluster, "settle");
    tell_restarts(cluster, 0);
    assert_int_equal(cluster->status.history.restarts, 1);
    assert_int_equal(cluster->status.history.rank_restarts, 1);
    tell_restarts(cluster, 1);
    assert_int_equal(cluster->status.history.rank_restarts, 2);
    cluster_close(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_tell_the_story),
        cmocka_unit_test(the_status_has_the_numbers),
        cmocka_unit_test(the_time_of_a_job_adds_up),
        cmocka_unit_test(what_goes_on_costs_no_write),
        cmocka_unit_test(what_is_dropped_is_not_accounted_for),
        cmocka_unit_test(what_goes_on_is_not_written_where_it_is_dropped),
        cmocka_unit_test(another_program_is_untold),
        cmocka_unit_test(an_end_without_a_time_is_when_it_is_seen),
        cmocka_unit_test(a_short_pause_is_one),
        cmocka_unit_test(who_resumes_at_once_waits),
        cmocka_unit_test(a_job_that_fails_does_not_recover),
        cmocka_unit_test(who_is_done_does_not_recover),
        cmocka_unit_test(restarts_of_ranks_are_counted),
        cmocka_unit_test(restarts_of_ranks_are_counted_once_where_they_are_dropped),
        cmocka_unit_test(restarts_of_ranks_are_counted_after_a_pause),
        cmocka_unit_test(restarts_of_containers_are_no_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
