/* The status as it is stored: what is written, and that it is read back. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/decode/decode_status.h"
#include "operator/job/history.h"
#include "operator/job/job_status.h"
#include "operator/manifest/manifest.h"
#include "tests/operator/cluster.h"

#include <stdlib.h>
#include <string.h>

static void a_status_is_written_as_tools_know_it(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 3, "OnFailure", "", "");
    cluster_do(cluster, "settle; run *; wait 1000; settle; exit worker-0 0; exit worker-1 0; "
                        "restart worker-2; wait 1000; pass");
    struct json *json = manifest_status(cluster->job, &cluster->status);
    auto_free char *text = json_print(json, JSON_COMPACT);
    assert_string_equal(
        text,
        "{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\",\"reason\":\"PyTorchJobCreated\","
        "\"message\":\"PyTorchJob j is created.\",\"lastUpdateTime\":\"1970-01-01T00:00:01Z\","
        "\"lastTransitionTime\":\"1970-01-01T00:00:01Z\"},{\"type\":\"Running\",\"status\":\"True\","
        "\"reason\":\"PyTorchJobRunning\",\"message\":\"PyTorchJob j is running.\",\"lastUpdateTime\":"
        "\"1970-01-01T00:00:02Z\",\"lastTransitionTime\":\"1970-01-01T00:00:02Z\"}],"
        "\"replicaStatuses\":{\"Master\":{\"active\":1,\"selector\":\"training.kubeflow.org/"
        "job-name=j,training.kubeflow.org/operator-name=pytorchjob-controller,training.kubeflow.org/"
        "replica-type=master\"},\"Worker\":{\"active\":1,\"succeeded\":2,\"selector\":"
        "\"training.kubeflow.org/job-name=j,training.kubeflow.org/operator-name=pytorchjob-"
        "controller,training.kubeflow.org/replica-type=worker\"}},\"startTime\":"
        "\"1970-01-01T00:00:01Z\",\"restarts\":1,\"history\":{\"failures\":1,\"restarts\":1,\"incidents\":1,"
        "\"incidentTime\":\"1970-01-01T00:00:03Z\",\"replicas\":[{\"type\":\"Worker\","
        "\"index\":2,\"uid\":\"u8\",\"counted\":1,\"incidents\":1}],\"completed\":{\"Worker\":\"0-1\"}}}");
    json_free(json);
    cluster_close(cluster);
}

/* Stories whose last status is written and read. */
static const struct {
    int masters, workers;
    const char *run_policy, *script;
} stories[] = {
    {1, 0, "", "wait 1000"},
    {1, 2, "", "settle; run *; settle; exit worker-1 1; settle"},
    {1, 4, "", "settle; exit worker-0 0; exit worker-2 0; exit worker-3 0; settle"},
    {1, 1, "restartScope: Job", "settle; exit * 138; settle; exit worker-0 1; settle"},
    {1, 2, "restartScope: Job", "settle; run *; settle"},
    {1, 0, "", "settle; run *; wait 1000; exit master-0 0; settle"},
    {1, 1, "", "settle; run *; settle; suspend; settle"},
    {1, 2, "", "settle; run *; settle; evict worker-1; pass; restart worker-0 138; settle"},
    {1, 2, "", "settle; run *; settle; restart worker-0 138; settle"},
    {1, 2, "", "settle; run *; settle; adopt"},
};

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(stories); i++) {
        struct cluster *cluster = cluster_open(stories[i].masters, stories[i].workers, "OnFailure",
                                               stories[i].run_policy, "");
        cluster_do(cluster, stories[i].script);
        struct json *json = manifest_status(cluster->job, &cluster->status);
        struct job_status status = decode_status(json, cluster->arena);
        assert_true(job_status_equal(&status, &cluster->status));
        json_free(json);
        cluster_close(cluster);
    }
}

