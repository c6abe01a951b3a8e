/* What is asked of the API server for each kind of action. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/apply/request.h"
#include "operator/manifest/init_template.h"
#include "tests/operator/cluster.h"

#include <stdlib.h>
#include <string.h>

static const struct pod_group_spec pod_group = {
    .min_member = 2, .queue = "q", .priority_class = ""};
static const struct autoscaler_spec autoscaler = {
    .min_replicas = 1, .max_replicas = 3, .metrics_hash = "ab"};

#define NS   "/namespaces/ns"
#define CORE "/api/v1" NS

static const struct {
    struct action action;
    enum gang_scheduler gang;
    const char *line; /* METHOD PATH */
    const char *part; /* of the body */
} rows[] = {
    {{.kind = ACTION_EVENT, .reason = "Why", .message = "m"},
     GANG_NONE,
     "POST " CORE "/events",
     "{\"name\":\"j.00000000000000ff\",\"namespace\":\"ns\"}"},
    {{.kind = ACTION_CREATE_POD, .name = "j-worker-1", .type = REPLICA_WORKER, .index = 1},
     GANG_NONE,
     "POST " CORE "/pods?fieldValidation=Strict",
     "\"name\":\"j-worker-1\""},
    {{.kind = ACTION_CREATE_SERVICE, .name = "j-master-0", .type = REPLICA_MASTER},
     GANG_NONE,
     "POST " CORE "/services",
     "\"clusterIP\":\"None\""},
    {{.kind = ACTION_DELETE_POD, .name = "p", .uid = "u"},
     GANG_NONE,
     "DELETE " CORE "/pods/p",
     "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u\"}}"},
    {{.kind = ACTION_FORCE_DELETE_POD, .name = "p", .uid = "u", .version = "7"},
     GANG_NONE,
     "DELETE " CORE "/pods/p",
     "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"gracePeriodSeconds\":0"},
    {{.kind = ACTION_DELETE_SERVICE, .name = "s", .uid = "u"},
     GANG_NONE,
     "DELETE " CORE "/services/s",
     "\"uid\":\"u\""},
    {{.kind = ACTION_DELETE_JOB, .name = "j", .uid = "u"},
     GANG_NONE,
     "DELETE /apis/kubeflow.org/v1" NS "/pytorchjobs/j",
     "\"propagationPolicy\":\"Background\""},
    {{.kind = ACTION_CREATE_POD_GROUP, .name = "j", .pod_group = &pod_group},
     GANG_VOLCANO,
     "POST /apis/scheduling.volcano.sh/v1beta1" NS "/podgroups",
     "\"queue\":\"q\""},
    {{.kind = ACTION_UPDATE_POD_GROUP, .name = "j", .uid = "u", .pod_group = &pod_group},
     GANG_PLUGINS,
     "PATCH /apis/scheduling.x-k8s.io/v1alpha1" NS "/podgroups/j",
     "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u\"},{\"op\":\"replace\",\"path\":"
     "\"/spec\",\"value\":{\"minMember\":2}}]"},
    {{.kind = ACTION_DELETE_POD_GROUP, .name = "j", .uid = "u"},
     GANG_VOLCANO,
     "DELETE /apis/scheduling.volcano.sh/v1beta1" NS "/podgroups/j",
     "\"uid\":\"u\""},
    {{.kind = ACTION_CREATE_AUTOSCALER, .name = "j", .autoscaler = &autoscaler},
     GANG_NONE,
     "POST /apis/autoscaling/v2" NS "/horizontalpodautoscalers?fieldValidation=Strict",
     "\"maxReplicas\":3"},
    {{.kind = ACTION_UPDATE_AUTOSCALER, .name = "j", .uid = "u", .autoscaler = &autoscaler},
     GANG_NONE,
     "PATCH /apis/autoscaling/v2" NS "/horizontalpodautoscalers/j?fieldValidation=Strict",
     "{\"metadata\":{\"uid\":\"u\",\"annotations\":{\"shoal.dev/metrics-hash\":\"ab\"}},\"spec\":{"
     "\"scaleTargetRef\":{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"name\":\"j\"},"
     "\"minReplicas\":1,\"maxReplicas\":3,\"metrics\":null}}"},
    {{.kind = ACTION_DELETE_AUTOSCALER, .name = "j", .uid = "u"},
     GANG_NONE,
     "DELETE /apis/autoscaling/v2" NS "/horizontalpodautoscalers/j",
     "\"uid\":\"u\""},
};

