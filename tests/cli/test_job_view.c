/* The end of `shoal run` as people see it: where the time went, also of a job that is stopped. */
#include "cli/job_view.h"

#include "base/mem.h"
#include "operator/job/condition.h"
#include "tests/cli/command.h"
#include "tests/support.h"

#define CREATED_MS INT64_C(1767225600000)
#define NOW_MS     (CREATED_MS + 60000)
#define REPLICAS   "REPLICA  STATE       RESTARTS  EXIT CODE  LOG\n"

static const struct job job = {.name = "job", .created_ms = CREATED_MS};
static struct job_view view;
static struct job_status status;

static int summarize(int argc, char *const *argv)
{
    (void)argc, (void)argv;
    job_view_summarize(&view, &status, NOW_MS);
    return 0;
}

static void expect(const char *text)
{
    struct command_result result = command_run_with(summarize, (const char *const[]){NULL});
    assert_string_equal(result.err, text);
    assert_string_equal(result.out, "");
    command_forget(&result);
}

/* A process that began after 10 s, and has trained since. */
static struct training told_at(int64_t steps_s)
{
    struct training told = training_open();
    told.process_ms = CREATED_MS + 10000;
    told.resumed_step = 0;
    told.step = steps_s;
    told.spent_ms[TRAINING_SPENT_STEP] = 1000 * steps_s;
    return told;
}

/* The last pass was 40 s after the job's creation. */
static int set_up(void **state)
{
    (void)state;
    view = (struct job_view){.job = &job, .started_ms = CREATED_MS};
    status = (struct job_status){.training = told_at(30)};
    status.goodput = (struct goodput){.known = true, .now = GOODPUT_INSIDE, .furthest_step = 30};
    status.goodput.ms[GOODPUT_CONTAINER_START] = 10000;
    status.goodput.ms[TRAINING_SPENT_STEP] = 30000;
    condition_set(&status, CONDITION_RUNNING, true, "r", "m", CREATED_MS);
    return 0;
}

/* After Ctrl-C there are no passes: what came in and went by since is in the table all the same. */
static void a_run_that_is_stopped_adds_up(void **state)
{
    (void)state;
    view.reports.training = told_at(45);
    expect(REPLICAS "Where 1m0s went: goodput 75.0%\n"
                    "  step                   45s  75.0%\n"
                    "  containerStart         10s  16.7%\n"
                    "  other                 5.0s   8.3%\n"
                    "job was stopped after 1m00s\n");
}

/* The last pass has closed the account: what an agent says on its way out comes too late. */
static void a_run_that_is_over_stays_as_it_was_told(void **state)
{
    (void)state;
    condition_set(&status, CONDITION_SUCCEEDED, true, "r", "m", CREATED_MS + 40000);
    view.reports.training = told_at(45);
    expect(REPLICAS "Where 40s went: goodput 75.0%\n"
                    "  step                   30s  75.0%\n"
                    "  containerStart         10s  25.0%\n"
                    "job Succeeded in 1m00s\n");
}

/* Both are cut, and both have tenths where whole seconds say little. */
static void a_short_run_has_one_time(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {9, REPLICAS "Where 0.0s went: goodput 100.0%\n"
                     "  step                  0.0s 100.0%\n"
                     "job Succeeded in 0.0s\n"},
        {9699, REPLICAS "Where 9.6s went: goodput 100.0%\n"
                        "  step                  9.6s 100.0%\n"
                        "job Succeeded in 9.6s\n"},
        {9999, REPLICAS "Where 9.9s went: goodput 100.0%\n"
                        "  step                  9.9s 100.0%\n"
                        "job Succeeded in 9.9s\n"},
        {10999, REPLICAS "Where 10s went: goodput 100.0%\n"
                         "  step                   10s 100.0%\n"
                         "job Succeeded in 10s\n"},
    };
    condition_set(&status, CONDITION_SUCCEEDED, true, "r", "m", CREATED_MS);
    for (size_t i = 0; i < array_length(rows); i++) {
        status.goodput = (struct goodput){.known = true};
        status.goodput.ms[TRAINING_SPENT_STEP] = rows[i].ms;
        view.started_ms = NOW_MS - rows[i].ms;
        expect(rows[i].text);
    }
}

/* They are those of `shoal top`, and of no replica. */
static void restarts_of_ranks_are_counted(void **state)
{
    (void)state;
    condition_set(&status, CONDITION_SUCCEEDED, true, "r", "m", CREATED_MS + 40000);
    status.goodput = (struct goodput){0};
    status.history.rank_restarts = 2;
    expect("REPLICA         STATE       RESTARTS  EXIT CODE  LOG\n"
           "ranks in place  -                  2          -  -\n"
           "job Succeeded in 1m00s\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_run_that_is_stopped_adds_up, set_up),
        cmocka_unit_test_setup(a_run_that_is_over_stays_as_it_was_told, set_up),
        cmocka_unit_test_setup(a_short_run_has_one_time, set_up),
        cmocka_unit_test_setup(restarts_of_ranks_are_counted, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
