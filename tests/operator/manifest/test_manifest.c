/* What is sent to an API server, byte for byte where tools depend on it. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode.h"
#include "operator/manifest/manifest.h"

#include <stdlib.h>
#include <string.h>

static struct manifest *decode_text(const char *specs)
{
    auto_free char *text = xasprintf("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"
                                     "metadata: {name: j, namespace: ns, uid: u1, annotations: "
                                     "{team: a}}\nspec: {%s}\n",
                                     specs);
    struct manifest *manifest;
    struct error err;
    assert_ok(decode_manifest(text, strlen(text), "test", 6, &manifest, &err), &err);
    return manifest;
}

/* Fails unless the value is what the JSON text says; takes the value. */
static void assert_json(struct json *value, const char *expected)
{
    struct error err;
    struct json *wanted = json_parse_text(expected, JSON_STRICT, &err);
    if (!wanted)
        fail_msg("expected text, %s", err.msg);
    auto_free char *text = json_print(value, JSON_SORTED);
    auto_free char *wanted_text = json_print(wanted, JSON_SORTED);
    assert_string_equal(text, wanted_text);
    json_free(wanted);
    json_free(value);
}

#define OWNER                                                                                          \
    "\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"name\":\"j\"," \
    "\"uid\":\"u1\",\"controller\":true,\"blockOwnerDeletion\":true}]"
#define OUR_LABELS(type, index)                                                                    \
    "\"training.kubeflow.org/job-name\":\"j\",\"training.kubeflow.org/operator-name\":"            \
    "\"pytorchjob-controller\",\"training.kubeflow.org/replica-index\":\"" index                   \
    "\",\"training.kubeflow.org/replica-type\":\"" type "\""
#define OUR_ENV                                                                                    \
    "{\"name\":\"PYTHONUNBUFFERED\",\"value\":\"1\"},{\"name\":\"PET_NPROC_PER_NODE\",\"value\":"  \
    "\"auto\"},{\"name\":\"PET_NNODES\",\"value\":\"2\"},{\"name\":\"SHOAL_RESTART_COUNT\","       \
    "\"value\":\"0\"},{\"name\":\"SHOAL_RUN_ID\",\"value\":\"u1\"},"                               \
    "{\"name\":\"SHOAL_JOB\",\"value\":\"ns/j\"}"

static struct json *pod_of(const struct manifest *manifest, int32_t index, const struct gang *gang,
                           const struct json *init_containers)
{
    struct history history = {0};
    struct pod_options options = {0};
    if (gang)
        options.gang = *gang;
    const struct pod_spec *pod =
        pod_build(manifest->jobs[0], &history, REPLICA_WORKER, index, &options, manifest->arena);
    return manifest_pod(manifest->jobs[0], pod, init_containers);
}

static void a_pod_is_the_whole_template_and_ours_behind_it(void **state)
{
    (void)state;
    struct manifest *manifest = decode_text(
        "pytorchReplicaSpecs: {Worker: {replicas: 2, restartPolicy: ExitCode, template: {metadata: "
        "{name: dropped, namespace: dropped, labels: {app: x}, annotations: {note: z}, finalizers: "
        "[a.b/c]}, spec: {restartPolicy: Always, nodeSelector: {gpu: a100}, volumes: [{name: v, "
        "emptyDir: {}}], initContainers: [{name: mine, image: m}], containers: [{name: sidecar, "
        "image: s}, {name: pytorch, image: i, env: [{name: RANK, value: '9'}, {name: S, valueFrom: "
        "{secretKeyRef: {name: a, key: b}}}], ports: [{containerPort: 9, hostPort: 9}], resources: "
        "{limits: {nvidia.com/gpu: 8, memory: 64Gi}, requests: {cpu: 4}}}]}}}}");
    struct json *init_containers =
        json_parse_text("[{\"name\":\"wait\",\"image\":\"w\"}]", JSON_STRICT, NULL);
    assert_json(
        pod_of(manifest, 1, NULL, init_containers),
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"j-worker-1\",\"namespace\":"
        "\"ns\"," OWNER ",\"labels\":{\"app\":\"x\"," OUR_LABELS(
            "worker",
            "1") "},\"annotations\":"
                 "{\"note\":\"z\",\"shoal.dev/init-containers\":\"wait\"},\"finalizers\":[\"a.b/c\"]},\"spec\":{\"restartPolicy\":\"Never\","
                 "\"nodeSelector\":{\"gpu\":\"a100\"},\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}],"
                 "\"initContainers\":[{\"name\":\"mine\",\"image\":\"m\"},{\"name\":\"wait\",\"image\":\"w\","
                 "\"resources\":{\"limits\":{\"memory\":\"64Gi\"},\"requests\":{\"cpu\":4}}}],"
                 "\"containers\":[{\"name\":\"sidecar\",\"image\":\"s\",\"env\":[" OUR_ENV
                 "]},{\"name\":"
                 "\"pytorch\",\"image\":\"i\",\"env\":[{\"name\":\"RANK\",\"value\":\"9\"},{\"name\":\"S\","
                 "\"valueFrom\":{\"secretKeyRef\":{\"name\":\"a\",\"key\":\"b\"}}}," OUR_ENV
                 "],\"ports\":"
                 "[{\"containerPort\":9,\"hostPort\":9},{\"name\":\"pytorchjob-port\",\"containerPort\":23456,"
                 "\"protocol\":\"TCP\"}],\"resources\":{\"limits\":{\"nvidia.com/gpu\":8,\"memory\":\"64Gi\"},"
                 "\"requests\":{\"cpu\":4}}}]}}");
    json_free(init_containers);
    decode_close(manifest);
}

