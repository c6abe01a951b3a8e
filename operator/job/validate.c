#include "operator/job/validate.h"

#include "base/contract.h"
#include "base/str.h"
#include "operator/job/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MULTIKUEUE "kueue.x-k8s.io/multikueue"

/* One that a service may have. */
static bool is_dns1035_label(const char *name)
{
    return names_is_label(name) && name[0] >= 'a';
}

/* The services of the last replicas have the longest names. */
static void validate_child_names(const struct job *job, struct lines *problems)
{
    for (int type = 0; type < REPLICA_TYPES; type++) {
        const struct replica_spec *replica = &job->replicas[type];
        int64_t last = replica->replicas.set ? replica->replicas.value - 1 : 0;
        int length =
            snprintf(NULL, 0, "%s-%s-%" PRId64, job->name, names_replica_label(type), last);
        if (replica->present && last >= 0 && length > NAMES_LABEL_MAX_BYTES) {
            lines_add(problems,
                      "metadata.name: Invalid value: \"%s\": its service %s-%s-%" PRId64
                      " would have a name of %d bytes: the limit is %d",
                      job->name, job->name, names_replica_label(type), last, length,
                      NAMES_LABEL_MAX_BYTES);
            return;
        }
    }
}

static void validate_name(const struct job *job, struct lines *problems)
{
    if (is_dns1035_label(job->name))
        validate_child_names(job, problems);
    else
        lines_add(
            problems,
            "metadata.name: Invalid value: \"%s\": should match: a DNS-1035 label must consist "
            "of lower case alphanumeric characters or '-', start with an alphabetic character, "
            "and end with an alphanumeric character (at most %d)",
            job->name, NAMES_LABEL_MAX_BYTES);
}

static void validate_managed_by(const struct job *job, struct lines *problems)
{
    const char *manager = job->run_policy.managed_by;
    if (manager && strcmp(manager, API_MANAGED_BY) != 0 && strcmp(manager, MULTIKUEUE) != 0)
        lines_add(problems,
                  "spec.runPolicy.managedBy: Unsupported value: \"%s\": supported values: \"%s\", "
                  "\"%s\"",
                  manager, API_MANAGED_BY, MULTIKUEUE);
}

static void validate_nproc(const struct job *job, struct lines *problems, struct lines *notes)
{
    if (job->elastic.present && job->elastic.nproc_per_node.set) {
        if (notes)
            lines_add(notes, "spec.elasticPolicy.nProcPerNode is deprecated, use "
                             "spec.nprocPerNode instead");
        if (job->nproc_per_node)
            lines_add(problems, "spec.elasticPolicy.nProcPerNode: Forbidden: must not be used with "
                                "spec.nprocPerNode");
    }
    const char *nproc = job->nproc_per_node;
    int64_t n;
    if (nproc && strcmp(nproc, "auto") != 0 && strcmp(nproc, "cpu") != 0 &&
        strcmp(nproc, "gpu") != 0 && !str_to_i64(nproc, 1, INT32_MAX, &n))
        lines_add(problems,
                  "spec.nprocPerNode: Unsupported value: \"%s\": supported values: \"auto\", "
                  "\"cpu\", \"gpu\", a number from 1 up",
                  nproc);
}

static void validate_elastic(const struct job *job, struct lines *problems, struct lines *notes)
{
    const struct elastic_policy *elastic = &job->elastic;
    if (!elastic->present)
        return;
    if (!job->replicas[REPLICA_WORKER].present)
        lines_add(problems, "spec.pytorchReplicaSpecs[Worker]: Required value: must be configured "
                            "if elastic policy is used");
    if (elastic->min_replicas.set && elastic->max_replicas.set &&
        elastic->min_replicas.value > elastic->max_replicas.value)
        lines_add(problems,
                  "spec.elasticPolicy.minReplicas: Invalid value: %" PRId64
                  ": must not be greater than maxReplicas, %" PRId64,
                  elastic->min_replicas.value, elastic->max_replicas.value);
    /* what is not set is filled with the other */
    bool is_fixed = !elastic->min_replicas.set || !elastic->max_replicas.set ||
                    elastic->min_replicas.value == elastic->max_replicas.value;
    if (notes && elastic->shrink_after_s.set && is_fixed)
        lines_add(notes, "spec.elasticPolicy.shrinkAfterSeconds has no effect without a "
                         "minReplicas that is less than maxReplicas");
    for (size_t i = 0; i < elastic->rdzv_conf.count; i++)
        if (!elastic->rdzv_conf.items[i].key)
            lines_add(problems, "spec.elasticPolicy.rdzvConf[%zu].key: Required value", i);
}

