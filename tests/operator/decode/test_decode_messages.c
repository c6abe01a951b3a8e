/* What is told of manifests: all that is wrong with them, and what is ignored or not acted on.
 * Names such as W06 are those of the peer's admission cases. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"
#include "tests/operator/decode/manifest_text.h"

#include <string.h>

#define UNUSED                                                                                      \
    "template: {spec: {volumes: [], activeDeadlineSeconds: 9, containers: [{name: pytorch, image: " \
    "i, resources: {limits: {cpu: 1}}, securityContext: {}}]}}"
#define WORKER_OF(field)                                                                           \
    "Worker: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: i, " field "}]}}}"
#define AT(line) "t.yaml:" line ": document 1 (PyTorchJob j): "

struct row {
    const char *text;
    const char *problems; /* or notes, joined */
};

#define CONTAINERS "spec.pytorchReplicaSpecs[Worker].template.spec.containers"

static const struct row wrong[] = {
    {"a: [", "t.yaml:2:1: while parsing a flow node: did not find expected node content"},
    {"", "t.yaml: no PyTorchJob (kubeflow.org/v1) in it"},
    {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}",
     "t.yaml: no PyTorchJob (kubeflow.org/v1) in it; t.yaml:1: document 1 (Pod p): not a PyTorchJob, "
     "ignored"},
    {"hello",
     "t.yaml:1: document 1 (no kind): kind, apiVersion: Required value: this is no object of "
     "Kubernetes"},
    {"apiVersion: kubeflow.org/v2\nkind: PyTorchJob\nmetadata: {name: j}",
     AT("1") "apiVersion: Unsupported value: \"kubeflow.org/v2\": supported values: "
             "\"kubeflow.org/v1\""},
    {HEAD SPECS "{" MASTER "}\n---\n" HEAD SPECS "{" MASTER "}",
     "t.yaml:9: document 2 (PyTorchJob j): metadata.name: Duplicate value: \"j\": another document of "
     "this file has it"},
    {HEAD "  {}", AT("4") "spec.pytorchReplicaSpecs: Required value: must have Master or Worker"},
    {HEAD SPECS "{}",
     AT("5") "spec.pytorchReplicaSpecs: Required value: must have Master or Worker"},
    /* what follows from another fault is not told as well */
    {HEAD SPECS "{Chief: {" TEMPLATE "}}",
     AT("5") "spec.pytorchReplicaSpecs[Chief]: Unsupported value: \"Chief\": supported values: "
             "\"Master\", \"Worker\""},
    {HEAD SPECS "{" MASTER ", Evaluator: {" TEMPLATE "}}",
     AT("5") "spec.pytorchReplicaSpecs[Evaluator]: Unsupported value: \"Evaluator\": supported values: "
             "\"Master\", \"Worker\""},
    {HEAD SPECS "{" MASTER ", worker: {" TEMPLATE "}}",
     AT("5") "spec.pytorchReplicaSpecs[worker]: Unsupported value: \"worker\": supported values: "
             "\"Master\", \"Worker\""},
    /* W03 */
    {HEAD SPECS "{Worker: {template: {spec: {containers: []}}}}",
     AT("5") CONTAINERS ": Required value: must be specified, one of them with name pytorch"},
    /* W04 */
    {HEAD SPECS "{Worker: {template: {spec: {containers: [{name: pytorch, image: ''}]}}}}",
     AT("5") CONTAINERS "[0].image: Required value: must be specified"},
    /* W05 */
    {HEAD SPECS "{Worker: {template: {spec: {containers: [{name: torch, image: i}]}}}}",
     AT("5") CONTAINERS ": Required value: must have at least one container with name pytorch"},
    {HEAD SPECS
     "{Worker: {template: {spec: {containers: [{name: pytorch, image: i, env: [{value: x}], "
     "ports: [{name: x}]}, {name: pytorch, image: i}, {image: i}]}}}}",
     AT("5") CONTAINERS "[0].env[0].name: Required value: must be specified; " AT("5") CONTAINERS
     "[0].ports[0].containerPort: Required value: within 1 and 65535; " AT("5") CONTAINERS
     "[1].name: Duplicate value: \"pytorch\"; " AT("5") CONTAINERS
     "[2].name: Required value: must be specified"},
    /* W06 */
    {HEAD SPECS "{Master: {replicas: 2, " TEMPLATE "}}",
     AT("5") "spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1"},
    {HEAD SPECS "{Master: {" TEMPLATE "}}",
     AT("5") "spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1, but is missing"},
    /* W08 */
    {HEAD "  nprocPerNode: auto\n  elasticPolicy: {nProcPerNode: 2}\n" SPECS "{" WORKER "}",
     AT("6") "spec.elasticPolicy.nProcPerNode: Forbidden: must not be used with spec.nprocPerNode"},
    /* W09 */
    {HEAD "  runPolicy: {managedBy: other-job-controller}\n" SPECS "{" WORKER "}",
     AT("5") "spec.runPolicy.managedBy: Unsupported value: \"other-job-controller\": supported values: "
             "\"kubeflow.org/training-operator\", \"kueue.x-k8s.io/multikueue\""},
    {HEAD "  runPolicy: {managedBy: ''}\n" SPECS "{" WORKER "}",
     AT("5") "spec.runPolicy.managedBy: Unsupported value: \"\": supported values: "
             "\"kubeflow.org/training-operator\", \"kueue.x-k8s.io/multikueue\""},
    /* W11 */
    {HEAD "  elasticPolicy: {}\n" SPECS "{" MASTER "}",
     AT("6") "spec.pytorchReplicaSpecs[Worker]: Required value: must be configured if elastic policy is "
             "used"},
    /* W12 */
    {HEAD SPECS "{Worker: {replicas: 0, " TEMPLATE "}}",
     AT("5") "spec.pytorchReplicaSpecs[Worker].replicas: Forbidden: must be at least 1"},
    /* one fault, one line */
    {HEAD SPECS "{Master: {replicas: two, " TEMPLATE "}}",
     AT("5") "spec.pytorchReplicaSpecs[Master].replicas: must be a whole number, not the text \"two\""},
    {HEAD SPECS "[]", AT("5") "spec.pytorchReplicaSpecs: must be a mapping, not a list"},
    /* what the peer lets through */
    {HEAD SPECS "{Worker: {replicas: 10001, " TEMPLATE "}}",
     AT("5") "spec.pytorchReplicaSpecs[Worker].replicas: Invalid value: 10001: must be at most 10000"},
    {HEAD SPECS "{Worker: {restartPolicy: Sometimes, " TEMPLATE "}}",
     AT("5") "spec.pytorchReplicaSpecs[Worker].restartPolicy: Unsupported value: \"Sometimes\": supported "
             "values: \"Always\", \"OnFailure\", \"Never\", \"ExitCode\""},
    {HEAD "  runPolicy: {cleanPodPolicy: Some, restartScope: Pod}\n" SPECS "{" WORKER "}",
     AT("5") "spec.runPolicy.cleanPodPolicy: Unsupported value: \"Some\": supported values: \"None\", "
             "\"Running\", \"All\"; " AT(
                 "5") "spec.runPolicy.restartScope: Unsupported value: \"Pod\": "
                      "supported values: \"Replica\", \"Job\""},
    {HEAD "  runPolicy: {backoffLimit: -2, activeDeadlineSeconds: -1}\n" SPECS "{" WORKER "}",
     AT("5") "spec.runPolicy.backoffLimit: must be within -1 and 2147483647, not -2; " AT(
         "5") "spec.runPolicy.activeDeadlineSeconds: must be within 0 and 9223372036854775807, not -1"},
    {HEAD "  elasticPolicy: {minReplicas: 3, maxReplicas: 2}\n" SPECS "{" WORKER "}",
     AT("5") "spec.elasticPolicy.minReplicas: Invalid value: 3: must not be greater than maxReplicas, 2"},
    {HEAD "  nprocPerNode: '0'\n" SPECS "{" WORKER "}",
     AT("5") "spec.nprocPerNode: Unsupported value: \"0\": supported values: \"auto\", \"cpu\", \"gpu\", a "
             "number from 1 up"},
    {HEAD "  runPolicy: {schedulingPolicy: {minAvailable: 0, minResources: {cpu: much}}}\n" SPECS
          "{" WORKER "}",
     AT("5") "spec.runPolicy.schedulingPolicy.minAvailable: must be within 1 and 2147483647, not 0; " AT(
         "5") "spec.runPolicy.schedulingPolicy.minResources[cpu]: must be a quantity such as 2, 500m or "
              "16Gi"},
    {HEAD "  nprocPerNode: 4\n" SPECS "{" WORKER "}",
     AT("5") "spec.nprocPerNode: must be text (put it in quotes), not the number 4"},
    /* a misspelt field is told with the name that it is near, whatever else is wrong */
    {HEAD "  backofLimit: 3\n" SPECS "{" MASTER "}",
     AT("5") "spec.backofLimit: unknown field; the nearest is backoffLimit"},
    {HEAD "  pytorchReplicaSpec: {" MASTER "}",
     AT("5") "spec.pytorchReplicaSpec: unknown field; the nearest is pytorchReplicaSpecs; " AT(
         "4") "spec.pytorchReplicaSpecs: Required value: must have Master or Worker"},
    {"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspecs:\n" SPECS "{" MASTER
     "}",
     AT("4") "specs: unknown field; the nearest is spec; " AT(
         "1") "spec.pytorchReplicaSpecs: Required value: must have Master or Worker"},
    {HEAD SPECS "\n    Master:\n      replica: 1\n      " TEMPLATE,
     AT("7") "spec.pytorchReplicaSpecs[Master].replica: unknown field; the nearest is replicas; " AT(
         "6") "spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1, but is missing"},
    {HEAD SPECS "\n    Worker:\n      restartPolcy: Never\n      " TEMPLATE,
     AT("7") "spec.pytorchReplicaSpecs[Worker].restartPolcy: unknown field; the nearest is "
             "restartPolicy"},
    {HEAD SPECS "\n    Worker:\n      template:\n        spec:\n          container:\n"
                "          - name: pytorch\n            image: i\n",
     AT("9") "spec.pytorchReplicaSpecs[Worker].template.spec.container: unknown field; the nearest "
             "is containers; " AT("8") CONTAINERS
     ": Required value: must be specified, one of them with name pytorch"},
    {HEAD SPECS "\n    Worker:\n      template:\n        spec:\n          containers:\n"
                "          - name: pytorch\n            image: i\n            volumeMount: []\n",
     AT("12") CONTAINERS "[0].volumeMount: unknown field; the nearest is volumeMounts"},
    {HEAD SPECS "\n    Worker:\n      template:\n        spec:\n          containers:\n"
                "          - nmae: sidecar\n            name: pytorch\n            image: i\n"
                "            env: [{name: A, valeu: b}]\n",
     AT("10") CONTAINERS "[0].nmae: unknown field; the nearest is name; " AT("13") CONTAINERS
     "[0].env[0].valeu: unknown field; the nearest is value"},
    /* a field of runPolicy that is not in it */
    {HEAD "  cleanPodPolicy: All\n  suspend: true\n" SPECS "{" MASTER "}",
     AT("5") "spec.cleanPodPolicy: unknown field; it belongs in spec.runPolicy; " AT(
         "6") "spec.suspend: unknown field; it belongs in spec.runPolicy"},
    {HEAD "  activeDeadlineSeconds: 9\n  ttlSecondsAfterFinished: 9\n" SPECS "{" MASTER "}",
     AT("5") "spec.activeDeadlineSeconds: unknown field; it belongs in spec.runPolicy; " AT(
         "6") "spec.ttlSecondsAfterFinished: unknown field; it belongs in spec.runPolicy"},
    {HEAD "  restartScope: Job\n  schedulingPolicy: {queue: q}\n  managedBy: a/b\n" SPECS "{" MASTER
          "}",
     AT("5") "spec.restartScope: unknown field; it belongs in spec.runPolicy; " AT(
         "6") "spec.schedulingPolicy: unknown field; it belongs in spec.runPolicy; " AT("7") "spec.managedBy: unknown field; it belongs in spec.runPolicy"},
    /* and one that is near none may still be what is missing */
    {HEAD "  replicas: {" MASTER "}",
     AT("4") "spec.pytorchReplicaSpecs: Required value: must have Master or Worker; " AT(
         "5") "spec.replicas: unknown field, ignored"},
    {"apiVersion: kubeflow.org/v1\nkind: PytorchJob\nmetadata: {name: j}\n",
     "t.yaml:2: document 1 (PytorchJob j): kind: Unsupported value: \"PytorchJob\": it is spelt "
     "PyTorchJob"},
    {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: kubeflow.org/v1\n  kind: PyTorchJob\n"
     "  metadata:\n    name: J\n  spec:\n  " SPECS "{" MASTER "}",
     "t.yaml:7: document 1 (PyTorchJob J): metadata.name: Invalid value: \"J\": should match: a "
     "DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
     "alphabetic character, and end with an alphanumeric character (at most 63)"},
};