static const struct workload_spec workload = {
    .queue = "q", .pods_hash = "h", .counts = {1, 2}, .priority = {.class_name = ""}};
static const struct workload_status workload_status = {.conditions = "",
                                                       .pods_ready = READY_STARTED};

/* Of Kueue's older version. */
static const struct {
    struct action action;
    const char *line, *part;
} workload_rows[] = {
    {{.kind = ACTION_CREATE_WORKLOAD, .name = "w", .workload = &workload},
     "POST /apis/kueue.x-k8s.io/v1beta1" NS "/workloads",
     "\"apiVersion\":\"kueue.x-k8s.io/v1beta1\",\"kind\":\"Workload\""},
    {{.kind = ACTION_UPDATE_WORKLOAD,
      .name = "w",
      .uid = "u",
      .version = "7",
      .workload = &workload},
     "PATCH /apis/kueue.x-k8s.io/v1beta1" NS "/workloads/w",
     "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"spec\":{\"queueName\":\"q\""},
    {{.kind = ACTION_SET_WORKLOAD_STATUS,
      .name = "w",
      .uid = "u",
      .version = "7",
      .workload_status = &workload_status},
     "PATCH /apis/kueue.x-k8s.io/v1beta1" NS "/workloads/w/status",
     "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"status\":{\"conditions\":["},
    {{.kind = ACTION_DELETE_WORKLOAD, .name = "w", .uid = "u"},
     "DELETE /apis/kueue.x-k8s.io/v1beta1" NS "/workloads/w",
     "\"uid\":\"u\""},
};

static struct request_source source_of(const struct cluster *cluster, const struct pod_options *pod)
{
    return (struct request_source){.job = cluster->job,
                                   .history = &cluster->status.history,
                                   .pod = pod,
                                   .autoscaling_version = "v2",
                                   .kueue_version = "v1beta1",
                                   .event_number = 255};
}

static char *body_of(struct request *request)
{
    char *text = json_print(request->body, JSON_COMPACT);
    json_free(request->body);
    return text;
}

#define OWNED "{\"op\":\"test\",\"path\":\"/metadata/ownerReferences/0/uid\",\"value\":\"job\"},"
#define LABEL(name, value)                                                                         \
    "{\"op\":\"add\",\"path\":\"/metadata/labels/training.kubeflow.org~1" name                     \
    "\",\"value\":\"" value "\"}"
#define UNLABELLED                                                                                 \
    "[" OWNED "{\"op\":\"test\",\"path\":\"/metadata/labels\",\"value\":null},"                    \
    "{\"op\":\"add\",\"path\":\"/metadata/labels\",\"value\":{"                                    \
    "\"training.kubeflow.org/operator-name\":\"pytorchjob-controller\","                           \
    "\"training.kubeflow.org/job-name\":\"j\"}}]"
#define LABELLED                                                                                   \
    "[" OWNED LABEL("operator-name", "pytorchjob-controller") "," LABEL("job-name", "j") "]"

static void what_another_operator_made_is_adopted(void **state)
{
    (void)state;
    static const struct {
        struct action action;
        enum gang_scheduler gang;
        const char *path;
    } adopted[] = {
        {{.kind = ACTION_CREATE_AUTOSCALER, .name = "j", .autoscaler = &autoscaler},
         GANG_NONE,
         "/apis/autoscaling/v2" NS "/horizontalpodautoscalers/j"},
        {{.kind = ACTION_CREATE_POD_GROUP, .name = "j", .pod_group = &pod_group},
         GANG_VOLCANO,
         "/apis/scheduling.volcano.sh/v1beta1" NS "/podgroups/j"},
        {{.kind = ACTION_CREATE_POD_GROUP, .name = "j", .pod_group = &pod_group},
         GANG_PLUGINS,
         "/apis/scheduling.x-k8s.io/v1alpha1" NS "/podgroups/j"},
    };
    struct cluster *cluster = cluster_open(1, 2, "OnFailure", "", "");
    for (size_t i = 0; i < array_length(adopted); i++) {
        const struct pod_options pod = {.gang = {adopted[i].gang, "scheduler"}};
        const struct request_source source = source_of(cluster, &pod);
        for (int labelled = 0; labelled < 2; labelled++) {
            struct request request = labelled ? request_adopt_labelled(&adopted[i].action, &source)
                                              : request_adopt(&adopted[i].action, &source);
            assert_string_equal(request.method, "PATCH");
            assert_string_equal(request.content_type, "application/json-patch+json");
            assert_string_equal(request.path, adopted[i].path);
            auto_free char *body = body_of(&request);
            assert_string_equal(body, labelled ? LABELLED : UNLABELLED);
        }
    }
    cluster_close(cluster);
}

