/* The pod templates of the CustomResourceDefinition: core/v1's, so that a field that does not exist
 * or has another type is refused when a job is applied, and what is right is taken. */
#include "tests/operator/crd_fixture.h"
#include "tests/support.h"

#include "base/mem.h"

#include <jansson.h>
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
static json_t *empty_value(const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    return strcmp(type, "object") == 0    ? json_object()
           : strcmp(type, "array") == 0   ? json_array()
           : strcmp(type, "string") == 0  ? json_string("")
           : strcmp(type, "boolean") == 0 ? json_true()
                                          : json_integer(1);
}

/* A template of which `at` is a part, with all fields that the schema has there. */
static json_t *template_with(struct crd_fixture *f, const char *at)
{
    json_t *template =
        crd_fixture_parse("{metadata: {}, spec: {containers: [{name: pytorch, image: i}]}}");
    json_t *part = template;
    const json_t *schema = crd_fixture_schema_at(f, REPLICAS "Worker.template"), *field;
    auto_free char *copy = xstrdup(at);
    char *rest = copy, *step;
    while (*rest && (step = strsep(&rest, ".")) && *step) {
        part = json_object_get(part, step);
        schema = json_object_get(json_object_get(schema, "properties"), step);
        if (json_is_array(part)) {
            part = json_array_get(part, 0);
            schema = json_object_get(schema, "items");
        }
        if (!rest)
            break;
    }
    const char *name;
    json_object_foreach(json_object_get(schema, "properties"), name,
                        field) if (!json_object_get(part, name))
        json_object_set_new(part, name, empty_value(field));
    return template;
}

/* `shoal run` says of a field that nobody knows that it is ignored: it knows all of a pod. */
static void the_code_knows_every_field_of_a_pod(void **state)
{
    struct crd_fixture *f = *state;
    static const char *const parts[] = {"", "metadata", "spec", "spec.containers"};
    for (size_t i = 0; i < array_length(parts); i++) {
        json_t *object = crd_fixture_job(f, "j", BOTH);
        json_t *replicas = json_object_get(json_object_get(object, "spec"), "pytorchReplicaSpecs");
        json_object_set_new(json_object_get(replicas, "Worker"), "template",
                            template_with(f, parts[i]));
        crd_fixture_look(f, object);
        for (size_t k = 0; k < f->notes.count; k++)
            if (strstr(f->notes.items[k], "unknown field"))
                fail_msg("%s", f->notes.items[k]);
        json_decref(object);
    }
}

/* The API server's own demand: entries of a list are told apart by keys that each has. */
static void check_keys(const json_t *schema, const char *path)
{
    const char *name;
    json_t *part;
    size_t i, k;
    const json_t *keys = json_object_get(schema, "x-kubernetes-list-map-keys"), *items;
    items = json_object_get(schema, "items");
    json_array_foreach(keys, i, part)
    {
        const json_t *required = json_object_get(items, "required"), *one;
        bool has = json_object_get(
            json_object_get(json_object_get(items, "properties"), json_string_value(part)),
            "default");
        json_array_foreach(required, k, one) has |= json_equal(one, part);
        if (!has)
            fail_msg("%s: the key %s is neither required nor has a default", path,
                     json_string_value(part));
    }
    json_object_foreach((json_t *)schema, name, part) if (json_is_object(part))
        check_keys(part, name);
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
    assert_in_range(json_dumpb(f->crd, NULL, 0, JSON_COMPACT), 64 << 10, 128 << 10);
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
