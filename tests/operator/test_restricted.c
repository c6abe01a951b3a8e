/* Every pod that the manifests of this tree make passes Kubernetes' Pod Security Standards, profile
 * restricted (https://kubernetes.io/docs/concepts/security/pod-security-standards/), and runs as
 * the user of our images. */
#include "tests/support.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"

#include <glob.h>
#include <string.h>

#define MAX_BYTES (256 << 10)
#define USER      65532

/* The value at "a.b" of an object, NULL if there is none. */
static const struct json *get(const struct json *from, const char *path)
{
    auto_free char *copy = xstrdup(path);
    char *rest = copy, *key;
    while ((key = strsep(&rest, ".")))
        from = json_get(from, key);
    return from;
}

static bool is_text(const struct json *value, const char *text)
{
    return json_is_string(value) && strcmp(json_as_text(value), text) == 0;
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

/* What is wrong with it; NULL: nothing. */
static const char *container_problem(const struct json *container)
{
    const struct json *rights = get(container, "securityContext"), *port;
    const struct json *drop = get(rights, "capabilities.drop");
    if (!json_is_false(get(rights, "allowPrivilegeEscalation")))
        return "allowPrivilegeEscalation is not false";
    if (json_array_count(drop) != 1 || !is_text(json_at(drop, 0), "ALL"))
        return "not all capabilities are dropped";
    if (json_array_count(get(rights, "capabilities.add")))
        return "capabilities are added";
    if (json_is_true(get(rights, "privileged")) || get(rights, "procMount"))
        return "privileged";
    if (get(rights, "runAsUser") || get(rights, "seccompProfile"))
        return "the pod says whose it is, a container does not";
    json_each_item(port, get(container, "ports")) {
        if (json_get(port, "hostPort"))
            return "hostPort";
    }
    return NULL;
}

static const char *volume_problem(const struct json *volume)
{
    static const char *const taken[] = {
        "name",      "configMap", "csi",    "downwardAPI",           "emptyDir",
        "ephemeral", "projected", "secret", "persistentVolumeClaim", NULL};
    const struct json *value;
    json_each_member(value, volume) {
        if (!is_one_of(json_key(value), taken))
            return json_key(value);
    }
    return NULL;
}

static const char *pod_problem(const struct json *pod)
{
    static const char *const lists[] = {"initContainers", "containers"};
    const struct json *rights = get(pod, "securityContext"), *entry;
    const char *problem = NULL;
    if (get(pod, "hostNetwork") || get(pod, "hostPID") || get(pod, "hostIPC"))
        return "a namespace of the host";
    if (!json_is_true(get(rights, "runAsNonRoot")) ||
        json_as_integer(get(rights, "runAsUser")) != USER)
        return "its user is not the image's";
    if (!is_text(get(rights, "seccompProfile.type"), "RuntimeDefault"))
        return "seccompProfile is not RuntimeDefault";
    if (get(rights, "sysctls") || get(rights, "supplementalGroups"))
        return "sysctls or supplementalGroups";
    json_each_item(entry, get(pod, "volumes")) {
        if ((problem = volume_problem(entry)))
            return problem;
        if (get(entry, "persistentVolumeClaim") && json_as_integer(get(rights, "fsGroup")) != USER)
            return "its user may not write into its claim: no fsGroup";
    }
    for (size_t k = 0; k < array_length(lists); k++)
        json_each_item(entry, get(pod, lists[k])) {
            if ((problem = container_problem(entry)))
                return problem;
        }
    return json_array_count(get(pod, "containers")) ? NULL : "no containers";
}

/* Checks each pod of a document; returns how many it has. */
static int check_document(const char *path, const struct json *document)
{
    const struct json *replicas = get(document, "spec.pytorchReplicaSpecs"), *pod;
    const char *problem;
    struct json *replica;
    int pods = 0;
    json_each_member(replica, replicas) {
        const char *role = json_key(replica);
        if ((problem = pod_problem(get(replica, "template.spec"))))
            fail_msg("%s: %s: %s", path, role, problem);
        pods++;
    }
    if ((pod = get(document, "spec.template.spec"))) {
        if ((problem = pod_problem(pod)))
            fail_msg("%s: %s", path, problem);
        pods++;
    }
    return pods;
}

/* The steps of an overlay's patch, which is laid over a pod that was checked. */
static void check_patch(const char *path, const char *text)
{
    static const char *const words[] = {"securityContext", "hostPath", "hostNetwork", "volumes"};
    for (size_t i = 0; i < array_length(words); i++)
        if (strstr(text, words[i]))
            fail_msg("%s changes %s: teach it to this test", path, words[i]);
}

static int check_file(const char *path)
{
    struct error err;
    auto_free char *text = NULL;
    size_t bytes;
    struct json *list, *document;
    int pods = 0;
    assert_ok(file_read(path, MAX_BYTES, &text, &bytes, &err), &err);
    assert_ok(yaml_parse(text, bytes, path, &list, &err), &err);
    json_each_item(document, list) {
        if (json_is_array(document))
            check_patch(path, text);
        pods += check_document(path, document);
    }
    json_free(list);
    return pods;
}

static void every_pod_is_restricted(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        int least; /* pods */
    } rows[] = {
        {"kustomize/*/*.yaml", 2},     {"kustomize/*/*/*.yaml", 10}, {"deploy/demo/*.yaml", 6},
        {"deploy/operator/*.yaml", 1}, /* the chart's, too: it has the same files */
        {"deploy/*/*/*.yaml", 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        glob_t found;
        int pods = 0;
        assert_int_equal(glob(rows[i].pattern, 0, NULL, &found), 0);
        for (size_t k = 0; k < found.gl_pathc; k++)
            pods += check_file(found.gl_pathv[k]);
        globfree(&found);
        if (pods < rows[i].least)
            fail_msg("%s has %d pods", rows[i].pattern, pods);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pod_is_restricted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
