/* What a job's story looks like: facts to text, at several widths. */
#include "tests/support.h"

#include "base/mem.h"
#include "cli/layout.h"
#include "cli/story.h"

#include <string.h>

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };
#define NOW_MS INT64_C(1767225600000)

static const struct condition conditions[] = {
    {.type = CONDITION_CREATED,
     .status = true,
     .reason = "PyTorchJobCreated",
     .message = "PyTorchJob llama is created.",
     .transition_ms = NOW_MS - 3 * HOUR},
    {.type = CONDITION_RESTARTING,
     .status = false,
     .reason = "PyTorchJobRestarting",
     .message = "not any more",
     .transition_ms = NOW_MS - 2 * HOUR},
    {.type = CONDITION_RUNNING,
     .status = true,
     .reason = "PyTorchJobRunning",
     .message = "PyTorchJob llama is running.",
     .transition_ms = NOW_MS - 2 * HOUR},
};

static const struct pod_facts pods[] = {
    {.name = "llama-master-0",
     .node = "gpu-1",
     .state = "Running",
     .type = REPLICA_MASTER,
     .reason = "",
     .message = "",
     .created_ms = NOW_MS - 3 * HOUR,
     .has_run = true},
    {.name = "llama-worker-0",
     .node = "",
     .state = "Pending",
     .type = REPLICA_WORKER,
     .reason = "Unschedulable",
     .message = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
     .restarts = 2,
     .created_ms = NOW_MS - 90 * SECOND,
     .is_stuck = true},
};

static const struct event_facts events[] = {
    {.time_ms = NOW_MS - 2 * HOUR,
     .count = 3,
     .type = "Normal",
     .reason = "PyTorchJobRunning",
     .message = "PyTorchJob llama is running."},
    {.time_ms = NOW_MS - 5 * MINUTE,
     .count = 1,
     .type = "Normal",
     .reason = "CheckpointSaved",
     .message = "A checkpoint is kept of step 1000"},
};

static struct job_facts a_job(void)
{
    struct job_facts job = {
        .name = "llama",
        .namespace_ = "ml",
        .uid = "u",
        .state = "Running",
        .created_ms = NOW_MS - 3 * HOUR,
        .conditions = conditions,
        .condition_count = array_length(conditions),
        .replicas = {1, 1},
        .active = 1,
        .gpus = 16,
        .failures = 2,
        .limit = 6,
        .restarts = 2,
        .avoided = "",
        .training = training_open(),
        .goodput = {.known = true},
    };
    job.training.step = 1200;
    job.training.steps = 5000;
    job.training.loss = 2.3125;
    job.training.tokens_per_s = 51200;
    job.training.mfu = 0.4125;
    job.training.seconds_left = 4800;
    job.training.world_size = 16;
    job.training.checkpoint_step = 1000;
    job.training.checkpoint_ms = NOW_MS - 5 * MINUTE;
    job.training.progress_ms = NOW_MS - 2 * SECOND;
    job.goodput.ms[TRAINING_SPENT_STEP] = 90 * MINUTE;
    job.goodput.ms[GOODPUT_PENDING] = 30 * MINUTE;
    return job;
}

static const struct story *a_story(const struct job_facts *job)
{
    static struct story story;
    story = (struct story){.job = job,
                           .pods = pods,
                           .pod_count = array_length(pods),
                           .events = events,
                           .event_count = array_length(events)};
    return &story;
}

static void expect(const struct story *story, int columns, const char *expected)
{
    auto_str struct str out;
    str_init(&out, 64 * 1024);
    story_render(story, columns, NOW_MS, &out);
    assert_string_equal(str_text(&out), expected);
}