static void validate_container(const struct container *containers, size_t i, const char *path,
                               struct lines *problems)
{
    const struct container *container = &containers[i];
    if (!container->image || !*container->image)
        lines_add(problems, "%s[%zu].image: Required value: must be specified", path, i);
    if (!*container->name)
        lines_add(problems, "%s[%zu].name: Required value: must be specified", path, i);
    for (size_t k = 0; k < i; k++)
        if (*container->name && strcmp(containers[k].name, container->name) == 0)
            lines_add(problems, "%s[%zu].name: Duplicate value: \"%s\"", path, i, container->name);
    for (size_t k = 0; k < container->env_count; k++)
        if (!*container->env[k].name)
            lines_add(problems, "%s[%zu].env[%zu].name: Required value: must be specified", path, i,
                      k);
    for (size_t k = 0; k < container->port_count; k++)
        if (!container->ports[k].number)
            lines_add(problems,
                      "%s[%zu].ports[%zu].containerPort: Required value: within 1 and "
                      "65535",
                      path, i, k);
}

static void validate_template(const struct pod_template *template_, enum replica_type type,
                              struct lines *problems)
{
    char path[128];
    bool main_container = false;
    snprintf(path, sizeof path, "spec.pytorchReplicaSpecs[%s].template.spec.containers",
             names_replica_type(type));
    for (size_t i = 0; i < template_->container_count; i++) {
        validate_container(template_->containers, i, path, problems);
        main_container |= strcmp(template_->containers[i].name, API_CONTAINER_NAME) == 0;
    }
    if (template_->container_count == 0)
        lines_add(
            problems,
            "%s: Required value: must be specified, one of them with name " API_CONTAINER_NAME,
            path);
    else if (!main_container)
        lines_add(
            problems,
            "%s: Required value: must have at least one container with name " API_CONTAINER_NAME,
            path);
    snprintf(path, sizeof path, "spec.pytorchReplicaSpecs[%s].template.spec.initContainers",
             names_replica_type(type));
    for (size_t i = 0; i < template_->init_container_count; i++)
        validate_container(template_->init_containers, i, path, problems);
}

static void validate_replicas(const struct job *job, enum replica_type type, struct lines *problems)
{
    const struct optional *replicas = &job->replicas[type].replicas;
    const char *name = names_replica_type(type);
    if (type == REPLICA_MASTER && (!replicas->set || replicas->value != 1))
        lines_add(problems, "spec.pytorchReplicaSpecs[%s].replicas: Forbidden: must be 1%s", name,
                  replicas->set ? "" : ", but is missing");
    if (type == REPLICA_WORKER && replicas->set && replicas->value < 1)
        lines_add(problems, "spec.pytorchReplicaSpecs[%s].replicas: Forbidden: must be at least 1",
                  name);
    if (type == REPLICA_WORKER && replicas->set && replicas->value > VALIDATE_MAX_REPLICAS)
        lines_add(problems,
                  "spec.pytorchReplicaSpecs[%s].replicas: Invalid value: %" PRId64
                  ": must be at most %d",
                  name, replicas->value, VALIDATE_MAX_REPLICAS);
}

void validate_job(const struct job *job, struct lines *problems, struct lines *notes)
{
    validate_name(job, problems);
    validate_managed_by(job, problems);
    validate_elastic(job, problems, notes);
    validate_nproc(job, problems, notes);
    bool any = false;
    for (int type = 0; type < REPLICA_TYPES; type++) {
        if (!job->replicas[type].present)
            continue;
        any = true;
        validate_replicas(job, type, problems);
        if (notes && job->replicas[type].template_.restart_policy)
            lines_add(
                notes,
                "spec.pytorchReplicaSpecs[%s].template.spec.restartPolicy: Restart policy in pod "
                "template will be overwritten by restart policy in replica spec",
                names_replica_type(type));
        validate_template(&job->replicas[type].template_, type, problems);
    }
    if (!any)
        lines_add(problems, "spec.pytorchReplicaSpecs: Required value: must have Master or Worker");
}