static void spoilt_statuses_are_survived(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "null",
        "7",
        "{\"conditions\":7,\"replicaStatuses\":[],\"startTime\":\"soon\",\"history\":7}",
        "{\"conditions\":[{\"type\":\"Odd\"},{}]}",
        "{\"history\":{\"failures\":-1,\"replicas\":[{\"index\":1}],\"completed\":{\"Worker\":"
        "\",x,1-99999999999999999999,-5\"}}}",
    };
    struct arena *arena = arena_open();
    struct job_status nothing = {0};
    for (size_t i = 0; i < array_length(texts); i++) {
        struct json *json = json_parse_text(texts[i], JSON_ALLOW_SCALAR, NULL);
        assert_non_null(json);
        struct job_status status = decode_status(json, arena);
        nothing.history.known = strstr(texts[i], "\"history\":{");
        assert_true(job_status_equal(&status, &nothing));
        json_free(json);
    }
    arena_close(arena);
}

static void the_last_of_two_equal_conditions_counts(void **state)
{
    (void)state;
    struct json *json =
        json_parse_text("{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\"},{\"type\":"
                        "\"Running\",\"status\":\"True\"},{\"type\":\"Failed\",\"status\":"
                        "\"False\"},{\"type\":\"Running\",\"status\":\"False\"}]}",
                        JSON_STRICT, NULL);
    struct arena *arena = arena_open();
    struct job_status status = decode_status(json, arena);
    assert_int_equal(status.condition_count, 3);
    assert_int_equal(status.conditions[0].type, CONDITION_CREATED);
    assert_int_equal(status.conditions[1].type, CONDITION_FAILED);
    assert_int_equal(status.conditions[2].type, CONDITION_RUNNING);
    assert_false(status.conditions[2].status);
    arena_close(arena);
    json_free(json);
}

/* Whoever acts on a job that may be of the past first writes its status, which is then refused. */
static void an_unproven_job_is_written_before_anything_is_made_for_it(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 1, "OnFailure", "", "");
    cluster_do(cluster, "settle; run *; settle");
    for (int unproven = 0; unproven < 2; unproven++) {
        cluster->unproven = unproven;
        cluster_plan(cluster);
        assert_false(plan_acts(cluster->plan));
        assert_int_equal(cluster->plan->count, 0);
    }
    cluster->service_count--;
    cluster_plan(cluster);
    assert_int_equal(cluster->plan->actions[0].kind, ACTION_SET_STATUS);
    assert_true(job_status_equal(cluster->plan->actions[0].status, &cluster->status));
    assert_int_equal(cluster->plan->actions[1].kind, ACTION_CREATE_SERVICE);
    cluster->unproven = false;
    cluster_plan(cluster);
    assert_int_equal(cluster->plan->actions[0].kind, ACTION_CREATE_SERVICE);
    cluster_close(cluster);
}

/* As it is stored where the pass changes nothing of it, and only there: what was seen since would
 * not be counted. */
static const struct {
    const char *name, *run_policy, *story, *seen;
    bool unproven, as_stored;
} first_writes[] = {
    {"a job of which nothing is stored", "", "wait 1000", "wait 1000", true, false},
    {"a pod that vanished", "", "settle", "gone worker-0", true, true},
    {"a pod that vanished while it ran", "", "settle; run *; settle", "gone master-0", true, false},
    {"a failure", "", "settle; run *; settle", "exit worker-0 1", true, false},
    {"a failure, seen by who has written before", "", "settle; run *; settle", "exit worker-0 1",
     false, false},
    {"the end of a finished job's time", "ttlSecondsAfterFinished: 1",
     "settle; run *; settle; exit master-0 0; settle", "wait 5000", true, true},
};

static void only_what_is_unchanged_is_written_as_it_is_stored(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(first_writes); i++) {
        struct cluster *cluster = cluster_open(1, 1, "OnFailure", first_writes[i].run_policy, "");
        cluster_do(cluster, first_writes[i].story);
        cluster_do(cluster, first_writes[i].seen);
        cluster->unproven = first_writes[i].unproven;
        cluster_plan(cluster);
        const struct action *first = &cluster->plan->actions[0];
        if (!cluster->plan->count || first->kind != ACTION_SET_STATUS ||
            first->as_stored != first_writes[i].as_stored ||
            job_status_equal(first->status, &cluster->status) != first->as_stored)
            fail_msg("%s", first_writes[i].name);
        cluster_close(cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_written_as_tools_know_it),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(spoilt_statuses_are_survived),
        cmocka_unit_test(the_last_of_two_equal_conditions_counts),
        cmocka_unit_test(an_unproven_job_is_written_before_anything_is_made_for_it),
        cmocka_unit_test(only_what_is_unchanged_is_written_as_it_is_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