static void a_job_that_runs(void **state)
{
    (void)state;
    struct job_facts job = a_job();
    static const char *const wide =
        "llama in namespace ml: Running for 2h0m\n"
        "  PyTorchJob llama is running.\n"
        "\n"
        "  training    step 1200/5000, loss 2.3125, 16 ranks\n"
        "              [############--------------------------------------]  24%\n"
        "  speed       51200 tokens/s, MFU 41.2%, 1h20m left, last progress 2s ago\n"
        "  checkpoint  step 1000, 5m0s ago\n"
        "  replicas    1 Master, 1 Worker, 1 active, 16 GPUs\n"
        "  restarts    2 of 6 that backoffLimit allows\n"
        "\n"
        "REPLICA         STATE    NODE   RESTARTS    AGE\n"
        "llama-master-0  Running  gpu-1         0   3h0m\n"
        "llama-worker-0  Pending  -             2  1m30s\n"
        "    Unschedulable: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.\n"
        "\n"
        "Where 2h0m went: goodput 75.0%\n"
        "  step                 1h30m  75.0%\n"
        "  pending              30m0s  25.0%\n"
        "\n"
        "What happened:\n"
        "    3h0m ago  PyTorchJobCreated: PyTorchJob llama is created.\n"
        "    2h0m ago  PyTorchJobRunning (3 times): PyTorchJob llama is running.\n"
        "    5m0s ago  CheckpointSaved: A checkpoint is kept of step 1000\n"
        "\n"
        "Next: kubectl describe pod -n ml llama-worker-0\n";
    expect(a_story(&job), 200, wide);
    expect(a_story(&job), LAYOUT_UNLIMITED, wide);
    expect(a_story(&job), 80, wide);
    expect(a_story(&job), 40,
           "llama in namespace ml: Running for 2h0m\n"
           "  PyTorchJob llama is running.\n"
           "\n"
           "  training    step 1200/5000, loss\n"
           "              2.3125, 16 ranks\n"
           "              [####--------------]  24%\n"
           "  speed       51200 tokens/s, MFU\n"
           "              41.2%, 1h20m left, last\n"
           "              progress 2s ago\n"
           "  checkpoint  step 1000, 5m0s ago\n"
           "  replicas    1 Master, 1 Worker, 1\n"
           "              active, 16 GPUs\n"
           "  restarts    2 of 6 that backoffLimit\n"
           "              allows\n"
           "\n"
           "REPLICA         STATE      AGE\n"
           "llama-master-0  Running   3h0m\n"
           "llama-worker-0  Pending  1m30s\n"
           "    Unschedulable: 0/4 nodes are\n"
           "    available: 4 Insufficient\n"
           "    nvidia.com/gpu.\n"
           "\n"
           "Where 2h0m went: goodput 75.0%\n"
           "  step                 1h30m  75.0%\n"
           "  pending              30m0s  25.0%\n"
           "\n"
           "What happened:\n"
           "    3h0m ago  PyTorchJobCreated:\n"
           "    PyTorchJob llama is created.\n"
           "    2h0m ago  PyTorchJobRunning (3\n"
           "    times): PyTorchJob llama is\n"
           "    running.\n"
           "    5m0s ago  CheckpointSaved: A\n"
           "    checkpoint is kept of step 1000\n"
           "\n"
           "Next: kubectl describe pod -n ml llama-worker-0\n");
}

static void ends_with(const struct story *story, const char *part, const char *end)
{
    auto_str struct str out;
    str_init(&out, 64 * 1024);
    story_render(story, 80, NOW_MS, &out);
    const char *text = str_text(&out);
    assert_non_null(strstr(text, part));
    assert_true(strlen(text) > strlen(end));
    assert_string_equal(text + strlen(text) - strlen(end), end);
}

static void what_to_look_at_next(void **state)
{
    (void)state;
    struct job_facts job = a_job();
    struct pod_facts few[2] = {pods[0], pods[1]};
    struct story story = *a_story(&job);
    story.pods = few;
    few[1].is_stuck = false;
    few[1].reason = few[1].message = "";
    ends_with(&story, "Running", "\nNext: kubectl logs -n ml llama-master-0 -c pytorch -f\n");
    /* a worker that has its node looks for its master */
    few[0].has_run = false;
    few[0].state = "Pending";
    few[1].node = "gpu-2";
    ends_with(&story, "\n    waits for llama-master-0, which does not run yet\n",
              "\nNext: kubectl describe pytorchjob -n ml llama\n");
}

/* Of a run of this machine: the logs are files. */
static void what_to_look_at_next_here(void **state)
{
    (void)state;
    struct job_facts job = a_job();
    struct pod_facts few[2] = {pods[0], pods[1]};
    struct story story = *a_story(&job);
    story.pods = few;
    story.is_local = true;
    story.page = "http://127.0.0.1:9401/";
    few[1].is_stuck = false;
    ends_with(&story, "\n  page        http://127.0.0.1:9401/\n\nREPLICA ",
              "\nNext: shoal top --local\n"); /* nothing has begun to write */
    few[0].log = "/l/llama-master-0.log";
    few[1].log = "/my l'ogs/w;rm.log";
    ends_with(&story, "Running", "\nNext: tail -n 50 -f /l/llama-master-0.log\n");
    few[1].has_failed = true;
    ends_with(&story, "Running", "\nNext: tail -n 50 '/my l'\\''ogs/w;rm.log'\n");
    few[1].has_failed = false;
    few[1].is_stuck = true;
    ends_with(&story, "Running", "\nNext: tail -n 50 '/my l'\\''ogs/w;rm.log'\n");
    struct condition last = conditions[2];
    last.type = CONDITION_SUCCEEDED;
    job.conditions = &last;
    job.condition_count = 1;
    few[1].is_stuck = false;
    ends_with(&story, "Running", "\nNext: tail -n 50 /l/llama-master-0.log\n");
}

