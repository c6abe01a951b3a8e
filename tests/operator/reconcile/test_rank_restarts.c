/* Restarts of ranks in their containers: counted once, whatever a server drops and whoever asks. */
#include "tests/operator/reconcile/training_fixture.h"

#include "base/json.h"
#include "operator/manifest/manifest.h"
#include "tests/support.h"

static void tell_restarts(struct cluster *cluster, int64_t restarts)
{
    training_fixture_tell(cluster, 30 + restarts, 1, 0, 1);
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
        cmocka_unit_test(restarts_of_ranks_are_counted),
        cmocka_unit_test(restarts_of_ranks_are_counted_once_where_they_are_dropped),
        cmocka_unit_test(restarts_of_ranks_are_counted_after_a_pause),
        cmocka_unit_test(restarts_of_containers_are_no_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
