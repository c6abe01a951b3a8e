/* The objects of the small world's API server, and the watches that tell of them. */
#include "base/clock.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "operator/job/names.h"
#include "operator/job/resources.h"
#include "operator/manifest/manifest.h"
#include "tests/operator/cache/objects.h"
#include "tests/operator/histories/parsed.h"
#include "tests/operator/histories/world.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#define TEMPLATE "\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}"

/* ---- objects ---- */

static void add_replicas(struct str *text, enum replica_type type)
{
    const struct replica_spec *replica = &world->s.truth->job->replicas[type];
    if (replica->present)
        str_printf(text, "%s\"%s\":{\"replicas\":%d,\"restartPolicy\":\"%s\"," TEMPLATE "}",
                   str_text(text)[text->length - 1] == '{' ? "" : ",", names_replica_type(type),
                   (int)replica->replicas.value, world->setting->restart_policy);
}

/* What of the job is edited replaces what the setting says of it, as the last member counts. */
static char *job_spec_text(void)
{
    const struct job *job = world->s.truth->job;
    struct json *run_policy = object_from("{%s}", world->setting->run_policy);
    json_set(run_policy, "suspend", json_new_bool(job->run_policy.suspend));
    json_set(run_policy, "backoffLimit", json_new_integer(job->run_policy.backoff_limit.value));
    auto_free char *policy = json_print(run_policy, JSON_COMPACT);
    json_free(run_policy);
    auto_str struct str text;
    str_init(&text, 4096);
    str_printf(&text, "{\"runPolicy\":%s,\"pytorchReplicaSpecs\":{", policy);
    for (enum replica_type type = 0; type < REPLICA_TYPES; type++)
        add_replicas(&text, type);
    str_printf(&text, "}%s}", job->invalid ? ",\"nprocPerNode\":\"-7\"" : "");
    return xstrdup(str_text(&text));
}

static char *job_text(int version)
{
    auto_free char *spec = job_spec_text();
    struct json *json = manifest_status(world->s.truth->job, &world->s.truth->status);
    auto_free char *status = json_print(json, JSON_COMPACT);
    json_free(json);
    return xasprintf("{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{"
                     "\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"job\",\"resourceVersion\":"
                     "\"%d\"},\"spec\":%s,\"status\":%s}",
                     version, spec, status);
}

/* What pods and services have in common; `more`: fields of the metadata. */
static char *child_text(const char *name, const char *uid, enum replica_type type, int index,
                        int attempt, int version, const char *more, const char *rest)
{
    return xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\",\"resourceVersion\":"
        "\"%d\",\"labels\":{\"" LABEL_OPERATOR_NAME "\":\"" OPERATOR_NAME "\",\"" LABEL_JOB_NAME
        "\":\"j\",\"" LABEL_REPLICA_TYPE "\":\"%s\",\"" LABEL_REPLICA_INDEX
        "\":\"%d\",\"" LABEL_ATTEMPT
        "\":\"%d\"},\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":"
        "\"PyTorchJob\",\"name\":\"j\",\"uid\":\"job\",\"controller\":true}]%s}%s}",
        name, uid, version, names_replica_label(type), index, attempt, more, rest);
}

static char *time_text(int64_t wall_ms)
{
    char text[32];
    clock_format_rfc3339(wall_ms, text, sizeof text);
    return xstrdup(text);
}

static char *deletion_text(const struct pod *pod)
{
    if (!pod->deleted_ms)
        return xstrdup("");
    auto_free char *time = time_text(pod->deleted_ms + pod->grace_ms);
    return xasprintf(",\"deletionTimestamp\":\"%s\",\"deletionGracePeriodSeconds\":%d", time,
                     (int)(pod->grace_ms / 1000));
}

static char *container_text(const struct pod *pod)
{
    if (pod->exited) {
        auto_free char *time = time_text(pod->exited_ms);
        return xasprintf(",\"state\":{\"terminated\":{\"exitCode\":%d,\"finishedAt\":\"%s\"}}",
                         pod->exit_code, time);
    }
    if (pod->restart_count)
        return xasprintf(",\"lastState\":{\"terminated\":{\"exitCode\":%d}}", pod->end.code);
    return xstrdup("");
}

static char *pod_text(const struct pod *pod, int version)
{
    auto_free char *deletion = deletion_text(pod), *container = container_text(pod);
    auto_free char *rest =
        xasprintf(",\"spec\":{\"restartPolicy\":\"Never\"},\"status\":{\"phase\":\"%s\"%s,"
                  "\"containerStatuses\":[{\"name\":\"pytorch\",\"restartCount\":%d%s}]}",
                  object_phase(pod->phase), pod->disrupted ? ",\"reason\":\"Evicted\"" : "",
                  pod->restart_count, container);
    return child_text(pod->name, pod->uid, pod->type, pod->index, pod->attempt, version, deletion,
                      rest);
}

