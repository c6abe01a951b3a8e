/* What the live view, its lines and the closing table look like. */
#include <math.h>

#include "base/mem.h"
#include "cli/changes.h"
#include "cli/screen.h"
#include "tests/support.h"

static const struct local_replica replicas[] = {
    {.name = "mnist-master-0", .state = LOCAL_RUNNING, .exit_code = -1, .log_path = "logs/m"},
    {.name = "mnist-worker-0",
     .state = LOCAL_RUNNING,
     .restarts = 2,
     .exit_code = 138,
     .log_path = "logs/w0"},
    {.name = "mnist-worker-1",
     .state = LOCAL_RESTARTING,
     .failure_code = 138,
     .exit_code = 138,
     .log_path = "logs/w1"},
    {.name = "mnist-worker-10", .state = LOCAL_FAILED, .failure_code = 1, .exit_code = 1},
};

static const struct training nothing;
static const struct series no_losses;
static const struct rank_list no_ranks;

static const struct screen running = {
    .job = "mnist",
    .state = "Running",
    .started_ms = 1000,
    .replicas = replicas,
    .replica_count = 4,
    .training = &nothing,
    .losses = &no_losses,
    .ranks = &no_ranks,
};

static void expect(const struct screen *screen, int columns, int rows, const char *expected)
{
    auto_str struct str out;
    str_init(&out, 16 * 1024);
    screen_render(screen, columns, rows, 104000, &out);
    assert_string_equal(str_text(&out), expected);
}

static void test_replicas(void **state)
{
    (void)state;
    expect(&running, 80, 24,
           "mnist  Running  1m43s\n"
           "  mnist-master-0   Running\n"
           "  mnist-worker-0   Running (restarts: 2)\n"
           "  mnist-worker-1   Restarting 1 (exit code 138)\n"
           "  mnist-worker-10  Failed (exit code 1)\n");
    expect(&running, 40, 24, /* never wrapped, and no half of a number */
           "mnist  Running  1m43s\n"
           "  mnist-master-0   Running\n"
           "  mnist-worker-0   Running\n"
           "  mnist-worker-1   Restarting 1\n"
           "  mnist-worker-10  Failed (exit code 1)\n");
    expect(&running, 25, 24, /* then the names give way */
           "mnist  Running  1m43s\n"
           "  master-0   Running\n"
           "  worker-0   Running\n"
           "  worker-1   Restarting\n"
           "  worker-10  Failed\n");
    expect(&running, 20, 24,
           "mnist  Running\n"
           "  ter-0  Running\n"
           "  ker-0  Running\n"
           "  ker-1  Restarting\n"
           "  er-10  Failed\n");
    expect(&running, 16, 24, /* nor is worker-10 called 0 */
           "mnist  Running\n"
           "  0  Running\n"
           "  0  Running\n"
           "  1  Restarting\n"
           "     Failed\n");
    expect(&running, 80, 7, /* too low for all of them */
           "mnist  Running  1m43s\n"
           "  4 replicas: 2 Running 1 Restarting 1 Failed\n");
    struct screen restarted = running;
    restarted.rank_restarts = 3;
    expect(&restarted, 80, 7,
           "mnist  Running  1m43s  ranks in place (restarts: 3)\n"
           "  4 replicas: 2 Running 1 Restarting 1 Failed\n");
    expect(&restarted, 40, 7, /* no half of it */
           "mnist  Running  1m43s\n"
           "  4 replicas: 2 Running 1 Restarting\n");
}

