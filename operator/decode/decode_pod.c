#include "operator/decode/decode_pod.h"

#include "base/contract.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "operator/decode/decode_container.h"
#include "operator/decode/decode_template.h"
#include "operator/decode/decode_training.h"
#include "operator/job/resources.h"

#include <string.h>

#define MAX_MESSAGE       400  /* bytes of why a pod waits; kept for each pod */
#define NUMBERS_MAX_BYTES 1024 /* an agent's have some 800 */

/* The condition of a pod that the control plane or the kubelet is ending. */
#define DISRUPTION_TARGET "DisruptionTarget"

struct pod_condition {
    const char *type, *status, *reason, *message;
    int64_t transition_ms;
};

static const struct json_field condition_fields[] = {
    JSON_TEXT("type", struct pod_condition, type),
    JSON_TEXT("status", struct pod_condition, status),
    JSON_TEXT("reason", struct pod_condition, reason),
    JSON_TEXT("message", struct pod_condition, message),
    JSON_CUSTOM("lastTransitionTime", struct pod_condition, transition_ms, decode_time),
    JSON_END,
};

struct pod_status {
    int phase; /* index into phases */
    const char *reason, *message, *address;
    struct pod_condition *conditions;
    size_t condition_count;
    struct container_statuses containers, init_containers;
};

/* "absent", then in the order of the enum */
static const char *const phases[] = {"",       "Pending", "Running", "Succeeded",
                                     "Failed", "Unknown", NULL};

static const struct json_field status_fields[] = {
    JSON_CHOICE("phase", struct pod_status, phase, phases),
    JSON_TEXT("reason", struct pod_status, reason),
    JSON_TEXT("message", struct pod_status, message),
    JSON_TEXT("podIP", struct pod_status, address),
    JSON_ARRAY_OF("conditions", struct pod_status, conditions, condition_count,
                  struct pod_condition, condition_fields),
    JSON_ARRAY_OF("containerStatuses", struct pod_status, containers.items, containers.count,
                  struct container_status, container_status_fields),
    JSON_ARRAY_OF("initContainerStatuses", struct pod_status, init_containers.items,
                  init_containers.count, struct container_status, container_status_fields),
    JSON_END,
};

struct port_document {
    const char *name;
    struct optional number;
};

static const struct json_field port_fields[] = {
    JSON_TEXT("name", struct port_document, name),
    JSON_OPTIONAL("containerPort", struct port_document, number, 1, UINT16_MAX),
    JSON_END,
};

struct container_document {
    const char *name;
    struct port_document *ports;
    size_t port_count;
};

static const struct json_field container_fields[] = {
    JSON_TEXT("name", struct container_document, name),
    JSON_ARRAY_OF("ports", struct container_document, ports, port_count, struct port_document,
                  port_fields),
    JSON_END,
};

struct pod_document {
    struct pairs annotations;
    struct container_document *containers;
    size_t container_count;
    const char *restart_policy; /* NULL: Always, the API's default */
    const char *node;           /* NULL: it is bound to none */
    struct pod_status status;
};

static const struct json_field spec_fields[] = {
    JSON_TEXT("restartPolicy", struct pod_document, restart_policy),
    JSON_ARRAY_OF("containers", struct pod_document, containers, container_count,
                  struct container_document, container_fields),
    JSON_TEXT("nodeName", struct pod_document, node),
    JSON_END,
};

static const struct json_field metadata_fields[] = {
    JSON_CUSTOM("annotations", struct pod_document, annotations, decode_pairs),
    JSON_END,
};

static const struct json_field pod_fields[] = {
    JSON_SAME("metadata", metadata_fields),
    JSON_SAME("spec", spec_fields),
    JSON_PART("status", struct pod_document, status, status_fields),
    JSON_END,
};

const char *const decode_pod_unread[] = {"managedFields", "env",         "volumeMounts",
                                         "volumes",       "tolerations", "initContainers",
                                         "command",       "args",        NULL};

static const struct pod_condition *condition(const struct pod_status *status, const char *type,
                                             const char *value)
{
    for (size_t i = 0; i < status->condition_count; i++) {
        const struct pod_condition *condition = &status->conditions[i];
        if (condition->type && strcmp(condition->type, type) == 0 && condition->status &&
            strcmp(condition->status, value) == 0)
            return condition;
    }
    return NULL;
}

/* ---- what follows from it ---- */

/* NULL: there is none of that name. */
static const char *annotation(const struct pod_document *document, const char *key)
{
    for (size_t i = 0; i < document->annotations.count; i++)
        if (strcmp(document->annotations.items[i].key, key) == 0)
            return document->annotations.items[i].value;
    return NULL;
}

