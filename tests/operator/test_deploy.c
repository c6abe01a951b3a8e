/* The manifests that install the operator against the program that they start, and against each
 * other. */
#include "tests/support.h"

#include "base/contract.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "operator/config.h"
#include "operator/decode/decode.h"
#include "tests/operator/schema.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (64 << 10)
#define MAX_ARGS  32
#define ROLES     "deploy/operator/rbac.yaml"

/* All documents of a file; the caller owns them. */
static struct json *documents(const char *path)
{
    struct error err;
    auto_free char *text = NULL;
    size_t bytes;
    struct json *list;
    assert_ok(file_read(path, MAX_BYTES, &text, &bytes, &err), &err);
    assert_ok(yaml_parse(text, bytes, path, &list, &err), &err);
    return list;
}

/* "0.spec.ports.0.name" from there; it must be there. */
static struct json *at(const struct json *from, const char *path)
{
    auto_free char *copy = xstrdup(path);
    char *save = NULL;
    const struct json *value = from;
    for (char *key = strtok_r(copy, ".", &save); key; key = strtok_r(NULL, ".", &save))
        value = json_is_array(value) ? json_at(value, (size_t)atoi(key)) : json_get(value, key);
    if (!value)
        fail_msg("nothing at %s", path);
    return (struct json *)value;
}

static const char *text_at(const struct json *from, const char *path)
{
    return json_as_text(at(from, path));
}

static const struct json *container(const struct json *deployment)
{
    return at(deployment, "0.spec.template.spec.containers.0");
}

static const struct json *env_of; /* the container whose environment getenv_of reads */

static const char *getenv_of(const char *name)
{
    const struct json *var;
    json_each_item(var, at(env_of, "env")) {
        if (strcmp(text_at(var, "name"), name) == 0)
            return json_as_text(json_get(var, "value"));
    }
    return NULL;
}

/* What the program understands when it is started as the Deployment says. */
static struct operator_config started(const struct json *deployment)
{
    char *argv[MAX_ARGS];
    int argc = 0;
    const struct json *arg;
    assert_string_equal(text_at(container(deployment), "command.0"), "shoal-operator");
    json_each_item(arg, at(container(deployment), "args")) {
        argv[argc++] = (char *)json_as_text(arg);
    }
    struct operator_config config;
    struct error err;
    env_of = container(deployment);
    assert_ok(operator_config_parse(&config, argc, argv, getenv_of, &err), &err);
    return config;
}

static void the_operator_takes_its_flags(void **state)
{
    (void)state;
    struct json *deployment = documents("deploy/operator/deployment.yaml"),
                *roles = documents(ROLES);
    struct operator_config config = started(deployment);
    assert_true(config.leader_elect);
    assert_string_equal(config.leader_election_id, text_at(roles, "2.rules.1.resourceNames.0"));
    assert_string_equal(config.own_namespace, text_at(deployment, "0.metadata.namespace"));
    assert_string_equal(text_at(container(deployment), "image"), "shoal-operator:" SHOAL_VERSION);
    assert_string_equal(text_at(container(deployment), "image"), config.init_image);
    json_free(deployment);
    json_free(roles);
}

/* The number behind a port's name. */
static int64_t port_of(const struct json *deployment, const char *name)
{
    const struct json *port;
    json_each_item(port, at(container(deployment), "ports")) {
        if (strcmp(text_at(port, "name"), name) == 0)
            return json_as_integer(at(port, "containerPort"));
    }
    fail_msg("the container has no port %s", name);
    return 0;
}

