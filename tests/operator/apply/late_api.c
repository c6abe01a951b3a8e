#include "tests/operator/apply/late_api.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kube_request {
    char *line;
    bool event;
    struct json *status; /* that was put; NULL: something else */
    void (*done)(void *context, const struct json *answer, const struct error *err);
    void *context;
};

void late_api_open(struct kube *kube)
{
    *kube = (struct kube){.count = 0};
    str_init(&kube->said, 1 << 16);
}

void late_api_close(struct kube *kube)
{
    assert_int_equal(kube->count, 0);
    str_free(&kube->said);
}

static struct kube_request *on_send(struct kube *kube, const struct kube_call *call,
                                    int64_t wall_ms)
{
    (void)wall_ms;
    assert_true(kube->count < LATE_API_MAX);
    struct kube_request *request = xcalloc(1, sizeof *request);
    const char *reason = json_as_text(json_get(call->body, "reason"));
    const char *name = json_as_text(json_get(json_get(call->body, "metadata"), "name"));
    const char *end = strrchr(call->path, '/') + 1, *wanted = strstr(end, "metadata.name%3D");
    name = wanted ? wanted + strlen("metadata.name%3D") : name;
    request->event = reason != NULL;
    request->line = reason ? xasprintf("(%s)", reason)
                           : xasprintf("%s %.*s%s%s", call->method, (int)strcspn(end, "?"), end,
                                       name ? " " : "", name ? name : "");
    assert_int_equal(call->once, request->event);
    assert_int_equal(call->exact, strcmp(request->line, "POST podgroups j") == 0);
    request->status = json_clone(json_get(call->body, "status"));
    kube->put_foreign = json_get(request->status, "foreign");
    request->done = call->done;
    request->context = call->context;
    str_printf(&kube->said, "%s\n", request->line);
    kube->events += request->event;
    kube->in_flight[kube->count++] = request;
    return request;
}

static void remove_request(struct kube *kube, struct kube_request *request)
{
    size_t i = 0;
    while (kube->in_flight[i] != request)
        i++;
    kube->count--;
    memmove(&kube->in_flight[i], &kube->in_flight[i + 1],
            (kube->count - i) * sizeof(kube->in_flight[0]));
    json_free(request->status);
    free(request->line);
    free(request);
}

static void on_cancel(struct kube *kube, struct kube_request *request)
{
    kube->cancelled++;
    remove_request(kube, request);
}

static size_t body_bytes(const struct kube *kube)
{
    return kube->body_bytes;
}

const struct executor_transport late_api_transport = {on_send, on_cancel, body_bytes};

static void answer(struct kube *kube, struct kube_request *request, const struct json *object,
                   const struct error *err)
{
    void (*done)(void *, const struct json *, const struct error *) = request->done;
    void *context = request->context;
    remove_request(kube, request);
    done(context, object, err);
}

/* The status as that CustomResourceDefinition lets it be stored. */
static struct json *stored(const struct kube *kube, const struct json *put)
{
    struct json *status = put ? json_clone(put) : json_new_object();
    struct json *history = json_get(status, "history"), *record;
    const char *drops = kube->keeps == LATE_API_KEEPS_A_PART ? "incidents" : kube->drops;
    const char *of_training = kube->drops_of_training ? kube->drops_of_training : "";
    json_remove(json_get(status, "training"), of_training);
    json_remove(status, strcmp(of_training, "training") == 0 ? of_training : "");
    if (kube->keeps == LATE_API_KEEPS_NOTHING) {
        json_remove(status, "history");
        json_remove(status, "training");
    } else if (drops) {
        json_remove(history, drops);
        json_each_item(record, json_get(history, "replicas")) {
            json_remove(record, drops);
        }
    }
    return status;
}

void late_api_answer(struct kube *kube, struct kube_request *request, enum error_code code)
{
    struct error err = {.code = ERR_NONE};
    char uid[32];
    snprintf(uid, sizeof uid, "uid%d", ++kube->uids);
    struct json *metadata = json_texts_of("uid", uid, "resourceVersion", "2", NULL);
    struct json *object = json_object_of("metadata", metadata, NULL);
    json_set(object, "status", stored(kube, request->status));
    if (code)
        error_set(&err, code, "no luck");
    answer(kube, request, code ? NULL : object, &err);
    json_free(object);
}

void late_api_answer_list(struct kube *kube, struct kube_request *request, struct json *item)
{
    struct json *list = json_object_of("items", json_array_of(item, NULL), NULL);
    answer(kube, request, list, &(struct error){.code = ERR_NONE});
    json_free(list);
}

void late_api_confirm(struct kube *kube, struct kube_request *request)
{
    answer(kube, request, NULL, &(struct error){.code = ERR_NONE});
}

struct kube_request *late_api_find(const struct kube *kube, const char *line)
{
    for (size_t i = 0; i < kube->count; i++)
        if (line ? !strcmp(kube->in_flight[i]->line, line) : !kube->in_flight[i]->event)
            return kube->in_flight[i];
    return NULL;
}

void late_api_answer_all(struct kube *kube)
{
    struct kube_request *request;
    while ((request = late_api_find(kube, NULL)))
        late_api_answer(kube, request, ERR_NONE);
}