/* With the verb that a watch needs, too. */
static void what_is_in_the_way_is_listed(void **state)
{
    (void)state;
    static const struct {
        struct action action;
        const char *path;
    } found[] = {
        {{.kind = ACTION_CREATE_POD, .name = "j-worker-1"},
         CORE "/pods?fieldSelector=metadata.name%3Dj-worker-1"},
        {{.kind = ACTION_CREATE_SERVICE, .name = "j-master-0"},
         CORE "/services?fieldSelector=metadata.name%3Dj-master-0"},
    };
    struct cluster *cluster = cluster_open(1, 2, "OnFailure", "", "");
    const struct pod_options pod = {.gang = {GANG_NONE, ""}};
    const struct request_source source = source_of(cluster, &pod);
    for (size_t i = 0; i < array_length(found); i++) {
        struct request request = request_find(&found[i].action, &source);
        assert_string_equal(request.method, "GET");
        assert_string_equal(request.path, found[i].path);
        assert_null(request.body);
    }
    cluster_close(cluster);
}

static void each_action_is_one_request(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 2, "OnFailure", "", "");
    struct json *annotations = json_texts_of("team", "a", NULL);
    cluster->job->annotations = annotations;
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct pod_options pod = {.gang = {rows[i].gang, "scheduler"}};
        const struct request_source source = source_of(cluster, &pod);
        struct request request = request_build(&rows[i].action, &source);
        auto_free char *line = xasprintf("%s %s", request.method, request.path);
        auto_free char *body = body_of(&request);
        assert_string_equal(line, rows[i].line);
        if (!strstr(body, rows[i].part))
            fail_msg("%s: no %s in %s", line, rows[i].part, body);
        if (rows[i].action.kind == ACTION_UPDATE_POD_GROUP)
            assert_string_equal(request.content_type, "application/json-patch+json");
        else if (rows[i].action.kind == ACTION_UPDATE_AUTOSCALER)
            assert_string_equal(request.content_type, "application/merge-patch+json");
        else
            assert_null(request.content_type);
    }
    json_free(annotations);
    cluster_close(cluster);
}

static void the_status_goes_to_its_subresource(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 2, "OnFailure", "", "");
    struct json *object =
        json_parse_text("{\"metadata\":{\"resourceVersion\":\"77\"}}", JSON_STRICT, NULL);
    const struct pod_options pod = {.gang = {GANG_NONE, NULL}};
    struct request_source source = source_of(cluster, &pod);
    source.object = object;
    const struct action action = {.kind = ACTION_SET_STATUS, .status = &cluster->status};
    struct request request = request_build(&action, &source);
    assert_string_equal(request.method, "PUT");
    assert_string_equal(request.path, "/apis/kubeflow.org/v1" NS
                                      "/pytorchjobs/j/status?fieldManager=shoal-operator");
    auto_free char *body = body_of(&request);
    assert_non_null(strstr(body, "\"resourceVersion\":\"77\""));
    json_free(object);
    cluster_close(cluster);
}