static void test_progress(void **state)
{
    (void)state;
    struct screen screen = running;
    screen.replica_count = 1;
    screen.progress = (struct progress){.known = true,
                                        .epoch = 2,
                                        .epochs = 3,
                                        .step = 352,
                                        .steps = 705,
                                        .loss = 0.4321,
                                        .has_loss = true,
                                        .samples_per_s = 12345.6,
                                        .seconds_left = 62.9};
    expect(&screen, 80, 24,
           "mnist  Running  1m43s\n"
           "  mnist-master-0  Running\n"
           "  epoch 2/3  step 352/705  loss 0.4321  12346 samples/s  1m02s left\n"
           "  [#############################-------------------------------]  49%\n");
    expect(&screen, 31, 24,
           "mnist  Running  1m43s\n"
           "  mnist-master-0  Running\n"
           "  epoch 2/3  step 352/705\n"
           "  [#########-----------]  49%\n");
    struct training training = training_open();
    struct series losses = {0};
    training.tokens_per_s = 51200;
    screen.training = &training;
    screen.losses = &losses;
    for (int i = 0; i < 8; i++)
        series_add(&losses, &(struct series_point){.step = i, .loss = (float)(8 - i)});
    expect(&screen, 80, 24,
           "mnist  Running  1m43s\n"
           "  mnist-master-0  Running\n"
           "  epoch 2/3  step 352/705  loss 0.4321  51200 tokens/s  1m02s left\n"
           "  [#############################-------------------------------]  49%\n"
           "  loss #*+=-,._\n");
    screen.unicode = true;
    expect(&screen, 12, 24, /* half as wide: each column is two of them */
           "st  Running\n"
           "    Running\n"
           "  epoch 2/3\n"
           "  loss █▆▃▁\n");
    screen.training = &nothing;
    screen.losses = &no_losses;
    series_free(&losses);
    screen.progress = (struct progress){.known = true,
                                        .epoch = -1,
                                        .epochs = -1,
                                        .step = 7,
                                        .steps = -1,
                                        .samples_per_s = -1,
                                        .seconds_left = -1};
    expect(&screen, 80, 24,
           "mnist  Running  1m43s\n"
           "  mnist-master-0  Running\n"
           "  step 7\n");
    screen.progress.step = 12; /* beyond the end */
    screen.progress.steps = 10;
    expect(&screen, 21, 24,
           "mnist  Running\n"
           "  master-0  Running\n"
           "  step 12/10\n"
           "  [##########] 100%\n");
    expect(&screen, 12, 24, /* "step 12/1" would be another number */
           "st  Running\n"
           "    Running\n"
           "\n");
    expect(&screen, 1, 24, "\n\n\n");
}

/* Only what the run tells operators says whether it counts tokens or samples. Programs that send
 * progress alone count samples. Without a speed there is no time left to tell: it is 0. */