/* The names of the operator's own containers; "" of none: only workers have them. */
static const char *own_names(const struct pod_document *document, enum replica_type type)
{
    const char *names = annotation(document, ANNOTATION_INIT_CONTAINERS);
    if (type != REPLICA_WORKER)
        return "";
    return names ? names : INIT_CONTAINER_NAME;
}

/* Reasons of the kubelet and of the controllers that end pods; those of admission ("NodeAffinity",
 * "OutOfcpu", ...) come without any container and need no list. */
static bool is_disruption(const char *reason)
{
    static const char *const reasons[] = {"Evicted",    "Preempting",   "Preempted",
                                          "NodeLost",   "Shutdown",     "NodeShutdown",
                                          "Terminated", "NodeAffinity", "DeletedByPodGC"};
    for (size_t i = 0; i < array_length(reasons); i++)
        if (strcmp(reason, reasons[i]) == 0)
            return true;
    return false;
}

static bool is_disrupted(const struct pod_status *status)
{
    const char *reason = status->reason ? status->reason : "";
    if (is_disruption(reason))
        return true;
    if (condition(status, DISRUPTION_TARGET, "True"))
        return true;
    return status->phase - 1 == POD_FAILED && !container_any_ended(&status->containers) &&
           !container_any_ended(&status->init_containers) &&
           strcmp(reason, "DeadlineExceeded") != 0;
}

/* Whether the kubelet starts again in place what fails in it. */
static bool restarts_in_place(const struct pod *pod, const char *restart_policy)
{
    bool over = pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
    return !over && !pod->disrupted && strcmp(restart_policy, "Never") != 0;
}

/* Once all is done in a pod its sidecars are made to end, which no restart follows. */
static void set_restarts(struct pod *pod, const struct pod_document *document)
{
    const struct container_statuses *containers = &document->status.containers;
    const struct container_statuses *init = &document->status.init_containers;
    const char *policy = document->restart_policy ? document->restart_policy : "Always";
    bool done = strcmp(policy, "Always") != 0 && container_all_done(containers);
    bool failed = pod->phase == POD_FAILED;
    int64_t end_ms = 0;
    pod->restart_count = container_restarts(init) + container_restarts(containers);
    if (!done && restarts_in_place(pod, policy))
        pod->restart_count += container_restarts_due(init, pod->deleted_ms) +
                              container_restarts_due(containers, pod->deleted_ms);
    container_last_end(init, failed, pod->deleted_ms, &pod->end, &end_ms);
    container_last_end(containers, failed, pod->deleted_ms, &pod->end, &end_ms);
}

/* A container whose end nobody saw has ended by the deletion, if there was one. */
static void set_exit(struct pod *pod, const struct container_statuses *statuses)
{
    for (size_t i = 0; i < statuses->count; i++) {
        const struct container_status *status = &statuses->items[i];
        if (!status->name || strcmp(status->name, API_CONTAINER_NAME) != 0)
            continue;
        if (!status->end.present)
            continue;
        pod->exited = true;
        pod->exit_code = (int32_t)status->end.exit_code.value;
        pod->exited_ms = status->end.finished_ms ? status->end.finished_ms : pod->deleted_ms;
    }
}

/* The node controller sets condition Ready of a lost node's pods to False and leaves all else as
 * the node last said it. A kubelet gives a reason when it does that itself. */
static int64_t node_lost_ms(const struct pod_status *status, int64_t deleted_ms)
{
    const struct pod_condition *unready = condition(status, "Ready", "False");
    if (unready && condition(status, "ContainersReady", "True") &&
        (!unready->reason || !*unready->reason))
        return unready->transition_ms;
    if (status->reason && strcmp(status->reason, "NodeLost") == 0)
        return unready ? unready->transition_ms : deleted_ms;
    return 0;
}

/* Cut to MAX_MESSAGE bytes, at the end of a character. */
static const char *cut(struct arena *arena, const char *text)
{
    size_t bytes = strlen(text);
    if (bytes <= MAX_MESSAGE)
        return text;
    for (bytes = MAX_MESSAGE; bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80;)
        bytes--;
    return arena_strndup(arena, text, bytes);
}

static bool set_waiting(struct pod *pod, const char *reason, const char *message,
                        struct arena *arena)
{
    if (!reason || !*reason || strcmp(reason, "ContainerCreating") == 0 ||
        strcmp(reason, "PodInitializing") == 0)
        return false;
    pod->waiting_reason = cut(arena, reason);
    pod->waiting_message = message && *message ? cut(arena, message) : NULL;
    return true;
}

static bool set_waiting_container(struct pod *pod, const struct container_statuses *statuses,
                                  struct arena *arena)
{
    for (size_t i = 0; i < statuses->count; i++)
        if (set_waiting(pod, statuses->items[i].wait.reason, statuses->items[i].wait.message,
                        arena))
            return true;
    return false;
}