static char *service_text(const struct service *service, int version)
{
    return child_text(service->name, service->uid, service->type, service->index, 0, version, "",
                      "");
}

struct json *server_objects(enum cache_kind kind, const char *name)
{
    const struct pod *pod = cluster_pod(world->s.truth, name);
    const struct service *service = cluster_service(world->s.truth, name);
    auto_free char *text = kind == CACHE_PODS && pod ? pod_text(pod, world->version)
                           : kind == CACHE_SERVICES && service
                               ? service_text(service, world->version)
                               : NULL;
    return json_array_of(text ? json_parse_text(text, JSON_STRICT, NULL) : NULL, NULL);
}

/* ---- what changes is told ---- */

static bool is_of(const struct world_event *event, enum cache_kind kind, uint64_t name)
{
    return event->kind == kind && event->name == name;
}

/* Where the news belongs: in the place of older ones, but no end of an object is passed over. */
static struct world_event *place_of(enum cache_kind kind, uint64_t name)
{
    for (size_t i = world->event_count; i-- > 0;)
        if (is_of(&world->events[i], kind, name)) {
            if (world->events[i].gone)
                break;
            free(world->events[i].text);
            return &world->events[i];
        }
    assert_true(world->event_count < WORLD_MAX_WAITING);
    return &world->events[world->event_count++];
}

/* Takes the text, of version 0. `order`: what of it times alone tell. */
static void publish(enum cache_kind kind, const char *name, bool gone, char *text, int version,
                    int order)
{
    uint64_t hash = hash_text(0, name);
    *place_of(kind, hash) =
        (struct world_event){.kind = kind,
                             .gone = gone,
                             .text = text,
                             .version = version,
                             .name = hash,
                             .content = gone ? 0 : hash_add(hash_text(1, text), (uint64_t)order)};
}

bool server_may_show(size_t event)
{
    for (size_t i = 0; i < event; i++)
        if (is_of(&world->events[i], world->events[event].kind, world->events[event].name))
            return false;
    return true;
}

void server_publish_job(void)
{
    world->job_version = ++world->version;
    publish(CACHE_JOBS, "j", false, job_text(0), world->job_version, 0);
}

/* Which of its end and its deletion was first matters. */
void server_publish_pod(const struct pod *pod, bool gone)
{
    world->pod_versions[pod->type][pod->index] = ++world->version;
    publish(CACHE_PODS, pod->name, gone, pod_text(pod, 0), world->version,
            pod->exited && pod->exited_ms < pod->deleted_ms);
}

void server_publish_service(const struct service *service, bool gone)
{
    int version = ++world->version;
    publish(CACHE_SERVICES, service->name, gone, service_text(service, 0), version, 0);
    /* Services decide nothing: their watch is never late, which leaves fewer orders to try. */
    server_show(world->event_count - 1);
}

static struct world_shown *find_shown(enum cache_kind kind, uint64_t name)
{
    for (size_t i = 0; i < world->shown_count[kind]; i++)
        if (world->shown[kind][i].name == name)
            return &world->shown[kind][i];
    assert_true(world->shown_count[kind] < WORLD_MAX_OBJECTS);
    struct world_shown *shown = &world->shown[kind][world->shown_count[kind]++];
    *shown = (struct world_shown){.name = name};
    return shown;
}

void server_show(size_t at)
{
    struct world_event event = world->events[at];
    world->event_count--;
    memmove(&world->events[at], &world->events[at + 1], (world->event_count - at) * sizeof event);
    const struct json *object =
        parsed(event.text, hash_add(event.content, event.name), event.version);
    if (event.gone)
        cache_delete(world->cache, event.kind, object);
    else
        cache_put(world->cache, event.kind, object);
    find_shown(event.kind, event.name)->content = event.content;
    free(event.text);
}

void server_list(void)
{
    const struct cluster *truth = world->s.truth;
    while (world->event_count)
        free(world->events[--world->event_count].text);
    for (int kind = 0; kind < WORLD_KINDS; kind++) {
        world->shown_count[kind] = 0;
        cache_begin_list(world->cache, (enum cache_kind)kind);
    }
    publish(CACHE_JOBS, "j", false, job_text(0), world->job_version, 0);
    for (size_t i = 0; i < truth->pod_count; i++)
        server_publish_pod(&truth->pods[i], false);
    for (size_t i = 0; i < truth->service_count; i++)
        server_publish_service(&truth->services[i], false);
    while (world->event_count)
        server_show(0);
    for (int kind = 0; kind < WORLD_KINDS; kind++)
        cache_end_list(world->cache, (enum cache_kind)kind);
}
