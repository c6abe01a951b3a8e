/* What the API server of the small world does with requests. */
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode_status.h"
#include "operator/job/job_status.h"
#include "operator/job/resources.h"
#include "operator/manifest/manifest.h"
#include "tests/operator/histories/world.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

struct kube_request {
    char *method, *name; /* of the object */
    enum cache_kind kind;
    bool event;
    struct json *body;
    void (*done)(void *context, const struct json *answer, const struct error *err);
    void *context;
};

/* ---- requests ---- */

static struct kube_request *on_send(struct kube *kube, const struct kube_call *call, int64_t now_ms)
{
    (void)kube, (void)now_ms;
    assert_true(world->sent_count < WORLD_MAX_WAITING);
    struct kube_request *request = xcalloc(1, sizeof *request);
    const char *made = json_as_text(json_get(json_get(call->body, "metadata"), "name"));
    const char *named = str_after_last(call->path, '/'), *listed = strstr(named, "name%3D");
    request->event = call->once;
    request->method = xstrdup(call->method);
    request->name = xstrdup(made ? made : listed ? listed + strlen("name%3D") : named);
    request->kind = strstr(call->path, "/pytorchjobs/") ? CACHE_JOBS
                    : strstr(call->path, "/services")   ? CACHE_SERVICES
                                                        : CACHE_PODS;
    request->body = json_clone(call->body);
    request->done = call->done;
    request->context = call->context;
    world->sent[world->sent_count++] = request;
    return request;
}

static void remove_request(struct kube_request *request)
{
    size_t i = 0;
    while (world->sent[i] != request)
        i++;
    memmove(&world->sent[i], &world->sent[i + 1],
            (--world->sent_count - i) * sizeof world->sent[0]);
    json_free(request->body);
    free(request->method);
    free(request->name);
    free(request);
}

static void on_cancel(struct kube *kube, struct kube_request *request)
{
    (void)kube;
    remove_request(request);
}

static size_t body_bytes(const struct kube *kube)
{
    (void)kube;
    return 0;
}

const struct executor_transport world_transport = {on_send, on_cancel, body_bytes};

static bool is_list(const struct kube_request *request)
{
    return strcmp(request->method, "GET") == 0;
}

bool server_writes(void)
{
    return !is_list(world->sent[0]);
}

bool server_awaits(const char *name)
{
    return strcmp(world->sent[0]->name, name) == 0;
}

uint64_t server_hash_sent(void)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < world->sent_count; i++) {
        hash = hash_text(hash, world->sent[i]->method);
        hash = hash_add(hash_text(hash, world->sent[i]->name), world->sent[i]->kind);
    }
    return hash;
}

/* ---- what they do ---- */

static const char *metadata_text(const struct json *body, const char *key)
{
    return json_as_text(json_get(json_get(body, "metadata"), key));
}

static enum error_code put_status(const struct json *body)
{
    struct cluster *truth = world->s.truth;
    const char *version = metadata_text(body, "resourceVersion");
    if (!version || atoi(version) != world->job_version)
        return ERR_CONFLICT;
    struct arena *arena = arena_open();
    struct job_status after = decode_status(json_get(body, "status"), arena);
    if (job_status_equal(&truth->status, &after)) {
        arena_close(arena);
        return ERR_NONE;
    }
    struct job_status before = truth->status;
    simulation_judge(&world->s, &before, &after);
    truth->status = after;
    arena_close(world->status_arena);
    world->status_arena = arena;
    server_publish_job();
    return ERR_NONE;
}

static enum error_code create(const struct kube_request *request)
{
    struct cluster *truth = world->s.truth;
    const struct json *labels = json_get(json_get(request->body, "metadata"), "labels");
    const char *type = json_as_text(json_get(labels, LABEL_REPLICA_TYPE));
    const char *index = json_as_text(json_get(labels, LABEL_REPLICA_INDEX));
    const char *attempt = json_as_text(json_get(labels, LABEL_ATTEMPT));
    bool is_pod = request->kind == CACHE_PODS;
    struct action action = {.kind = is_pod ? ACTION_CREATE_POD : ACTION_CREATE_SERVICE,
                            .name = arena_strdup(truth->arena, request->name),
                            .type = strcmp(type, "master") == 0 ? REPLICA_MASTER : REPLICA_WORKER,
                            .index = atoi(index),
                            .attempt = attempt ? atoi(attempt) : 0};
    if (is_pod ? cluster_pod(truth, action.name) != NULL
               : cluster_service(truth, action.name) != NULL)
        return ERR_EXISTS;
    cluster_carry_out(truth, &action);
    /* In whatever order things are made, the same things have the same UID. */
    if (is_pod) {
        struct pod *pod = cluster_pod(truth, action.name);
        pod->uid = arena_printf(truth->arena, "%s.%d", action.name,
                                ++world->made[action.type][action.index]);
        server_publish_pod(pod, false);
    } else {
        struct service *service = cluster_service(truth, action.name);
        service->uid = arena_printf(truth->arena, "service-of-%s", action.name);
        server_publish_service(service, false);
    }
    return ERR_NONE;
}

/* The other precondition of a delete: that the pod is in this version, if it names one. */
static bool is_as_seen(const struct kube_request *request, const struct pod *pod)
{
    const struct json *preconditions = json_get(request->body, "preconditions");
    const char *version = json_as_text(json_get(preconditions, "resourceVersion"));
    return !version || atoi(version) == world->pod_versions[pod->type][pod->index];
}