static void all_that_is_wrong_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(wrong); i++) {
        int result;
        struct error err = {0};
        struct manifest *manifest = decode_text(wrong[i].text, &result, &err);
        assert_string_equal(lines_join(&manifest->problems), wrong[i].problems);
        assert_fails(result, &err, ERR_INPUT, "t.yaml");
        decode_close(manifest);
    }
}

static const struct row noted[] = {
    {"apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n---\n" HEAD SPECS "{" MASTER "}",
     "t.yaml:1: document 1 (Namespace ns): not a PyTorchJob, ignored"},
    {HEAD "  colour: red\n" SPECS "{" MASTER "}", AT("5") "spec.colour: unknown field, ignored"},
    {HEAD "  runPolicy: {schedulingPolicy: {queue: q}}\n" SPECS "{" MASTER "}",
     AT("4") "spec: understood, but not enforced here: spec.runPolicy.schedulingPolicy"},
    /* in one line what several templates have, and behind what matters more */
    {HEAD "  runPolicy: {schedulingPolicy: {queue: q}}\n  colour: red\n" SPECS
          "{Master: {replicas: 1, " UNUSED "}, Worker: {replicas: 1, " UNUSED "}}",
     AT("6") "spec.colour: unknown field, ignored; " AT(
         "4") "spec: understood, but not enforced here: spec.runPolicy.schedulingPolicy; of the pods: "
              "volumes, activeDeadlineSeconds, containers[0].resources, containers[0].securityContext"},
    {HEAD SPECS "{" WORKER_OF("resources: {limits: {cpu: 1}}") "}",
     AT("4") "spec: understood, but not enforced here: of the pods: containers[0].resources"},
    {HEAD SPECS "{Worker: {template: {spec: {restartPolicy: Always, containers: [{name: pytorch, "
                "image: i}]}}}}",
     AT("5") "spec.pytorchReplicaSpecs[Worker].template.spec.restartPolicy: Restart policy in pod template "
             "will be overwritten by restart policy in replica spec"},
    /* W07 */
    {HEAD "  elasticPolicy: {nProcPerNode: 2}\n" SPECS "{" WORKER "}",
     AT("5") "spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"},
    {HEAD "  elasticPolicy: {maxReplicas: 2, shrinkAfterSeconds: 9}\n" SPECS "{" WORKER "}",
     AT("5") "spec.elasticPolicy.shrinkAfterSeconds has no effect without a minReplicas that is less than maxReplicas"},
};

