/* The parts of deploy/monitoring/prometheus.yaml that Debian's promtool cannot read, as it is built
 * without Kubernetes' discovery: kubernetes_sd_config and the labels of its role "pod", after the
 * page "Configuration" of Prometheus 3. The rest of the file is tests/deploy/test_monitoring.sh's
 * to look at. */
#include "tests/support.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"

#include <string.h>

#define FILE_PATH "deploy/monitoring/prometheus.yaml"
#define MAX_BYTES (64 << 10)

static const char *const discovery_fields[] = {
    "api_server",
    "role",
    "kubeconfig_file",
    "namespaces",
    "selectors",
    "attach_metadata",
    "basic_auth",
    "authorization",
    "oauth2",
    "proxy_url",
    "no_proxy",
    "proxy_from_environment",
    "proxy_connect_header",
    "follow_redirects",
    "enable_http2",
    "tls_config",
    "http_headers",
};
static const char *const namespaces_fields[] = {"own_namespace", "names"};
/* Of role "pod"; with "_" at the end: the name of a label or annotation follows. */
static const char *const pod_labels[] = {
    "__meta_kubernetes_namespace",
    "__meta_kubernetes_pod_name",
    "__meta_kubernetes_pod_ip",
    "__meta_kubernetes_pod_label_",
    "__meta_kubernetes_pod_labelpresent_",
    "__meta_kubernetes_pod_annotation_",
    "__meta_kubernetes_pod_annotationpresent_",
    "__meta_kubernetes_pod_container_init",
    "__meta_kubernetes_pod_container_name",
    "__meta_kubernetes_pod_container_id",
    "__meta_kubernetes_pod_container_image",
    "__meta_kubernetes_pod_container_port_name",
    "__meta_kubernetes_pod_container_port_number",
    "__meta_kubernetes_pod_container_port_protocol",
    "__meta_kubernetes_pod_ready",
    "__meta_kubernetes_pod_phase",
    "__meta_kubernetes_pod_node_name",
    "__meta_kubernetes_pod_host_ip",
    "__meta_kubernetes_pod_uid",
    "__meta_kubernetes_pod_controller_kind",
    "__meta_kubernetes_pod_controller_name",
};

static bool is_in(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static bool is_pod_label(const char *name)
{
    for (size_t i = 0; i < array_length(pod_labels); i++) {
        size_t length = strlen(pod_labels[i]);
        if (pod_labels[i][length - 1] == '_' ? strncmp(name, pod_labels[i], length) == 0
                                             : strcmp(name, pod_labels[i]) == 0)
            return true;
    }
    return false;
}

/* What Prometheus would refuse of a kubernetes_sd_config; NULL: nothing. The caller frees it. */
static char *wrong_discovery(const struct json *discovery)
{
    const struct json *member;
    const char *role = json_as_text(json_get(discovery, "role"));
    if (!json_is_object(discovery))
        return xstrdup("no mapping");
    json_each_member(member, discovery) {
        if (!is_in(json_key(member), discovery_fields, array_length(discovery_fields)))
            return xasprintf("unknown field %s", json_key(member));
    }
    if (!role || strcmp(role, "pod") != 0)
        return xasprintf("role %s, whose labels are not known here", role ? role : "missing");
    const struct json *namespaces = json_get(discovery, "namespaces");
    json_each_member(member, namespaces) {
        if (!is_in(json_key(member), namespaces_fields, array_length(namespaces_fields)))
            return xasprintf("unknown field namespaces.%s", json_key(member));
    }
    const struct json *names = json_get(namespaces, "names"), *name;
    if (namespaces && !json_is_array(names))
        return xstrdup("namespaces.names is no list");
    json_each_item(name, names) {
        if (!json_is_string(name))
            return xstrdup("namespaces.names has something else than texts");
    }
    return NULL;
}

static struct json *parsed(const char *text, size_t bytes)
{
    struct error err;
    struct json *list;
    assert_ok(yaml_parse(text, bytes, FILE_PATH, &list, &err), &err);
    struct json *first = json_take_at(list, 0);
    json_free(list);
    return first;
}

static struct json *scrape_file(void)
{
    struct error err;
    auto_free char *text = NULL;
    size_t bytes;
    assert_ok(file_read(FILE_PATH, MAX_BYTES, &text, &bytes, &err), &err);
    return parsed(text, bytes);
}

static void discovery_has_known_fields(void **state)
{
    (void)state;
    struct json *file = scrape_file(), *job;
    size_t jobs = 0;
    json_each_item(job, json_get(file, "scrape_configs")) {
        const char *name = json_as_text(json_get(job, "job_name"));
        const struct json *list = json_get(job, "kubernetes_sd_configs"), *one;
        assert_true(json_array_count(list) > 0);
        json_each_item(one, list) {
            auto_free char *wrong = wrong_discovery(one);
            if (wrong)
                fail_msg("%s of %s: kubernetes_sd_configs: %s", name, FILE_PATH, wrong);
        }
        jobs++;
    }
    assert_int_equal(jobs, 2);
    json_free(file);
}

static void labels_are_those_of_pods(void **state)
{
    (void)state;
    struct json *file = scrape_file(), *job, *rule, *label;
    size_t labels = 0;
    json_each_item(job, json_get(file, "scrape_configs")) {
        json_each_item(rule, json_get(job, "relabel_configs")) {
            json_each_item(label, json_get(rule, "source_labels")) {
                if (!is_pod_label(json_as_text(label)))
                    fail_msg("%s: pods have no label %s", FILE_PATH, json_as_text(label));
                labels++;
            }
        }
    }
    assert_true(labels > 5);
    json_free(file);
}

static void faults_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *discovery, *wrong;
    } cases[] = {
        {"{role: pod}", NULL},
        {"{role: pod, namespaces: {own_namespace: true, names: [a, b]}}", NULL},
        {"{rol: pod}", "unknown field rol"},
        {"{namespaces: {names: [a]}}", "role missing, whose labels are not known here"},
        {"{role: pods}", "role pods, whose labels are not known here"},
        {"{role: pod, namespace: {names: [a]}}", "unknown field namespace"},
        {"{role: pod, namespaces: {name: [a]}}", "unknown field namespaces.name"},
        {"{role: pod, namespaces: {names: a}}", "namespaces.names is no list"},
        {"{role: pod, namespaces: {names: [1]}}", "namespaces.names has something else than texts"},
        {"pod", "no mapping"},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        struct json *discovery = parsed(cases[i].discovery, strlen(cases[i].discovery));
        auto_free char *wrong = wrong_discovery(discovery);
        if (cases[i].wrong)
            assert_string_equal(wrong, cases[i].wrong);
        else
            assert_null(wrong);
        json_free(discovery);
    }
    assert_false(is_pod_label("__meta_kubernetes_pod_port_name"));
    assert_false(is_pod_label("__meta_kubernetes_pod_phases"));
    assert_true(is_pod_label("__meta_kubernetes_pod_label_app_kubernetes_io_name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(discovery_has_known_fields),
        cmocka_unit_test(labels_are_those_of_pods),
        cmocka_unit_test(faults_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