#define PLAIN(spec)                                                                                \
    "pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {" spec "containers: [{name: "   \
    "pytorch, image: i}]}}}}"

static void the_template_itself_is_left_alone(void **state)
{
    (void)state;
    struct manifest *manifest = decode_text(PLAIN(""));
    struct json *before = json_clone(manifest->documents);
    struct json *pod = pod_of(manifest, 1, NULL, NULL);
    assert_null(json_get(json_get(pod, "spec"), "initContainers"));
    assert_true(json_is_equal(before, manifest->documents));
    json_free(pod);
    json_free(before);
    decode_close(manifest);
}

#define NOT_A_NOR_B                                                                                \
    "{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"a\"]},"                       \
    "{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"b\"]}"
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

/* Whatever else the template asks of nodes; a term that matches none goes on matching none. */
static void avoided_nodes_are_out_of_reach(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *affinity;
    } rows[] = {
        {"", "{\"nodeAffinity\":{\"" REQUIRED
             "\":{\"nodeSelectorTerms\":[{\"matchFields\":[" NOT_A_NOR_B "]}]}}}"},
        {"affinity: {podAffinity: {x: z}, nodeAffinity: {" REQUIRED
         ": {nodeSelectorTerms: [{}, {matchExpressions: [{key: gpu, operator: Exists}]}, "
         "{matchFields: [{key: metadata.name, operator: In, values: [c]}]}]}}}, ",
         "{\"podAffinity\":{\"x\":\"z\"},\"nodeAffinity\":{\"" REQUIRED
         "\":{\"nodeSelectorTerms\":[{},"
         "{\"matchExpressions\":[{\"key\":\"gpu\",\"operator\":\"Exists\"}],\"matchFields\":[" NOT_A_NOR_B
         "]},{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"c\"]}"
         "," NOT_A_NOR_B "]}]}}}"},
        {"nodeName: a, ", NULL},
    };
    struct avoided_node nodes[] = {{"a", 1}, {"b", 1}};
    struct history history = {.avoided = nodes, .avoided_count = 2};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *text =
            xasprintf("pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {%scontainers: "
                      "[{name: pytorch, image: i}]}}}}",
                      rows[i].spec);
        struct manifest *manifest = decode_text(text);
        const struct pod_spec *pod = pod_build(manifest->jobs[0], &history, REPLICA_WORKER, 0,
                                               &(struct pod_options){0}, manifest->arena);
        struct json *made = manifest_pod(manifest->jobs[0], pod, NULL);
        const struct json *affinity = json_get(json_get(made, "spec"), "affinity");
        assert_int_equal(affinity != NULL, rows[i].affinity != NULL);
        if (affinity)
            assert_json(json_clone(affinity), rows[i].affinity);
        assert_string_equal(
            json_as_text(json_get(json_get(json_get(made, "metadata"), "annotations"),
                                  "shoal.dev/avoided-nodes")),
            "a,b");
        json_free(made);
        decode_close(manifest);
    }
}

