/* Which changes of a status may wait to be written. */
#include "operator/job/job_status.h"

#include "base/mem.h"
#include "operator/job/condition.h"
#include "tests/support.h"

#define NOW_MS 5000

static struct replica_history replicas[1];

static void set(struct job_status *status, enum condition_type type, bool value)
{
    condition_set(status, type, value, "Reason", "message", NOW_MS);
}

static struct job_status status_that(enum condition_type type)
{
    struct job_status status = {.start_ms = 1000, .history.known = true};
    static bool first[] = {true};
    status.replicas[REPLICA_WORKER] =
        (struct replica_status){.present = true, .active = 1, .succeeded = 1};
    status.history.completed[REPLICA_WORKER] = first;
    status.history.completed_count[REPLICA_WORKER] = 1;
    condition_set(&status, CONDITION_CREATED, true, "Created", "message", 1000);
    if (type != CONDITION_CREATED)
        condition_set(&status, type, true, "Reason", "message", 1000);
    return status;
}

static void start_pod(struct job_status *status)
{
    status->replicas[REPLICA_WORKER].active++;
}

static void run(struct job_status *status)
{
    start_pod(status);
    set(status, CONDITION_RUNNING, true);
}

static void train(struct job_status *status)
{
    status->training.known = true;
    status->goodput.ms[0] = 1000;
}

static void stay(struct job_status *status)
{
    (void)status;
}

static void count_failure(struct job_status *status)
{
    status->history.failures++;
}

static void count_of_pod(struct job_status *status)
{
    replicas[0] = (struct replica_history){.uid = "u", .counted = 1};
    status->history.replicas = replicas;
    status->history.replica_count = 1;
}

static void fail_pod(struct job_status *status)
{
    status->replicas[REPLICA_WORKER].failed++;
}

static bool completed[2];

static void complete_pods(struct job_status *status, bool first, bool second)
{
    completed[0] = first;
    completed[1] = second;
    status->history.completed[REPLICA_WORKER] = completed;
    status->history.completed_count[REPLICA_WORKER] = 2;
}

static void succeed_pod(struct job_status *status)
{
    status->replicas[REPLICA_WORKER].succeeded++;
    complete_pods(status, true, true);
}

static void succeed_and_fail(struct job_status *status)
{
    succeed_pod(status);
    status->history.failures++;
}

static void unsucceed_pod(struct job_status *status)
{
    status->replicas[REPLICA_WORKER].succeeded--;
}

static void forget_pod(struct job_status *status)
{
    complete_pods(status, false, true);
}

static void show_type(struct job_status *status)
{
    status->replicas[REPLICA_MASTER].present = true;
}

static void start(struct job_status *status)
{
    status->start_ms = NOW_MS;
}

static void complete(struct job_status *status)
{
    status->completion_ms = NOW_MS;
}

static void create(struct job_status *status)
{
    status->conditions[0].message = "again";
}

static void restart(struct job_status *status)
{
    set(status, CONDITION_RESTARTING, true);
}

static void suspend(struct job_status *status)
{
    set(status, CONDITION_SUSPENDED, true);
}

static void stop(struct job_status *status)
{
    set(status, CONDITION_RUNNING, false);
}

static void succeed(struct job_status *status)
{
    set(status, CONDITION_SUCCEEDED, true);
}

static void lose(struct job_status *status)
{
    set(status, CONDITION_FAILED, true);
}

static void wait(struct job_status *status)
{
    condition_wait(status, "Unschedulable", "no node", NOW_MS);
}

static void wait_no_more(struct job_status *status)
{
    condition_wait(status, NULL, NULL, NOW_MS);
    run(status);
}

static void only_what_is_seen_again_may_wait(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum condition_type was;
        void (*change)(struct job_status *status);
        bool may_wait;
    } rows[] = {
        {"a pod starts", CONDITION_CREATED, start_pod, true},
        {"the job runs", CONDITION_CREATED, run, true},
        {"the job runs again", CONDITION_RESTARTING, run, true},
        {"another pod starts", CONDITION_RUNNING, start_pod, true},
        {"how it trains", CONDITION_RUNNING, train, true},
        {"nothing", CONDITION_RESTARTING, stay, true},
        {"a failure is counted", CONDITION_RUNNING, count_failure, false},
        {"... and the job runs", CONDITION_CREATED, count_of_pod, false},
        {"a pod has failed", CONDITION_RUNNING, fail_pod, false},
        {"a pod has succeeded", CONDITION_RUNNING, succeed_pod, true},
        {"... and a failure is counted", CONDITION_RUNNING, succeed_and_fail, false},
        {"a success is taken back", CONDITION_RUNNING, unsucceed_pod, false},
        {"a replica is complete no more", CONDITION_RUNNING, forget_pod, false},
        {"another replica type", CONDITION_RUNNING, show_type, false},
        {"the job starts", CONDITION_CREATED, start, false},
        {"the job is complete", CONDITION_RUNNING, complete, false},
        {"Created changes", CONDITION_RUNNING, create, false},
        {"it restarts", CONDITION_RUNNING, restart, false},
        {"it restarts before it ran", CONDITION_CREATED, restart, false},
        {"it is suspended", CONDITION_CREATED, suspend, false},
        {"it is resumed", CONDITION_SUSPENDED, stop, false},
        {"it runs no more", CONDITION_RUNNING, stop, false},
        {"it succeeds", CONDITION_RUNNING, succeed, false},
        {"it fails", CONDITION_RUNNING, lose, false},
        {"it waits", CONDITION_CREATED, wait, false},
        {"it waits while it runs", CONDITION_RUNNING, wait, false},
        {"it waits no more", CONDITION_WAITING, wait_no_more, false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct job_status before = status_that(rows[i].was);
        struct job_status after = before;
        rows[i].change(&after);
        if (job_status_may_wait(&before, &after) != rows[i].may_wait)
            fail_msg("%s: may%s wait", rows[i].name, rows[i].may_wait ? " not" : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_seen_again_may_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
