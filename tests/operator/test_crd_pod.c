/* The pod templates of the CustomResourceDefinition: core/v1's, so that a field that does not exist
 * or has another type is refused when a job is applied, and what is right is taken. */
#include "tests/operator/crd_fixture.h"
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"

#include <string.h>

#define WORKER_WITH(pod, container)                                                                \
    "pytorchReplicaSpecs: {Worker: {template: {spec: {" pod                                        \
    "containers: [{name: pytorch, image: i, " container "}]}}}}"

static const struct crd_row rows[] = {
    /* slips of people, and what others say in their place */
    {"j", WORKER_WITH("", "volumeMount: [{name: v, mountPath: /v}]"), REFUSED_BY_SCHEMA},
    {"j", WORKER_WITH("", "volumeMounts: [{name: v, mountpath: /v}]"), REFUSED_BY_SCHEMA},
    {"j", WORKER_WITH("", "resorces: {limits: {nvidia.com/gpu: 1}}"), REFUSED_BY_SCHEMA},
    {"j", WORKER_WITH("", "resources: {limit: {nvidia.com/gpu: 1}}"), REFUSED_BY_SCHEMA},
    {"j", WORKER_WITH("", "resources: {limits: {cpu: lots}}"), REFUSED},
    {"j", WORKER_WITH("", "ports: [{containerPort: 80, protocol: 1}]"), REFUSED},
    {"j", WORKER_WITH("", "env: [{name: A, valueFrom: {secretKey: {name: s, key: k}}}]"), REFUSED},
    {"j",
     WORKER_WITH("volumes: [{name: v, emptyDir: {}}], ",
                 "env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}]"),
     TAKEN},
    {"j", WORKER_WITH("nodeSelectr: {a: b}, ", "args: []"), REFUSED_BY_SCHEMA},
    {"j", WORKER_WITH("nodeSelector: {a: 1}, ", "args: []"), REFUSED_BY_SCHEMA},
    {"j", WORKER_WITH("hostNetwork: 'yes', ", "args: []"), REFUSED_BY_SCHEMA},
    {"j", WORKER_WITH("volumes: [{name: v, persistentVolumeClaim: {claim: c}}], ", "args: []"),
     REFUSED_BY_SCHEMA},
    {"j", WORKER_WITH("affinity: {podAffinity: {required: []}}, ", "args: []"), REFUSED_BY_SCHEMA},
    {"j",
     "pytorchReplicaSpecs: {Worker: {template: {metadata: {label: {a: b}}, spec: {containers: "
     "[{name: pytorch, image: i}]}}}}",
     REFUSED_BY_SCHEMA},
    {"j",
     "pytorchReplicaSpecs: {Worker: {template: {sepc: {}, spec: {containers: "
     "[{name: pytorch, image: i}]}}}}",
     REFUSED_BY_SCHEMA},
    /* what core/v1 has had since 1.20 and what it has of late */
    {"j",
     WORKER_WITH("resources: {limits: {cpu: 1500m, memory: 4e9}}, hostnameOverride: h, ",
                 "restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [9]}}], "
                 "livenessProbe: {httpGet: {port: health}}, resources: {limits: {cpu: 0.5, "
                 "nvidia.com/gpu: 1}, claims: [{name: c}]}"),
     TAKEN},
    {"j",
     "pytorchReplicaSpecs: {Worker: {template: {metadata: {creationTimestamp: null, labels: {a: "
     "b}}, spec: {imagePullSecrets: [{name: s}], containers: [{name: pytorch, image: i}]}}}}",
     TAKEN}, /* as typed clients write it */
};

static void slips_are_refused(void **state)
{
    crd_fixture_check(*state, rows, array_length(rows));
}