static void what_is_not_acted_on_is_noted(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(noted); i++) {
        int result;
        struct error err;
        struct manifest *manifest = decode_text(noted[i].text, &result, &err);
        assert_ok(result, &err);
        assert_string_equal(lines_join(&manifest->notes), noted[i].problems);
        decode_close(manifest);
    }
}

static void a_note_on_many_fields_is_cut(void **state)
{
    (void)state;
    int result;
    struct error err;
    auto_str struct str text;
    str_init(&text, 1 << 16);
    str_add(&text, HEAD SPECS "{Worker: {template: {spec: {containers: [{name: pytorch, image: i}");
    for (int i = 0; i < LINES_MAX + 6; i++)
        str_printf(&text, ", {name: s%d, image: i, tty: true}", i);
    str_add(&text, "]}}}}");
    struct manifest *manifest = decode_text(str_text(&text), &result, &err);
    assert_ok(result, &err);
    assert_int_equal(manifest->notes.count, 1);
    assert_non_null(
        strstr(manifest->notes.items[0], "of the pods: containers[1].tty, containers[2]"));
    assert_non_null(strstr(manifest->notes.items[0], "containers[20].tty and 50 more"));
    decode_close(manifest);
}

static void names_must_fit_dns(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *problem; /* part of it; NULL: none */
    } rows[] = {
        {"a", NULL},
        {"a-1", NULL},
        {"0-test", "should match: "}, /* W02 */
        {"A", "should match: "},
        {"a-", "should match: "},
        {"a.b", "should match: "},
        {"''", "should match: "},
        {"a23456789012345678901234567890123456789012345678901234", NULL},
        {"a234567890123456789012345678901234567890123456789012345",
         "would have a name of 64 bytes: the limit is 63"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int result;
        struct error err = {0};
        auto_free char *text =
            xasprintf("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: %s}\nspec:\n"
                      "  pytorchReplicaSpecs: {" WORKER "}\n",
                      rows[i].name);
        struct manifest *manifest = decode_text(text, &result, &err);
        if (rows[i].problem)
            assert_fails(result, &err, ERR_INPUT, rows[i].problem);
        else
            assert_ok(result, &err);
        decode_close(manifest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_wrong_is_told),
        cmocka_unit_test(what_is_not_acted_on_is_noted),
        cmocka_unit_test(a_note_on_many_fields_is_cut),
        cmocka_unit_test(names_must_fit_dns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