/* What a sidecar asks for is added to what the containers ask for. */
static void sidecars_are_not_sized(void **state)
{
    (void)state;
    static const struct {
        const char *container;
        bool is_sized;
    } rows[] = {
        {"{\"name\":\"a\"}", true},
        {"{\"name\":\"a\",\"restartPolicy\":\"Always\"}", false},
        {"{\"name\":\"a\",\"restartPolicy\":\"Never\"}", true},
    };
    struct manifest *manifest = decode_text(
        "pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, "
        "image: i, resources: {requests: {cpu: 4}}}]}}}}");
    for (size_t i = 0; i < array_length(rows); i++) {
        struct json *ours =
            json_array_of(json_parse_text(rows[i].container, JSON_STRICT, NULL), NULL);
        struct json *pod = pod_of(manifest, 1, NULL, ours);
        const struct json *list = json_get(json_get(pod, "spec"), "initContainers");
        const struct json *sizes = json_get(json_at(list, 0), "resources");
        assert_int_equal(sizes != NULL, rows[i].is_sized);
        json_free(pod);
        json_free(ours);
    }
    decode_close(manifest);
}

static void gangs_have_their_scheduler(void **state)
{
    (void)state;
    struct manifest *manifest = decode_text(PLAIN("schedulerName: mine, "));
    struct pod_template *template_ = &manifest->jobs[0]->replicas[REPLICA_WORKER].template_;
    const struct gang gang = {.scheduler = GANG_VOLCANO, .scheduler_name = "volcano"};
    static const char *const rows[][2] = {{"mine", "mine"}, {NULL, "volcano"}};
    for (size_t i = 0; i < array_length(rows); i++) {
        template_->scheduler_name = rows[i][0];
        struct json *pod = pod_of(manifest, 1, &gang, NULL);
        const struct json *spec = json_get(pod, "spec");
        assert_string_equal(json_as_text(json_get(spec, "schedulerName")), rows[i][1]);
        json_free(pod);
    }
    decode_close(manifest);
}

static void services_are_headless(void **state)
{
    (void)state;
    struct manifest *manifest = decode_text(PLAIN(""));
    const struct service_spec *service =
        pod_build_service(manifest->jobs[0], REPLICA_WORKER, 1, manifest->arena);
    assert_json(
        manifest_service(manifest->jobs[0], service),
        "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"j-worker-1\","
        "\"namespace\":\"ns\"," OWNER ",\"labels\":{" OUR_LABELS(
            "worker",
            "1") "}},\"spec\":"
                 "{\"clusterIP\":\"None\",\"publishNotReadyAddresses\":true,\"selector\":{" OUR_LABELS(
                     "worker", "1") "},\"ports\":[{\"name\":\"pytorchjob-port\",\"port\":23456,"
                                    "\"protocol\":\"TCP\"}]}}");
    decode_close(manifest);
}

static void ports_are_what_an_api_server_takes(void **state)
{
    (void)state;
    static const struct {
        struct port ports[4];
        size_t count;
        const char *written; /* NAME:NUMBER/PROTOCOL ... */
    } rows[] = {
        {{{NULL}}, 0, ""},
        {{{"a", 1, "UDP"}, {"", 2, "SCTP"}, {"", 3, "TCP"}},
         3,
         "a:1/UDP sctp-2:2/SCTP tcp-3:3/TCP "},
        {{{"x", 23456, "TCP"}, {"pytorchjob-port", 23456, "TCP"}}, 2, "pytorchjob-port:23456/TCP "},
        {{{"pytorchjob-port", 7, "TCP"}, {"x", 7, "TCP"}}, 2, "pytorchjob-port:7/TCP "},
        {{{"x", 7, "TCP"}, {"y", 7, "TCP"}, {"z", 7, "UDP"}}, 3, "x:7/TCP z:7/UDP "},
        {{{"x", 7, "TCP"}, {"x", 8, "TCP"}}, 2, "x:7/TCP tcp-8:8/TCP "},
        {{{"tcp-9", 7, "TCP"}, {"tcp-9-2", 8, "TCP"}, {"", 9, "TCP"}},
         3,
         "tcp-9:7/TCP tcp-9-2:8/TCP tcp-9-3:9/TCP "},
    };
    struct manifest *manifest = decode_text(PLAIN(""));
    for (size_t i = 0; i < array_length(rows); i++) {
        struct port ports[4];
        memcpy(ports, rows[i].ports, sizeof ports);
        struct service_spec *service =
            pod_build_service(manifest->jobs[0], REPLICA_WORKER, 1, manifest->arena);
        service->ports = ports;
        service->port_count = rows[i].count;
        struct json *object = manifest_service(manifest->jobs[0], service);
        const char *written = "";
        const struct json *port;
        json_each_item(port, json_get(json_get(object, "spec"), "ports")) {
            written = arena_printf(manifest->arena, "%s%s:%lld/%s ", written,
                                   json_as_text(json_get(port, "name")),
                                   (long long)json_as_integer(json_get(port, "port")),
                                   json_as_text(json_get(port, "protocol")));
        }
        assert_string_equal(written, rows[i].written);
        json_free(object);
    }
    decode_close(manifest);
}