/* An empty value of the schema's type; whether it is a right one is not asked here. */
static struct json *empty_value(const struct json *schema)
{
    const char *type = json_as_text(json_get(schema, "type"));
    return strcmp(type, "object") == 0    ? json_new_object()
           : strcmp(type, "array") == 0   ? json_new_array()
           : strcmp(type, "string") == 0  ? json_new_text("")
           : strcmp(type, "boolean") == 0 ? json_new_bool(true)
                                          : json_new_integer(1);
}

/* A template of which `at` is a part, with all fields that the schema has there. */
static struct json *template_with(struct crd_fixture *f, const char *at)
{
    struct json *template =
        crd_fixture_parse("{metadata: {}, spec: {containers: [{name: pytorch, image: i}]}}");
    struct json *part = template;
    const struct json *schema = crd_fixture_schema_at(f, REPLICAS "Worker.template"), *field;
    auto_free char *copy = xstrdup(at);
    char *rest = copy, *step;
    while (*rest && (step = strsep(&rest, ".")) && *step) {
        part = json_get(part, step);
        schema = json_get(json_get(schema, "properties"), step);
        if (json_is_array(part)) {
            part = json_at(part, 0);
            schema = json_get(schema, "items");
        }
        if (!rest)
            break;
    }
    json_each_member(field, json_get(schema, "properties")) {
        if (!json_get(part, json_key(field)))
            json_set(part, json_key(field), empty_value(field));
    }
    return template;
}

/* `shoal run` says of a field that nobody knows that it is ignored: it knows all of a pod. */
static void the_code_knows_every_field_of_a_pod(void **state)
{
    struct crd_fixture *f = *state;
    static const char *const parts[] = {"", "metadata", "spec", "spec.containers"};
    for (size_t i = 0; i < array_length(parts); i++) {
        struct json *object = crd_fixture_job(f, "j", BOTH);
        struct json *replicas = json_get(json_get(object, "spec"), "pytorchReplicaSpecs");
        json_set(json_get(replicas, "Worker"), "template", template_with(f, parts[i]));
        crd_fixture_look(f, object);
        for (size_t k = 0; k < f->notes.count; k++)
            if (strstr(f->notes.items[k], "unknown field"))
                fail_msg("%s", f->notes.items[k]);
        json_free(object);
    }
}

/* The API server's own demand: entries of a list are told apart by keys that each has. */
static void check_keys(const struct json *schema, const char *path)
{
    const struct json *part;
    const struct json *keys = json_get(schema, "x-kubernetes-list-map-keys"), *items;
    items = json_get(schema, "items");
    json_each_item(part, keys) {
        const struct json *required = json_get(items, "required"), *one;
        bool has = json_get(json_get(json_get(items, "properties"), json_as_text(part)), "default");
        json_each_item(one, required) {
            has |= json_is_equal(one, part);
        }
        if (!has)
            fail_msg("%s: the key %s is neither required nor has a default", path,
                     json_as_text(part));
    }
    json_each_member(part, schema) {
        if (json_is_object(part))
            check_keys(part, json_key(part));
    }
}

static void entries_of_lists_have_their_keys(void **state)
{
    struct crd_fixture *f = *state;
    check_keys(f->crd, "");
}

/* A plain `kubectl apply` keeps it in an annotation, of 262,144 bytes with all others. */
static void it_is_half_of_what_kubectl_can_keep(void **state)
{
    struct crd_fixture *f = *state;
    auto_free char *text = json_print(f->crd, JSON_COMPACT);
    assert_in_range(strlen(text), 64 << 10, 128 << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slips_are_refused, crd_fixture_open, crd_fixture_close),
        cmocka_unit_test_setup_teardown(the_code_knows_every_field_of_a_pod, crd_fixture_open,
                                        crd_fixture_close),
        cmocka_unit_test_setup_teardown(entries_of_lists_have_their_keys, crd_fixture_open,
                                        crd_fixture_close),
        cmocka_unit_test_setup_teardown(it_is_half_of_what_kubectl_can_keep, crd_fixture_open,
                                        crd_fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