static void test_speed(void **state)
{
    (void)state;
    static const struct {
        bool known;
        double tokens_per_s, samples_per_s, progress_samples_per_s;
        const char *line;
    } rows[] = {
        {false, NAN, NAN, 0, "  step 7\n"},
        {false, NAN, NAN, 64, "  step 7  64 samples/s\n"},
        {true, NAN, NAN, 0, "  step 7\n"}, /* a process has just begun, or begun again */
        {true, NAN, NAN, 64, "  step 7\n"},
        {true, 51200, 50, 64, "  step 7  51200 tokens/s\n"},
        {true, NAN, 50, 64, "  step 7  50 samples/s\n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct screen screen = running;
        struct training training = training_open();
        training.known = rows[i].known;
        training.tokens_per_s = rows[i].tokens_per_s;
        training.samples_per_s = rows[i].samples_per_s;
        screen.replica_count = 0;
        screen.training = &training;
        screen.progress = (struct progress){.known = true,
                                            .epoch = -1,
                                            .step = 7,
                                            .steps = -1,
                                            .samples_per_s = rows[i].progress_samples_per_s,
                                            .seconds_left = 0};
        auto_str struct str expected;
        str_init(&expected, 256);
        str_printf(&expected, "mnist  Running  1m43s\n%s", rows[i].line);
        expect(&screen, 80, 24, str_text(&expected));
    }
}

static void test_ranks(void **state)
{
    (void)state;
    static const struct rank_list ranks = {
        .items = {{.rank = 0, .phase = "step", .compute_ratio = 1},
                  {.rank = 1, .phase = "step", .waits = true, .compute_ratio = 0.5},
                  {.rank = 2, .phase = "step", .straggles = true, .compute_ratio = 2},
                  {.rank = 10, .phase = "data", .hangs = true}},
        .count = 4};
    struct screen screen = running;
    screen.replica_count = 1;
    screen.ranks = &ranks;
    screen.progress = (struct progress){.known = true,
                                        .epoch = -1,
                                        .step = 7,
                                        .steps = -1,
                                        .samples_per_s = -1,
                                        .seconds_left = -1};
    expect(&screen, 80, 24,
           "mnist  Running  1m43s\n"
           "  mnist-master-0  Running\n"
           "  step 7\n"
           "  rank 0    [##########----------] 1.00x  step\n"
           "  rank 1    [#####---------------] 0.50x  waits\n"
           "  rank 2    [####################] 2.00x  straggles\n"
           "  rank 10    hangs\n");
    /* too low: only those that are not well; the last row is the cursor's */
    expect(&screen, 40, 7,
           "mnist  Running  1m43s\n"
           "  mnist-master-0  Running\n"
           "  step 7\n"
           "  rank 2    [########] 2.00x  straggles\n"
           "  rank 10    hangs\n");
    expect(&screen, 20, 24,
           "mnist  Running\n"
           "  master-0  Running\n"
           "  step 7\n"
           "  rank 0     step\n"
           "  rank 1     waits\n"
           "  rank 2     stragg\n"
           "  rank 10    hangs\n");
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {{-5, "0s"},
                {999, "0s"},
                {59999, "59s"},
                {60000, "1m00s"},
                {103000, "1m43s"},
                {3599000, "59m59s"},
                {3600000, "1h00m00s"},
                {3723000, "1h02m03s"},
                {360000000, "100h00m00s"}};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_str struct str out;
        str_init(&out, 64);
        screen_duration(rows[i].ms, &out);
        assert_string_equal(str_text(&out), rows[i].text);
    }
}

static void test_summary(void **state)
{
    (void)state;
    auto_str struct str out;
    str_init(&out, 4096);
    screen_summary(replicas, 4, 0, &out);
    assert_string_equal(str_text(&out),
                        "REPLICA          STATE       RESTARTS  EXIT CODE  LOG\n"
                        "mnist-master-0   Running            0          -  logs/m\n"
                        "mnist-worker-0   Running            2        138  logs/w0\n"
                        "mnist-worker-1   Restarting         0        138  logs/w1\n"
                        "mnist-worker-10  Failed             0          1  -\n");
    static const struct local_replica short_name = {.name = "m", .state = LOCAL_SUCCEEDED};
    str_clear(&out);
    screen_summary(&short_name, 1, 2, &out);
    assert_string_equal(str_text(&out), "REPLICA         STATE       RESTARTS  EXIT CODE  LOG\n"
                                        "m               Succeeded          0          0  -\n"
                                        "ranks in place  -                  2          -  -\n");
}

static void test_last_failure(void **state)
{
    (void)state;
    static const struct local_replica all[] = {
        {.name = "a"},
        {.name = "b", .failures = 2, .failure_code = 9, .failed_ms = 70, .log_path = "logs/b"},
        {.name = "c", .failures = 1, .failure_code = 138, .failed_ms = 90, .log_path = "logs/c"},
        {.name = "d", .failures = 1, .failure_code = 1, .failed_ms = 90, .log_path = "logs/d"},
    };
    static const char *const said[] = {"", "", "; last failure: b with exit code 9, see logs/b",
                                       "; last failure: c with exit code 138, see logs/c",
                                       "; last failure: c with exit code 138, see logs/c"};
    for (size_t count = 0; count <= array_length(all); count++) {
        auto_str struct str out;
        str_init(&out, 4096);
        screen_last_failure(all, count, &out);
        assert_string_equal(str_text(&out), said[count]);
    }
}

static const struct changes_job going = {.failures = 1, .limit = 6},
                                unlimited = {.failures = 1, .limit = -1},
                                over = {.finished = true, .failures = 7, .limit = 6};