static enum error_code delete_pod(const struct kube_request *request, const char *uid)
{
    struct cluster *truth = world->s.truth;
    struct pod *pod = cluster_pod(truth, request->name);
    if (!pod)
        return ERR_NOT_FOUND;
    if (strcmp(pod->uid, uid) != 0 || !is_as_seen(request, pod))
        return ERR_CONFLICT;
    if (pod->deleted_ms)
        return ERR_NONE;
    cluster_carry_out(
        truth, &(struct action){.kind = ACTION_DELETE_POD, .name = pod->name, .uid = pod->uid});
    server_publish_pod(pod, false);
    return ERR_NONE;
}

static enum error_code delete_service(const struct kube_request *request, const char *uid)
{
    struct cluster *truth = world->s.truth;
    struct service *service = cluster_service(truth, request->name);
    if (!service)
        return ERR_NOT_FOUND;
    if (strcmp(service->uid, uid) != 0)
        return ERR_CONFLICT;
    struct service gone = *service;
    cluster_carry_out(
        truth, &(struct action){.kind = ACTION_DELETE_SERVICE, .name = gone.name, .uid = gone.uid});
    server_publish_service(&gone, true);
    return ERR_NONE;
}

static const char *preconditioned_uid(const struct kube_request *request)
{
    return json_as_text(json_get(json_get(request->body, "preconditions"), "uid"));
}

static enum error_code carry_out(const struct kube_request *request)
{
    if (strcmp(request->method, "PUT") == 0)
        return put_status(request->body);
    if (strcmp(request->method, "POST") == 0)
        return create(request);
    if (is_list(request))
        return ERR_NONE;
    const char *uid = preconditioned_uid(request);
    assert_string_equal(request->method, "DELETE");
    assert_true(uid && request->kind != CACHE_JOBS);
    return request->kind == CACHE_PODS ? delete_pod(request, uid) : delete_service(request, uid);
}

/* As the server sends it: what was made or changed, or what there is of a name. */
static struct json *answer_to(const struct kube_request *request)
{
    struct cluster *truth = world->s.truth;
    if (is_list(request))
        return json_object_of("items", server_objects(request->kind, request->name), NULL);
    const struct pod *pod = cluster_pod(truth, request->name);
    const struct service *service = cluster_service(truth, request->name);
    const char *uid = request->kind == CACHE_PODS && pod           ? pod->uid
                      : request->kind == CACHE_SERVICES && service ? service->uid
                                                                   : "job";
    auto_free char *version =
        xasprintf("%d", request->kind == CACHE_JOBS ? world->job_version : world->version);
    struct json *answer = json_object_of(
        "metadata", json_texts_of("uid", uid, "resourceVersion", version, NULL), NULL);
    if (request->kind == CACHE_JOBS)
        json_set(answer, "status", manifest_status(truth->job, &truth->status));
    return answer;
}

/* What the client makes of it (kube.h): a request whose answer is lost is sent again, and so meets
 * itself. */
static enum error_code outcome(const struct kube_request *request, enum choice_kind how,
                               bool *ret_says_what)
{
    *ret_says_what = how == CHOICE_ANSWER || is_list(request); /* asked again, it is answered */
    if (request->event)
        return ERR_NONE;
    if (how == CHOICE_REFUSE)
        return ERR_FORBIDDEN;
    if (how == CHOICE_BREAK)
        return ERR_TIMEOUT;
    enum error_code code = carry_out(request);
    if (how == CHOICE_LOSE_FOR_GOOD)
        return ERR_TIMEOUT;
    if (how == CHOICE_LOSE_ANSWER && code == ERR_NONE && request->kind == CACHE_JOBS)
        return ERR_CONFLICT;
    return code;
}

/* Of what was made, or of what a list found: each pod is of one attempt. */
static const char *uid_in(const struct json *answer)
{
    const struct json *items = json_get(answer, "items");
    return metadata_text(items ? json_at(items, 0) : answer, "uid");
}

/* What the operator is to see of it. */
static void note_outcome(const struct kube_request *request, enum error_code code, const char *uid)
{
    bool deletes = strcmp(request->method, "DELETE") == 0;
    if (request->event || request->kind != CACHE_PODS || is_list(request))
        return;
    world->conflicted |= code == ERR_CONFLICT;
    if (deletes && (!code || code == ERR_NOT_FOUND))
        operator_expects(request->name, preconditioned_uid(request), true);
    else if (!deletes && !code)
        operator_expects(request->name, uid, false);
}

static void answer(struct kube_request *request, enum choice_kind how)
{
    struct error err = {.code = ERR_NONE};
    bool says_what;
    enum error_code code = outcome(request, how, &says_what);
    struct json *object = !code && says_what ? answer_to(request) : NULL;
    if (code)
        error_set(&err, code, "%s %s: code %d", request->method, request->name, code);
    note_outcome(request, code, uid_in(object));
    if (!request->event) {
        world->answers = hash_text(hash_add(world->answers, code), uid_in(object));
        if (world->s.is_told)
            str_printf(&world->s.history, "  %s %s: code %d%s\n", request->method, request->name,
                       code, code || says_what ? "" : ", without an answer");
    }
    void (*done)(void *, const struct json *, const struct error *) = request->done;
    void *context = request->context;
    remove_request(request);
    done(context, object, &err);
    json_free(object);
}

void server_carry_out(enum choice_kind how)
{
    answer(world->sent[0], how);
}

/* The operator does not wait for them, and they change nothing. */
void server_take_events(void)
{
    for (size_t i = world->sent_count; i-- > 0;)
        if (world->sent[i]->event)
            answer(world->sent[i], CHOICE_ANSWER);
}
