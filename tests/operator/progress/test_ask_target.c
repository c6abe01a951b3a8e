/* Which numbers of a training are the newest: what its agent said, what the status shows, or what
 * its last container left behind. */
#include "operator/progress/ask_target.h"

#include "base/mem.h"
#include "tests/support.h"

#define LEFT_OF(began, step, time)                                                                 \
    "{\"worldSize\":2,\"lastProgressTime\":\"2026-01-01T00:00:" time "Z\",\"step\":" step          \
    ",\"processStartTime\":\"2026-01-01T00:00:" began "Z\",\"seconds\":{\"step\":5}}"
#define LEFT(step, time) LEFT_OF("01", step, time)

/* What the last container left behind counts if it is newer than what is known. */
static void the_newest_numbers_count(void **state)
{
    (void)state;
    static const struct {
        const char *left;
        int64_t shown_ms; /* seconds of that minute; -1: nothing is shown */
        int heard_s;      /* likewise */
        int step;         /* -1: no news */
    } rows[] = {
        {NULL, -1, -1, -1},
        {LEFT("7", "20"), -1, -1, 7},
        {LEFT("7", "20"), 10, -1, 7},
        {LEFT("7", "20"), 20, -1, -1},
        {LEFT("7", "20"), 30, -1, -1},
        {LEFT("7", "20"), -1, 10, 7},
        {LEFT("7", "20"), -1, 30, 3},
        {"Error: out of memory", -1, -1, -1},
        {"{}", -1, 10, 3},
        {NULL, 30, 10, 3},
        /* within the second, of the same process: further, or with more time spent */
        {LEFT_OF("00", "7", "20"), -1, 20, 7},
        {LEFT_OF("00", "3", "20"), -1, 20, 3},
        {LEFT_OF("00", "2", "20"), -1, 20, 3},
        {LEFT("7", "20"), -1, 20, 3},
        {LEFT_OF("00", "4", "20"), 20, -1, 4},
        {LEFT_OF("00", "3", "20"), 20, -1, 3},
        {LEFT_OF("00", "2", "20"), 20, -1, -1},
    };
    struct job job = {.name = "j", .namespace_ = "ns", .uid = "job"};
    struct pod pod = {
        .name = "j-master-0", .uid = "u1", .owner_uid = "job", .type = REPLICA_MASTER};
    struct job_status status = {.condition_count = 0};
    const struct snapshot snapshot = {.job = &job, .status = &status, .pods = &pod, .pod_count = 1};
    job.replicas[REPLICA_MASTER].present = true;
    for (size_t i = 0; i < array_length(rows); i++) {
        const int64_t minute_ms = INT64_C(1767225600000);
        struct training heard = training_open(), newest;
        heard.step = 3;
        heard.process_ms = minute_ms;
        heard.progress_ms = minute_ms + 1000 * rows[i].heard_s;
        status.training = heard;
        status.training.known = rows[i].shown_ms >= 0;
        status.training.progress_ms =
            rows[i].shown_ms >= 0 ? minute_ms + 1000 * rows[i].shown_ms : 0;
        pod.last_line = rows[i].left;
        bool found = ask_target_newest(&snapshot, rows[i].heard_s >= 0 ? &heard : NULL, &newest);
        if ((found ? newest.step : -1) != rows[i].step)
            fail_msg("row %zu: step %d", i, found ? (int)newest.step : -1);
    }
}

/* Its pods' variable says how its agents call their run. */
static void the_run_is_known_by_the_manifest(void **state)
{
    (void)state;
    static const struct {
        struct env_var var;
        const char *run;
    } rows[] = {
        {{.name = "A", .value = "a"}, "job"},
        {{.name = "SHOAL_RUN_ID", .value = "mine"}, "mine"},
        {{.name = "SHOAL_RUN_ID", .value = "$(A)-1"}, ""},
        {{.name = "SHOAL_RUN_ID", .value = "", .source = ENV_SECRET}, ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct env_var var = rows[i].var;
        struct container container = {.name = "pytorch", .env = &var, .env_count = 1};
        struct job job = {.name = "j", .namespace_ = "ns", .uid = "job"};
        struct pod pod = {.name = "j-master-0",
                          .uid = "u1",
                          .owner_uid = "job",
                          .type = REPLICA_MASTER,
                          .phase = POD_RUNNING,
                          .address = "10.0.0.1"};
        struct job_status status = {.condition_count = 0};
        const struct snapshot snapshot = {
            .job = &job, .status = &status, .pods = &pod, .pod_count = 1};
        struct ask_target target;
        job.replicas[REPLICA_MASTER].present = true;
        job.replicas[REPLICA_MASTER].template_.containers = &container;
        job.replicas[REPLICA_MASTER].template_.container_count = 1;
        assert_true(ask_target_find(&snapshot, &target));
        assert_string_equal(target.run, rows[i].run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_numbers_count),
        cmocka_unit_test(the_run_is_known_by_the_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