static void ports_are_where_the_operator_listens(void **state)
{
    (void)state;
    struct json *deployment = documents("deploy/operator/deployment.yaml");
    struct json *service = documents("deploy/operator/service.yaml");
    struct json *policy = documents("deploy/operator/network_policy.yaml");
    struct operator_config config = started(deployment);
    struct error err;
    char host[64];
    int metrics, health;
    assert_ok(
        operator_config_address(config.metrics_bind_address, host, sizeof host, &metrics, &err),
        &err);
    assert_ok(
        operator_config_address(config.health_probe_bind_address, host, sizeof host, &health, &err),
        &err);
    assert_int_equal(port_of(deployment, "metrics"), metrics);
    assert_int_equal(port_of(deployment, "health"), health);
    assert_string_equal(text_at(container(deployment), "livenessProbe.httpGet.port"), "health");
    assert_string_equal(text_at(container(deployment), "readinessProbe.httpGet.port"), "health");
    assert_int_equal(port_of(deployment, text_at(service, "0.spec.ports.0.targetPort")), metrics);
    const struct json *annotations = at(service, "0.metadata.annotations");
    assert_int_equal(atoi(json_as_text(json_get(annotations, "prometheus.io/port"))), metrics);
    assert_int_equal(port_of(deployment, text_at(policy, "0.spec.ingress.0.ports.0.port")),
                     metrics);
    /* the kubelet's probes come in all the same, and nobody else asks for health */
    assert_int_equal(json_array_count(at(policy, "0.spec.ingress")), 1);
    assert_int_equal(json_array_count(at(policy, "0.spec.ingress.0.ports")), 1);
    assert_int_equal(json_array_count(at(policy, "0.spec.ingress.0.from")), 2);
    json_free(deployment);
    json_free(service);
    json_free(policy);
}

static void everything_selects_the_pods(void **state)
{
    (void)state;
    struct json *deployment = documents("deploy/operator/deployment.yaml");
    struct json *service = documents("deploy/operator/service.yaml");
    struct json *policy = documents("deploy/operator/network_policy.yaml");
    const struct json *labels = at(deployment, "0.spec.template.metadata.labels");
    assert_true(json_is_equal(at(deployment, "0.spec.selector.matchLabels"), labels));
    assert_true(json_is_equal(at(service, "0.spec.selector"), labels));
    assert_true(json_is_equal(at(policy, "0.spec.podSelector.matchLabels"), labels));
    json_free(deployment);
    json_free(service);
    json_free(policy);
}

static void roles_are_bound_to_the_pods(void **state)
{
    (void)state;
    struct json *deployment = documents("deploy/operator/deployment.yaml"),
                *roles = documents(ROLES);
    struct json *account = documents("deploy/operator/service_account.yaml");
    struct json *namespace_ = documents("deploy/operator/namespace.yaml");
    const char *name = text_at(deployment, "0.spec.template.spec.serviceAccountName");
    assert_string_equal(text_at(account, "0.metadata.name"), name);
    assert_string_equal(text_at(account, "0.metadata.namespace"),
                        text_at(namespace_, "0.metadata.name"));
    struct json *nodes = documents("deploy/watch-nodes/role.yaml"),
                *kueue = documents("deploy/kueue/role.yaml"),
                *workloads = documents("deploy/kueue/role_binding.yaml");
    const struct {
        const struct json *role, *binding;
    } rows[] = {{json_at(roles, 0), json_at(roles, 1)},
                {json_at(roles, 2), json_at(roles, 3)},
                {json_at(nodes, 0), json_at(nodes, 1)},
                {json_at(kueue, 0), json_at(workloads, 0)},
                {json_at(kueue, 1), json_at(kueue, 2)}};
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct json *binding = rows[i].binding, *role = rows[i].role;
        assert_string_equal(text_at(binding, "roleRef.name"), text_at(role, "metadata.name"));
        assert_string_equal(text_at(binding, "roleRef.kind"), text_at(role, "kind"));
        assert_string_equal(text_at(binding, "subjects.0.name"), name);
        assert_string_equal(text_at(binding, "subjects.0.namespace"),
                            text_at(namespace_, "0.metadata.name"));
    }
    json_free(deployment);
    json_free(roles);
    json_free(nodes);
    json_free(kueue);
    json_free(workloads);
    json_free(account);
    json_free(namespace_);
}

/* Who may ask the operator for its metrics may ask the jobs for theirs, and so may the operator;
 * jobs reach each other. */