static void events_name_their_job(void **state)
{
    (void)state;
    struct manifest *manifest = decode_text(PLAIN(""));
    assert_json(
        manifest_event(manifest->jobs[0], "j.1f", EVENT_WARNING, "Why", "What", 61000),
        "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"j.1f\",\"namespace\":\"ns\"},"
        "\"involvedObject\":{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"namespace\":"
        "\"ns\",\"name\":\"j\",\"uid\":\"u1\"},\"type\":\"Warning\",\"reason\":\"Why\",\"message\":\"What\","
        "\"source\":{\"component\":\"pytorchjob-controller\"},\"reportingComponent\":"
        "\"pytorchjob-controller\",\"reportingInstance\":\"\",\"firstTimestamp\":"
        "\"1970-01-01T00:01:01Z\",\"lastTimestamp\":\"1970-01-01T00:01:01Z\",\"count\":1}");
    char message[3000];
    memset(message, 'm', sizeof message - 1);
    message[sizeof message - 1] = 0;
    struct json *event = manifest_event(manifest->jobs[0], "n", EVENT_NORMAL, "r", message, 0);
    assert_int_equal(strlen(json_as_text(json_get(event, "message"))), 1024);
    assert_string_equal(json_as_text(json_get(event, "type")), "Normal");
    json_free(event);
    decode_close(manifest);
}

static void deletes_name_the_object_they_mean(void **state)
{
    (void)state;
    assert_json(
        manifest_delete(&(struct manifest_delete){.uid = "u2"}),
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u2\"}}");
    assert_json(
        manifest_delete(
            &(struct manifest_delete){.uid = "u2", .at_once = true, .background = true}),
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u2\"},"
        "\"gracePeriodSeconds\":0,\"propagationPolicy\":\"Background\"}");
}

static void a_status_is_put_over_the_version_that_was_read(void **state)
{
    (void)state;
    struct manifest *manifest = decode_text(PLAIN(""));
    struct job_status status = {.start_ms = 1000, .history.known = true};
    for (int i = 0; i < 2; i++)
        status.conditions[status.condition_count++] =
            (struct condition){.type = i ? CONDITION_RESTARTING : CONDITION_CREATED,
                               .status = true,
                               .reason = "r",
                               .message = "m"};
    struct json *object = json_parse_text(
        "{\"metadata\":{\"name\":\"j\",\"resourceVersion\":\"77\",\"managedFields\":[{}]},"
        "\"spec\":{},\"status\":{\"conditions\":[{\"type\":\"Created\",\"status\":\"False\"},"
        "{\"type\":\"QuotaReserved\",\"status\":\"True\",\"observedGeneration\":3},{\"type\":\"Running\","
        "\"status\":\"True\"},7,{\"type\":\"Evicted\",\"status\":\"Unknown\"}]}}",
        JSON_STRICT, NULL);
    assert_json(
        manifest_status_update(object, manifest->jobs[0], &status),
        "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"j\","
        "\"namespace\":\"ns\",\"uid\":\"u1\",\"resourceVersion\":\"77\"},\"status\":{\"conditions\":"
        "[{\"type\":\"Created\",\"status\":\"True\",\"reason\":\"r\",\"message\":\"m\"},"
        "{\"type\":\"QuotaReserved\",\"status\":\"True\",\"observedGeneration\":3},"
        "{\"type\":\"Evicted\",\"status\":\"Unknown\"},"
        "{\"type\":\"Restarting\",\"status\":\"True\",\"reason\":\"r\",\"message\":\"m\"}],"
        "\"history\":{\"restarts\":0,\"incidents\":0},\"replicaStatuses\":{},\"restarts\":0,\"startTime\":\"1970-01-01T00:00:01Z\"}}");
    assert_json(
        manifest_status_as_stored(object, manifest->jobs[0]),
        "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"j\","
        "\"namespace\":\"ns\",\"uid\":\"u1\",\"resourceVersion\":\"77\"},\"status\":{\"conditions\":"
        "[{\"type\":\"Created\",\"status\":\"False\"},"
        "{\"type\":\"QuotaReserved\",\"status\":\"True\",\"observedGeneration\":3},"
        "{\"type\":\"Running\",\"status\":\"True\"},7,"
        "{\"type\":\"Evicted\",\"status\":\"Unknown\"}]}}");
    json_free(object);
    decode_close(manifest);
}

