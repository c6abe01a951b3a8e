#include "tests/operator/cache/objects.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "operator/job/names.h"
#include "tests/support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct json *object_from(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int bytes = vasprintf(&text, format, args);
    va_end(args);
    struct json *documents = NULL;
    struct error err;
    assert_ok(yaml_parse(text, (size_t)bytes, "test", &documents, &err), &err);
    struct json *object = json_take_at(documents, 0);
    json_free(documents);
    free(text);
    return object;
}

struct json *object_job(const char *name, const char *uid, int version, int workers)
{
    return object_from(
        "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: %s, "
        "namespace: ns, uid: %s, resourceVersion: '%d'}, spec: {pytorchReplicaSpecs: "
        "{Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: "
        "i}]}}}, Worker: {replicas: %d, template: {spec: {containers: [{name: pytorch, "
        "image: i}]}}}}}}",
        name, uid, version, workers);
}

/* What pods and services have in common. */
static char *metadata(const char *name, const char *uid, const char *owner_uid, int version)
{
    int job_bytes = (int)names_child_job(name);
    const char *type = name + job_bytes + 1, *index = strrchr(name, '-') + 1;
    return xasprintf(
        "{name: %s, namespace: ns, uid: %s, resourceVersion: '%d', labels: "
        "{training.kubeflow.org/job-name: %.*s, training.kubeflow.org/replica-type: %.*s, "
        "training.kubeflow.org/replica-index: '%s'}, ownerReferences: [{apiVersion: "
        "kubeflow.org/v1, kind: PyTorchJob, name: %.*s, uid: %s, controller: true}]}",
        name, uid, version, job_bytes, name, (int)(index - 1 - type), type, index, job_bytes, name,
        owner_uid);
}

struct json *object_pod(const char *name, const char *uid, const char *owner_uid, int version,
                        const char *phase)
{
    auto_free char *common = metadata(name, uid, owner_uid, version);
    return object_from("{metadata: %s, status: {phase: %s}}", common, phase);
}

struct json *object_service(const char *name, const char *uid, const char *owner_uid, int version)
{
    auto_free char *common = metadata(name, uid, owner_uid, version);
    return object_from("{metadata: %s}", common);
}

const char *object_phase(enum pod_phase phase)
{
    static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed", "Unknown"};
    return names[phase];
}