/* Why a pod that has not ended does not go on, or why the system ended it. */
static void set_blocker(struct pod *pod, const struct pod_status *status, struct arena *arena)
{
    const struct pod_condition *target = condition(status, DISRUPTION_TARGET, "True");
    if (pod->phase == POD_FAILED && pod->disrupted &&
        !set_waiting(pod, status->reason, status->message, arena) &&
        !(target && set_waiting(pod, target->reason, target->message, arena)) &&
        pod->master_not_found)
        set_waiting(pod, "MasterNotFound", "its init container gave up waiting for the master",
                    arena);
    if (pod->phase != POD_PENDING && pod->phase != POD_RUNNING)
        return;
    const struct pod_condition *unscheduled = condition(status, "PodScheduled", "False");
    if (unscheduled && set_waiting(pod, unscheduled->reason, unscheduled->message, arena))
        return;
    if (!set_waiting_container(pod, &status->init_containers, arena))
        set_waiting_container(pod, &status->containers, arena);
}

static int32_t training_port(const struct pod_document *document)
{
    for (size_t i = 0; i < document->container_count; i++) {
        const struct container_document *container = &document->containers[i];
        if (!container->name || strcmp(container->name, API_CONTAINER_NAME) != 0)
            continue;
        for (size_t k = 0; k < container->port_count; k++) {
            const struct port_document *port = &container->ports[k];
            if (port->name && strcmp(port->name, TRAINING_PORT_NAME) == 0 && port->number.set)
                return (int32_t)port->number.value;
        }
    }
    return TRAINING_PORT;
}

/* An agent's numbers, else NULL: the cache would keep what any program said last. */
static const char *if_numbers(const char *line)
{
    struct training left;
    struct error err;
    if (!line || strlen(line) > NUMBERS_MAX_BYTES ||
        decode_training_told(line, strlen(line), &left, &err) < 0)
        return NULL;
    return line;
}

/* Only of replicas 0: there may be thousands of others, which nobody asks. */
static void set_training(struct pod *pod, const struct pod_document *document, struct arena *arena)
{
    if (pod->index != 0)
        return;
    const char *address = document->status.address;
    pod->address = address && *address ? address : NULL;
    pod->training_port = training_port(document);
    const struct pod_condition *scheduled = condition(&document->status, "PodScheduled", "True");
    pod->scheduled_ms = scheduled ? scheduled->transition_ms : 0;
    pod->started_ms = container_started_ms(&document->status.containers);
    pod->last_line = if_numbers(container_last_line(&document->status.containers, arena));
}

/* ---- the whole ---- */

struct pod decode_pod(const struct json *object, const struct identity *identity,
                      struct arena *arena, struct lines *problems)
{
    struct pod_document document = {0};
    struct json_reader reader = {.arena = arena, .problems = problems};
    json_read(&reader, object, pod_fields, &document);
    const struct pod_status *status = &document.status;
    struct pod pod = {
        .name = identity->name,
        .uid = identity->uid,
        .version = identity->resource_version,
        .owner_uid = identity->owner_uid,
        .type = identity->type,
        .index = identity->index,
        .attempt = identity->attempt,
        .phase = POD_UNKNOWN,
        .created_ms = identity->created_ms,
        .deleted_ms = identity->deleted_ms,
        .grace_ms = identity->grace_ms,
    };
    /* What cannot be read has no known phase: such a pod counts as waiting, neither as run nor as
     * failed. */
    if (problems->count)
        return pod;
    container_mark_own(&document.status.init_containers, own_names(&document, pod.type));
    pod.phase = status->phase ? (enum pod_phase)(status->phase - 1) : POD_PENDING;
    pod.master_not_found =
        pod.phase == POD_FAILED && container_own_failed(&status->init_containers);
    pod.disrupted = is_disrupted(status) || pod.master_not_found;
    set_restarts(&pod, &document);
    pod.node = document.node && *document.node ? document.node : NULL;
    pod.avoids = annotation(&document, ANNOTATION_AVOIDED_NODES);
    if (pod.end.hardware) /* the first line; the run's numbers follow */
        pod.end.hardware =
            cut(arena, arena_strndup(arena, pod.end.hardware, strcspn(pod.end.hardware, "\n")));
    pod.node_lost_ms = node_lost_ms(status, pod.deleted_ms);
    set_exit(&pod, &status->containers);
    set_blocker(&pod, status, arena);
    set_training(&pod, &document, arena);
    return pod;
}

struct service decode_service(const struct identity *identity)
{
    return (struct service){
        .name = identity->name,
        .uid = identity->uid,
        .owner_uid = identity->owner_uid,
        .type = identity->type,
        .index = identity->index,
        .deleting = identity->deleted_ms != 0,
    };
}
