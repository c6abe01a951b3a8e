/* What the kubelet of `shoal run` decides: tables of ends and what follows from them. */
#include "operator/local/local_pod.h"
#include "tests/support.h"

enum { MAX = 4 };

struct fixture {
    struct local_container containers[MAX];
    struct local_pod pod;
    struct local_backoff backoff;
};

static void open_pod(struct fixture *f, enum pod_restart restart, size_t init_count, size_t count)
{
    *f = (struct fixture){.backoff = {.first_ms = 1000, .max_ms = 30000}};
    f->pod = (struct local_pod){.restart = restart,
                                .containers = f->containers,
                                .init_count = init_count,
                                .count = init_count + count};
}

/* Starts what is due at now_ms, as a bit set of indices. */
static unsigned start_due(struct fixture *f, int64_t now_ms)
{
    unsigned started = 0;
    size_t i;
    while (local_pod_next(&f->pod, now_ms, &i)) {
        local_pod_started(&f->pod, i, now_ms);
        started |= 1u << i;
    }
    return started;
}

static void end(struct fixture *f, size_t i, int exit_code, int64_t now_ms)
{
    local_pod_ended(&f->pod, i, exit_code, now_ms, &f->backoff);
}

static void test_end_of_one_container(void **state)
{
    (void)state;
    static const struct {
        enum pod_restart restart;
        int exit_code;
        enum pod_phase phase;
        int restarts;
    } rows[] = {
        {POD_RESTART_NEVER, 0, POD_SUCCEEDED, 0},    {POD_RESTART_NEVER, 1, POD_FAILED, 0},
        {POD_RESTART_NEVER, 137, POD_FAILED, 0},     {POD_RESTART_ON_FAILURE, 0, POD_SUCCEEDED, 0},
        {POD_RESTART_ON_FAILURE, 1, POD_RUNNING, 1}, {POD_RESTART_ON_FAILURE, 255, POD_RUNNING, 1},
        {POD_RESTART_ALWAYS, 0, POD_RUNNING, 1},     {POD_RESTART_ALWAYS, 1, POD_RUNNING, 1},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct fixture f;
        open_pod(&f, rows[r].restart, 0, 1);
        assert_int_equal(local_pod_phase(&f.pod), POD_PENDING);
        assert_int_equal(start_due(&f, 5), 1);
        assert_int_equal(local_pod_phase(&f.pod), POD_RUNNING);
        end(&f, 0, rows[r].exit_code, 10);
        assert_int_equal(local_pod_phase(&f.pod), rows[r].phase);
        assert_int_equal(local_pod_restarts(&f.pod), rows[r].restarts);
        assert_int_equal(start_due(&f, 10), rows[r].restarts); /* the first restart is at once */
    }
}

static void test_init_containers_run_in_order(void **state)
{
    (void)state;
    struct fixture f;
    open_pod(&f, POD_RESTART_ON_FAILURE, 2, 2);
    assert_int_equal(start_due(&f, 0), 1 << 0);
    end(&f, 0, 0, 1);
    assert_int_equal(start_due(&f, 1), 1 << 1);
    end(&f, 1, 7, 2);
    assert_int_equal(local_pod_phase(&f.pod), POD_PENDING);
    assert_int_equal(start_due(&f, 2), 1 << 1);
    end(&f, 1, 0, 3);
    assert_int_equal(local_pod_phase(&f.pod), POD_PENDING);
    assert_int_equal(start_due(&f, 3), 1 << 2 | 1 << 3);
    assert_int_equal(local_pod_phase(&f.pod), POD_RUNNING);
    end(&f, 2, 0, 4);
    assert_int_equal(local_pod_phase(&f.pod), POD_RUNNING);
    end(&f, 3, 0, 5);
    assert_int_equal(local_pod_phase(&f.pod), POD_SUCCEEDED);
}

static void test_failed_init_container(void **state)
{
    (void)state;
    struct fixture f;
    open_pod(&f, POD_RESTART_NEVER, 1, 1);
    start_due(&f, 0);
    end(&f, 0, 1, 1);
    assert_int_equal(local_pod_phase(&f.pod), POD_FAILED);
    assert_int_equal(start_due(&f, 100000), 0);
    /* Always restarts what has succeeded, but not an init container */
    open_pod(&f, POD_RESTART_ALWAYS, 1, 1);
    start_due(&f, 0);
    end(&f, 0, 0, 1);
    assert_int_equal(start_due(&f, 1), 1 << 1);
}

static void test_one_failed_container_fails_the_pod_once_all_ended(void **state)
{
    (void)state;
    struct fixture f;
    open_pod(&f, POD_RESTART_NEVER, 0, 2);
    start_due(&f, 0);
    end(&f, 0, 3, 1);
    assert_int_equal(local_pod_phase(&f.pod), POD_RUNNING);
    end(&f, 1, 0, 2);
    assert_int_equal(local_pod_phase(&f.pod), POD_FAILED);
}

static void test_backoff(void **state)
{
    (void)state;
    static const int64_t delays[] = {0, 1000, 2000, 4000, 8000, 16000, 30000, 30000};
    struct fixture f;
    open_pod(&f, POD_RESTART_ON_FAILURE, 0, 1);
    int64_t now = 50;
    start_due(&f, now);
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        now += 10;
        end(&f, 0, 1, now);
        now += delays[i];
        assert_int_equal(local_pod_due(&f.pod), now);
        assert_int_equal(start_due(&f, now - 1), 0);
        assert_int_equal(start_due(&f, now), 1);
        assert_int_equal(local_pod_due(&f.pod), LOCAL_POD_NEVER);
    }
    now += 60000; /* long enough to begin anew */
    end(&f, 0, 1, now);
    assert_int_equal(local_pod_due(&f.pod), now);
}

static void test_deleted_pod_restarts_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_pod(&f, POD_RESTART_ALWAYS, 0, 1);
    start_due(&f, 0);
    local_pod_ended(&f.pod, 0, 143, 5, NULL);
    assert_int_equal(local_pod_restarts(&f.pod), 0);
    assert_int_equal(start_due(&f, 100000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_of_one_container),
        cmocka_unit_test(test_init_containers_run_in_order),
        cmocka_unit_test(test_failed_init_container),
        cmocka_unit_test(test_one_failed_container_fails_the_pod_once_all_ended),
        cmocka_unit_test(test_backoff),
        cmocka_unit_test(test_deleted_pod_restarts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
