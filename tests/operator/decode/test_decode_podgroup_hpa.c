/* PodGroups and autoscalers: what is written is read back, so that nothing is written twice, and
 * what an API server makes of them is understood. */
#include "tests/support.h"

#include "base/json.h"
#include "base/lines.h"
#include "base/mem.h"
#include "operator/decode/decode_podgroup_hpa.h"
#include "operator/manifest/manifest.h"
#include "tests/operator/cluster.h"

#include <string.h>

struct reading {
    struct arena *arena;
    struct lines problems;
    struct identity identity;
};

static struct reading read_identity(const struct json *object)
{
    struct reading r = {.arena = arena_open()};
    lines_init(&r.problems, r.arena);
    r.identity = (struct identity){.name = "j", .uid = "u", .owner_uid = "job"};
    assert_true(json_is_object(object));
    return r;
}

static struct json *json(const char *text)
{
    struct json *object = json_parse_text(text, JSON_STRICT, NULL);
    assert_non_null(object);
    return object;
}

static void groups_are_read_back(void **state)
{
    (void)state;
    static const struct gang gangs[] = {{GANG_VOLCANO, "volcano"}, {GANG_PLUGINS, "co"}};
    static const char *const policies[] = {
        "", "schedulingPolicy: {minAvailable: 3, queue: q, priorityClass: p, minResources: {cpu: "
            "1500m, memory: 2Gi}, scheduleTimeoutSeconds: 9}"};
    for (size_t i = 0; i < 4; i++) {
        struct cluster *cluster = cluster_open(1, 2, "OnFailure", policies[i / 2], "");
        cluster->options.gang = gangs[i % 2];
        cluster_plan(cluster);
        const struct action *action = &cluster->plan->actions[cluster->plan->count - 1];
        while (action->kind != ACTION_CREATE_POD_GROUP)
            action--;
        struct json *object =
            manifest_pod_group(cluster->job, action->pod_group, gangs[i % 2].scheduler);
        struct reading r = read_identity(object);
        cluster->pod_group = decode_pod_group(object, &r.identity, r.arena, &r.problems);
        assert_int_equal(r.problems.count, 0);
        cluster->pod_group.phase = "Running";
        cluster_do(cluster, "settle; pass"); /* comes to rest only if nothing differs */
        assert_int_equal(cluster->plan->count, 0);
        arena_close(r.arena);
        json_free(object);
        cluster_close(cluster);
    }
}

static void a_schedulers_words_are_heard(void **state)
{
    (void)state;
    static const struct {
        const char *status, *phase, *message;
    } rows[] = {
        {"{}", "", NULL},
        {"{\"phase\":\"Inqueue\"}", "Inqueue", NULL},
        {"{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Scheduled\",\"status\":\"True\","
         "\"message\":\"x\"},{\"type\":\"Unschedulable\",\"status\":\"True\",\"message\":\"2/3 tasks "
         "in gang unschedulable\"}]}",
         "Pending", "2/3 tasks in gang unschedulable"},
        {"{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Unschedulable\",\"status\":\"False\","
         "\"message\":\"old\"},{}]}",
         "Running", NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *text = xasprintf("{\"status\":%s}", rows[i].status);
        struct json *object = json(text);
        struct reading r = read_identity(object);
        r.identity.deleted_ms = 5;
        struct pod_group group = decode_pod_group(object, &r.identity, r.arena, &r.problems);
        assert_int_equal(r.problems.count, 0);
        assert_string_equal(group.phase, rows[i].phase);
        assert_true(group.deleting);
        assert_string_equal(group.message ? group.message : "",
                            rows[i].message ? rows[i].message : "");
        assert_string_equal(group.spec.queue, "");
        arena_close(r.arena);
        json_free(object);
    }
}

static void autoscalers_are_read_back(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(
        0, 1, "OnFailure", "",
        "elasticPolicy: {minReplicas: 1, maxReplicas: 3, metrics: [{type: Resource}]}");
    cluster_do(cluster, "autoscale; settle");
    struct json *object = manifest_autoscaler(cluster->job, &cluster->autoscaler.spec, "v2");
    struct reading r = read_identity(object);
    struct autoscaler autoscaler = decode_autoscaler(object, &r.identity, r.arena, &r.problems);
    assert_int_equal(r.problems.count, 0);
    assert_int_equal(autoscaler.spec.min_replicas, 1);
    assert_int_equal(autoscaler.spec.max_replicas, 3);
    assert_string_equal(autoscaler.spec.metrics_hash, cluster->job->elastic.metrics_hash);
    assert_false(autoscaler.deleting);
    cluster->autoscaler = autoscaler;
    cluster_plan(cluster);
    assert_int_equal(cluster->plan->count, 0);
    arena_close(r.arena);
    json_free(object);
    cluster_close(cluster);
}

static void odd_objects_are_survived(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{\"metadata\":7,\"spec\":[],\"status\":\"x\"}",
        "{\"metadata\":{\"annotations\":{\"a\":1}},\"spec\":{\"minMember\":-1,\"minReplicas\":\"x\","
        "\"minResources\":{\"cpu\":\"much\"}},\"status\":{\"conditions\":[7]}}",
    };
    for (size_t i = 0; i < array_length(texts); i++) {
        struct json *object = json(texts[i]);
        struct reading r = read_identity(object);
        struct pod_group group = decode_pod_group(object, &r.identity, r.arena, &r.problems);
        struct autoscaler autoscaler = decode_autoscaler(object, &r.identity, r.arena, &r.problems);
        assert_string_equal(group.phase, "");
        assert_string_equal(group.spec.priority_class, "");
        assert_int_equal(group.spec.min_member, 0);
        assert_string_equal(autoscaler.spec.metrics_hash, "");
        assert_string_equal(autoscaler.owner_uid, "job");
        assert_int_equal(r.problems.count > 0, i > 0);
        arena_close(r.arena);
        json_free(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_read_back),
        cmocka_unit_test(a_schedulers_words_are_heard),
        cmocka_unit_test(autoscalers_are_read_back),
        cmocka_unit_test(odd_objects_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