static const struct {
    struct local_replica before, after;
    const struct changes_job *job;
    bool quiet;
    const char *said;
} changes[] = {
    {{.state = LOCAL_PENDING}, {.state = LOCAL_PENDING}, &going, false, ""},
    {{.state = LOCAL_PENDING}, {.state = LOCAL_RUNNING}, &going, false, "w: Pending -> Running\n"},
    {{.state = LOCAL_PENDING}, {.state = LOCAL_RUNNING}, &going, true, ""},
    {{.state = LOCAL_RUNNING},
     {.state = LOCAL_RESTARTING, .failures = 1, .failure_code = 138},
     &going,
     false,
     "w: Running -> Failed (exit code 138), restart 1 of 6\n"},
    {{.state = LOCAL_RUNNING},
     {.state = LOCAL_RESTARTING, .failures = 1, .failure_code = 138},
     &unlimited,
     true,
     "w: Running -> Failed (exit code 138), restart 1\n"},
    {{.state = LOCAL_RUNNING},
     {.state = LOCAL_RUNNING, .failures = 1, .failure_code = 1, .restarts = 1},
     &going,
     false,
     "w: Running -> Failed (exit code 1), restart 1 of 6\n"
     "w: Restarting -> Running (restart 1)\n"},
    {{.state = LOCAL_RUNNING},
     {.state = LOCAL_FAILED, .failures = 1, .failure_code = 1},
     &over,
     false,
     "w: Running -> Failed (exit code 1)\n"},
    {{.state = LOCAL_RUNNING}, /* the last failure of all, beside containers that go on */
     {.state = LOCAL_STOPPING, .failures = 1, .failure_code = 1},
     &over,
     false,
     "w: Running -> Failed (exit code 1)\n"
     "w: Failed -> Stopping\n"},
    {{.state = LOCAL_RUNNING},
     {.state = LOCAL_RUNNING, .failures = 1, .failure_code = 139, .runs_on = true},
     &going,
     false,
     "w: a container failed (exit code 139), its pod runs on\n"},
    {{.state = LOCAL_RUNNING},
     {.state = LOCAL_RUNNING, .repeats = 1, .restarts = 1},
     &going,
     false,
     "w: Running -> Succeeded (exit code 0), starts again\n"
     "w: Restarting -> Running (restart 1)\n"},
    {{.state = LOCAL_RUNNING},
     {.state = LOCAL_SUCCEEDED, .repeats = 1},
     &over,
     true,
     "w: Running -> Succeeded (exit code 0)\n"},
    {{.state = LOCAL_STOPPED, .restarts = 1},
     {.state = LOCAL_RUNNING, .restarts = 2},
     &going,
     false,
     "w: Stopped -> Running (restart 2)\n"},
    {{.state = LOCAL_RUNNING}, {.state = LOCAL_STOPPING}, &over, false, "w: Running -> Stopping\n"},
};

static void test_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(changes); i++) {
        auto_str struct str out;
        str_init(&out, 4096);
        struct local_replica after = changes[i].after;
        after.name = "w";
        changes_print(&changes[i].before, &after, changes[i].job, changes[i].quiet, &out);
        assert_string_equal(str_text(&out), changes[i].said);
    }
}

static void test_rank_restarts(void **state)
{
    (void)state;
    auto_str struct str out;
    str_init(&out, 4096);
    changes_print_ranks("mnist", 0, 0, &out);
    changes_print_ranks("mnist", 2, 2, &out);
    assert_string_equal(str_text(&out), "");
    changes_print_ranks("mnist", 0, 1, &out);
    changes_print_ranks("mnist", 1, 3, &out);
    assert_string_equal(str_text(&out), "mnist: ranks restarted in place (restart 1)\n"
                                        "mnist: ranks restarted in place (restart 3)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas),      cmocka_unit_test(test_progress),
        cmocka_unit_test(test_durations),     cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_summary),       cmocka_unit_test(test_changes),
        cmocka_unit_test(test_speed),         cmocka_unit_test(test_last_failure),
        cmocka_unit_test(test_rank_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