static void workers_wait_if_there_is_a_master(void **state)
{
    (void)state;
    static const struct {
        int masters;
        enum replica_type type;
        bool template_, waits;
    } pods[] = {
        {1, REPLICA_WORKER, true, true},
        {1, REPLICA_WORKER, false, false},
        {1, REPLICA_MASTER, true, false},
        {0, REPLICA_WORKER, true, false},
    };
    struct init_template *template_;
    struct error err;
    const struct init_options options = {
        .path = INIT_TEMPLATE_PATH, .image = "shoal-operator", .max_tries = 1};
    assert_ok(init_template_open(&template_, &options, &err), &err);
    for (size_t i = 0; i < array_length(pods); i++) {
        struct cluster *cluster = cluster_open(pods[i].masters, 2, "OnFailure", "", "");
        const struct pod_options pod = {.gang = {GANG_NONE, NULL}};
        struct request_source source = source_of(cluster, &pod);
        source.init = pods[i].template_ ? template_ : NULL;
        const struct action action = {.kind = ACTION_CREATE_POD, .type = pods[i].type};
        struct request request = request_build(&action, &source);
        auto_free char *body = body_of(&request);
        assert_int_equal(!!strstr(body, "\"wait-for\",\"j-master-0\""), pods[i].waits);
        cluster_close(cluster);
    }
    init_template_close(template_);
}

static void a_workload_is_kueues(void **state)
{
    (void)state;
    struct cluster *cluster = cluster_open(1, 2, "OnFailure", "", "");
    const struct pod_options pod = {.gang = {GANG_NONE, NULL}};
    const struct request_source source = source_of(cluster, &pod);
    for (size_t i = 0; i < array_length(workload_rows); i++) {
        struct request request = request_build(&workload_rows[i].action, &source);
        auto_free char *line = xasprintf("%s %s", request.method, request.path);
        auto_free char *body = body_of(&request);
        assert_string_equal(line, workload_rows[i].line);
        if (!strstr(body, workload_rows[i].part))
            fail_msg("%s: no %s in %s", line, workload_rows[i].part, body);
        bool patches = strcmp(request.method, "PATCH") == 0;
        assert_int_equal(request.content_type != NULL, patches);
        if (patches)
            assert_string_equal(request.content_type, "application/merge-patch+json");
    }
    cluster_close(cluster);
}

/* Pods of a job that is admitted in part know that they are fewer, and where they shall go. */
static void pods_are_made_as_admitted(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "\"nodeSelector\":{\"pool\":\"a\"}",
        "\"tolerations\":[{\"key\":\"t\"}]",
        "\"schedulingGates\":[{\"name\":\"g\"}]",
        "\"kueue.x-k8s.io/podset\":\"worker\"",
        "\"training.kubeflow.org/job-name\":\"j\"", /* ours stay ours */
        "\"annotations\":{\"a\":\"b\"}",
        "{\"name\":\"WORLD_SIZE\",\"value\":\"3\"}",
    };
    const struct placement placement = {
        .replicas = {1, 2},
        .fields = "{\"nodeSelector\":{\"pool\":\"a\"},\"tolerations\":[{\"key\":\"t\"},{\"key\":"
                  "\"t\"}],\"schedulingGates\":[{\"name\":\"g\"}],\"annotations\":{\"a\":\"b\"},"
                  "\"labels\":{\"kueue.x-k8s.io/podset\":\"worker\","
                  "\"training.kubeflow.org/job-name\":\"x\"}}"};
    struct cluster *cluster = cluster_open(1, 8, "OnFailure", "", "");
    const struct pod_options pod = {.gang = {GANG_NONE, NULL}};
    const struct request_source source = source_of(cluster, &pod);
    const struct action action = {
        .kind = ACTION_CREATE_POD, .type = REPLICA_WORKER, .placement = &placement};
    struct request request = request_build(&action, &source);
    auto_free char *body = body_of(&request);
    for (size_t i = 0; i < array_length(parts); i++)
        if (!strstr(body, parts[i]))
            fail_msg("no %s in %s", parts[i], body);
    assert_int_equal(cluster->job->replicas[REPLICA_WORKER].replicas.value, 8);
    cluster_close(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_action_is_one_request),
        cmocka_unit_test(what_another_operator_made_is_adopted),
        cmocka_unit_test(what_is_in_the_way_is_listed),
        cmocka_unit_test(the_status_goes_to_its_subresource),
        cmocka_unit_test(workers_wait_if_there_is_a_master),
        cmocka_unit_test(a_workload_is_kueues),
        cmocka_unit_test(pods_are_made_as_admitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