static void jobs_are_shut_in(void **state)
{
    (void)state;
    struct json *jobs = documents("deploy/jobs/network_policy.yaml");
    struct json *policy = documents("deploy/operator/network_policy.yaml");
    struct json *namespace = documents("deploy/operator/namespace.yaml");
    const struct json *pods = at(jobs, "0.spec.podSelector"), *labels = at(pods, "matchLabels");
    assert_int_equal(json_object_count(labels), 1);
    assert_string_equal(json_as_text(json_get(labels, LABEL_OPERATOR_NAME)), OPERATOR_NAME);
    assert_int_equal(json_array_count(at(jobs, "0.spec.ingress")), 2);
    assert_true(json_is_equal(at(jobs, "0.spec.ingress.0.from.0.podSelector"), pods));
    struct json *labelled = json_take_at(at(jobs, "0.spec.ingress.1.from"), 3);
    struct json *named = json_take_at(at(jobs, "0.spec.ingress.1.from"), 2);
    assert_true(
        json_is_equal(at(jobs, "0.spec.ingress.1.from"), at(policy, "0.spec.ingress.0.from")));
    /* the operator, in a namespace of its own alone: pods may wear any label */
    assert_true(json_is_equal(at(named, "podSelector"), at(policy, "0.spec.podSelector")));
    assert_true(json_is_equal(at(labelled, "podSelector"), at(policy, "0.spec.podSelector")));
    const struct json *by_name = at(named, "namespaceSelector.matchLabels");
    assert_string_equal(json_as_text(json_get(by_name, "kubernetes.io/metadata.name")),
                        json_as_text(at(namespace, "0.metadata.name")));
    const struct json *by_label = at(labelled, "namespaceSelector.matchLabels");
    assert_string_equal(
        json_as_text(json_get(by_label, "shoal.dev/operator")),
        json_as_text(json_get(at(namespace, "0.metadata.labels"), "shoal.dev/operator")));
    json_free(named);
    json_free(labelled);
    assert_int_equal(json_as_integer(at(jobs, "0.spec.ingress.1.ports.0.port")), TRAINING_PORT);
    json_free(namespace);
    json_free(jobs);
    json_free(policy);
}

/* A pod that asks for GPUs needs NVIDIA's libraries; another should not pull them. */
static const char *image_of(const struct container *container)
{
    for (size_t i = 0; i < container->requests.count; i++)
        if (strcmp(container->requests.items[i].resource, "nvidia.com/gpu") == 0)
            return AGENT_PROGRAM ":" SHOAL_VERSION "-cuda13";
    return AGENT_PROGRAM ":" SHOAL_VERSION;
}

static void the_overlays_are_jobs(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "kustomize/overlays/mnist/pytorchjob.yaml",
        "kustomize/overlays/bert/pytorchjob.yaml",
        "kustomize/overlays/llama3-1b/pytorchjob.yaml",
        "kustomize/overlays/llama3-8b/pytorchjob.yaml",
        "kustomize/overlays/llama-single-gpu/pytorchjob.yaml",
        "kustomize/overlays/gpt2/pytorchjob.yaml",
        "kustomize/overlays/t5-small/pytorchjob.yaml",
        "kustomize/overlays/t5-base/pytorchjob.yaml",
    };
    for (size_t i = 0; i < array_length(paths); i++) {
        struct error err;
        struct manifest *manifest;
        auto_free char *text = NULL;
        size_t bytes;
        assert_ok(file_read(paths[i], MAX_BYTES, &text, &bytes, &err), &err);
        assert_ok(decode_manifest(text, bytes, paths[i], 6, &manifest, &err), &err);
        assert_int_equal(manifest->job_count, 1);
        struct json *crd = schema_of_crd("deploy/crd/pytorchjobs.yaml");
        schema_check(crd, json_at(manifest->documents, 0), "", &manifest->problems);
        assert_string_equal(lines_join(&manifest->problems), "");
        for (int type = 0; type < REPLICA_TYPES; type++) {
            const struct pod_template *pod = &manifest->jobs[0]->replicas[type].template_;
            if (pod->containers)
                assert_string_equal(pod->containers[0].image, image_of(&pod->containers[0]));
        }
        json_free(crd);
        decode_close(manifest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_operator_takes_its_flags),
        cmocka_unit_test(ports_are_where_the_operator_listens),
        cmocka_unit_test(everything_selects_the_pods),
        cmocka_unit_test(roles_are_bound_to_the_pods),
        cmocka_unit_test(jobs_are_shut_in),
        cmocka_unit_test(the_overlays_are_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