/* Other operators' may have neither; Kubernetes 1.20 takes no empty text. */
static void a_condition_without_words_stays_without(void **state)
{
    (void)state;
    static const char *const words[] = {NULL, ""};
    struct manifest *manifest = decode_text(PLAIN(""));
    struct job_status status = {.history.known = true, .condition_count = 1};
    for (size_t i = 0; i < array_length(words); i++) {
        status.conditions[0] = (struct condition){
            .type = CONDITION_FAILED, .status = true, .reason = words[i], .message = words[i]};
        assert_json(
            manifest_status(manifest->jobs[0], &status),
            "{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}],"
            "\"history\":{\"restarts\":0,\"incidents\":0},\"replicaStatuses\":{},\"restarts\":0}");
    }
    decode_close(manifest);
}

#define BESIDE                                                                                     \
    ",\"labels\":{\"training.kubeflow.org/operator-name\":\"pytorchjob-controller\","              \
    "\"training.kubeflow.org/job-name\":\"j\"}"

#define GROUP(version)                                                                             \
    "{\"apiVersion\":\"" version                                                                   \
    "\",\"kind\":\"PodGroup\",\"metadata\":{\"name\":\"j\",\"namespace\":"                         \
    "\"ns\"," OWNER BESIDE                                                                         \
    ",\"annotations\":{\"team\":\"a\"}},\"spec\":{\"minMember\":3,\"minResources\":"               \
    "{\"cpu\":\"1500m\",\"memory\":\"2048\"}"

static void pod_groups_speak_their_schedulers_language(void **state)
{
    (void)state;
    struct manifest *manifest = decode_text(PLAIN(""));
    struct quantity quantities[] = {{"cpu", 1500}, {"memory", 2048000}};
    const struct pod_group_spec group = {.min_member = 3,
                                         .min_resources = {quantities, 2},
                                         .queue = "q",
                                         .priority_class = "p",
                                         .schedule_timeout_s = {true, 60}};
    assert_json(
        manifest_pod_group(manifest->jobs[0], &group, GANG_VOLCANO),
        GROUP("scheduling.volcano.sh/v1beta1") ",\"queue\":\"q\",\"priorityClassName\":\"p\"}}");
    assert_json(manifest_pod_group(manifest->jobs[0], &group, GANG_PLUGINS),
                GROUP("scheduling.x-k8s.io/v1alpha1") ",\"scheduleTimeoutSeconds\":60}}");
    decode_close(manifest);
}

static void autoscalers_scale_the_job(void **state)
{
    (void)state;
    struct manifest *manifest =
        decode_text("elasticPolicy: {metrics: [{type: Resource}]}, " PLAIN(""));
    const struct autoscaler_spec autoscaler = {
        .min_replicas = 1, .max_replicas = 4, .metrics_hash = "ab"};
    assert_json(
        manifest_autoscaler(manifest->jobs[0], &autoscaler, "v2beta2"),
        "{\"apiVersion\":\"autoscaling/v2beta2\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":"
        "{\"name\":\"j\",\"namespace\":\"ns\"," OWNER BESIDE
        ",\"annotations\":{\"shoal.dev/metrics-hash\":"
        "\"ab\"}},\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":"
        "\"PyTorchJob\",\"name\":\"j\"},\"minReplicas\":1,\"maxReplicas\":4,\"metrics\":[{\"type\":"
        "\"Resource\"}]}}");
    decode_close(manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_is_the_whole_template_and_ours_behind_it),
        cmocka_unit_test(the_template_itself_is_left_alone),
        cmocka_unit_test(avoided_nodes_are_out_of_reach),
        cmocka_unit_test(sidecars_are_not_sized),
        cmocka_unit_test(gangs_have_their_scheduler),
        cmocka_unit_test(services_are_headless),
        cmocka_unit_test(ports_are_what_an_api_server_takes),
        cmocka_unit_test(events_name_their_job),
        cmocka_unit_test(deletes_name_the_object_they_mean),
        cmocka_unit_test(a_status_is_put_over_the_version_that_was_read),
        cmocka_unit_test(a_condition_without_words_stays_without),
        cmocka_unit_test(pod_groups_speak_their_schedulers_language),
        cmocka_unit_test(autoscalers_scale_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