static void a_job_that_rests(void **state)
{
    (void)state;
    struct job_facts job = a_job();
    struct pod_facts one = pods[0];
    struct condition last = conditions[2];
    struct story story = {.job = &job};
    job.condition_count = 0;
    job.state = "New";
    job.training.known = job.goodput.known = false;
    expect(&story, 80,
           "llama in namespace ml: New for 3h0m\n"
           "\n"
           "  replicas    1 Master, 1 Worker, 1 active, 16 GPUs\n"
           "  restarts    2 of 6 that backoffLimit allows\n"
           "\n"
           "It has no pods.\n"
           "\n"
           "Next: no operator has looked at it yet; is one there? kubectl get pods -A -l "
           "app.kubernetes.io/name=shoal\n");
    job.conditions = &last;
    job.condition_count = 1;
    last.type = CONDITION_SUSPENDED;
    ends_with(&story, "It has no pods.\n",
              "resume it: kubectl patch pytorchjob -n ml llama --type merge -p "
              "'{\"spec\":{\"runPolicy\":{\"suspend\":false}}}'\n");
    last.type = CONDITION_FAILED;
    job.state = "Failed";
    job.completion_ms = NOW_MS - HOUR;
    story.pods = &one;
    story.pod_count = 1;
    one.state = "Failed";
    one.reason = "Error";
    one.message = "container pytorch ended with exit code 1 (Error)";
    one.has_failed = true;
    ends_with(&story, "llama in namespace ml: Failed 2h0m ago, 2h0m after its creation\n",
              "\nNext: kubectl logs -n ml llama-master-0 -c pytorch\n");
    one.state = "Running";
    ends_with(&story, "\n    Error: container pytorch ended with exit code 1 (Error)\n",
              "\nNext: kubectl logs -n ml llama-master-0 -c pytorch --previous\n");
}

/* Of a program that is no agent it is known that it ran. */
static void what_nobody_told_is_no_table(void **state)
{
    (void)state;
    struct job_facts job = a_job();
    memset(job.goodput.ms, 0, sizeof job.goodput.ms);
    job.goodput.ms[GOODPUT_UNTOLD] = 90 * MINUTE;
    job.goodput.ms[GOODPUT_CONTAINER_START] = 200;
    auto_str struct str out;
    str_init(&out, 64 * 1024);
    story_render(a_story(&job), 80, NOW_MS, &out);
    assert_null(strstr(str_text(&out), "went"));
    job.goodput.ms[GOODPUT_CONTAINER_START] = 30 * MINUTE;
    ends_with(a_story(&job), "\nWhere 2h0m went:\n  untold               1h30m  75.0%\n", "\n");
}

static void a_rank_that_hangs(void **state)
{
    (void)state;
    struct job_facts job = a_job();
    job.training.hung_rank = 9;
    job.training.hung_node = 1;
    job.has_fixed_nodes = true;
    job.avoided = "gpu-3,gpu-4";
    ends_with(a_story(&job),
              "  hang        rank 9 (llama-worker-0) makes no progress, the others wait for it\n",
              "\n");
    /* by its name, also where the master's pod is gone */
    struct story alone = {.job = &job, .pods = pods + 1, .pod_count = 1};
    ends_with(&alone, "  hang        rank 9 (llama-worker-0) makes", "\n");
    job.training.hung_node = 0;
    ends_with(&alone, "  hang        rank 9 makes", "\n");
    job.has_fixed_nodes = false; /* which pod's it is nobody knows */
    ends_with(a_story(&job), "  hang        rank 9 makes", "\n");
    ends_with(a_story(&job), "  bad nodes   gpu-3,gpu-4\n", "\n");
}

/* Those of ranks in their containers are no failures, which alone have a limit. */
static void restarts_are_told_by_what_they_count_against(void **state)
{
    (void)state;
    static const struct {
        int64_t restarts, of_ranks, limit;
        const char *text;
    } rows[] = {
        {0, 0, 3, "0 of 3 that backoffLimit allows"},
        {0, 0, 0, "0 of 0 that backoffLimit allows"},
        {3, 0, 3, "3 of 3 that backoffLimit allows"},
        {5, 3, 6,
         "2 of 6 that backoffLimit allows, and 3 of ranks in their\n              containers"},
        {2, 0, -1, "2 after failures"},
        {4, 4, -1, "0 after failures, and 4 of ranks in their containers"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct job_facts job = a_job();
        job.restarts = rows[i].restarts;
        job.rank_restarts = rows[i].of_ranks;
        job.limit = rows[i].limit;
        auto_free char *line = xasprintf("\n  restarts    %s\n", rows[i].text);
        ends_with(a_story(&job), line, "\n");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_runs),
        cmocka_unit_test(what_to_look_at_next),
        cmocka_unit_test(what_to_look_at_next_here),
        cmocka_unit_test(a_job_that_rests),
        cmocka_unit_test(a_rank_that_hangs),
        cmocka_unit_test(what_nobody_told_is_no_table),
        cmocka_unit_test(restarts_are_told_by_what_they_count_against),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
