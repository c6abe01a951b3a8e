#include "tests/operator/cache/watch_server.h"

#include "base/backoff.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const server_job_names[SERVER_JOBS] = {"a", "b-b", "c"};
static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed", "Dancing"};

struct watch_server watch_server_make(uint64_t seed)
{
    struct watch_server server = {.random = seed, .version = 1};
    for (int kind = 0; kind < SERVER_KINDS; kind++)
        server.of[kind].slot_count = kind == CACHE_JOBS ? SERVER_JOBS : SERVER_SLOTS;
    return server;
}

int watch_server_below(struct watch_server *server, int bound)
{
    return (int)(backoff_random(&server->random) % (uint64_t)bound);
}

bool watch_server_chance(struct watch_server *server, int percent)
{
    return watch_server_below(server, 100) < percent;
}

static bool fault(struct watch_server *server, int percent)
{
    return !server->calm && watch_server_chance(server, percent);
}

/* ---- objects ---- */

const char *watch_server_child_name(int slot, char *out, size_t size)
{
    const char *job = server_job_names[slot / SERVER_REPLICAS];
    int replica = slot % SERVER_REPLICAS;
    if (replica == 0)
        snprintf(out, size, "%s-master-0", job);
    else
        snprintf(out, size, "%s-worker-%d", job, replica - 1);
    return out;
}

#define TEMPLATE "\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}"

static char *owner_text(int job)
{
    if (job < 0)
        return xstrdup("");
    return xasprintf("{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"name\":\"%s\","
                     "\"uid\":\"o\",\"controller\":true}",
                     server_job_names[job]);
}

static char *label_text(int job)
{
    if (job < 0)
        return xstrdup("");
    return xasprintf("\"training.kubeflow.org/job-name\":\"%s\"", server_job_names[job]);
}

static char *body_text(enum cache_kind kind, int variant)
{
    if (kind != CACHE_JOBS)
        return xasprintf("\"status\":{\"phase\":\"%s\"}", phases[variant]);
    return xasprintf(
        "\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":%d," TEMPLATE "}}}", variant);
}

/* As JSON; the caller frees. */
static char *object_text(enum cache_kind kind, int slot, const struct server_object *object)
{
    char child[64];
    const char *name = kind == CACHE_JOBS ? server_job_names[slot]
                                          : watch_server_child_name(slot, child, sizeof child);
    auto_free char *owner = owner_text(object->owner);
    auto_free char *label = label_text(object->label);
    auto_free char *body = body_text(kind, object->variant);
    return xasprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u%d\","
                     "\"resourceVersion\":\"%d\",\"labels\":{%s},\"ownerReferences\":[%s]},%s}",
                     name, object->uid, object->version, label, owner, body);
}

static void alter(struct watch_server *server, enum cache_kind kind, int slot,
                  struct server_object *object)
{
    if (!object->present)
        object->uid = object->version;
    object->present = true;
    if (kind == CACHE_JOBS) {
        object->variant = 1 + watch_server_below(server, SERVER_REPLICAS - 1);
        object->owner = object->label = -1;
        return;
    }
    object->variant = watch_server_below(server, (int)array_length(phases));
    object->label = watch_server_below(server, SERVER_JOBS + 1) - 1;
    object->owner = watch_server_chance(server, 80) ? slot / SERVER_REPLICAS : -1;
    if (watch_server_chance(server, 10))
        object->owner = watch_server_below(server, SERVER_JOBS);
}

void watch_server_change(struct watch_server *server)
{
    enum cache_kind kind = (enum cache_kind)watch_server_below(server, SERVER_KINDS);
    struct server_collection *c = &server->of[kind];
    int slot = watch_server_below(server, c->slot_count);
    struct server_object *object = &c->slots[slot];
    object->version = ++server->version;
    if (object->present && watch_server_chance(server, 40))
        object->present = false;
    else
        alter(server, kind, slot, object);
    assert_true(c->log_count < SERVER_MAX_LOG);
    c->log[c->log_count++] = (struct server_record){slot, *object};
}

/* ---- lists ---- */

/* The slot as it was at a version. */
static struct server_object at_version(const struct server_collection *c, int slot, int version)
{
    struct server_object object = {0};
    for (int i = 0; i < c->log_count && c->log[i].object.version <= version; i++)
        if (c->log[i].slot == slot)
            object = c->log[i].object;
    return object;
}

/* The number after "NAME=" in a path; 0: none. */
static int parameter(const char *path, const char *name)
{
    const char *at = strstr(path, name);
    return at ? atoi(at + strlen(name)) : 0;
}

/* The state at one version, from a slot on; the token is "VERSION.SLOT". */
struct json *watch_server_list(struct watch_server *server, enum cache_kind kind, const char *path,
                               struct error *err)
{
    const struct server_collection *c = &server->of[kind];
    const char *token = strstr(path, "continue=");
    int version = token ? parameter(path, "continue=") : server->version;
    int slot = token ? atoi(strchr(token, '.') + 1) : 0;
    if (fault(server, 15) || version < server->compacted) {
        error_set(err, version < server->compacted ? ERR_GONE : ERR_TIMEOUT, "a fault");
        return NULL;
    }
    struct json *items = json_new_array();
    int limit = parameter(path, "limit=");
    for (int room = limit ? limit : c->slot_count; slot < c->slot_count && room > 0; slot++) {
        struct server_object object = at_version(c, slot, version);
        if (!object.present)
            continue;
        auto_free char *text = object_text(kind, slot, &object);
        json_append(items, json_parse_text(text, JSON_STRICT, NULL));
        room--;
    }
    auto_free char *next = xasprintf("%d.%d", version, slot);
    auto_free char *version_text = xasprintf("%d", version);
    struct json *metadata = json_texts_of("resourceVersion", version_text, "continue",
                                          slot < c->slot_count ? next : "", NULL);
    return json_object_of("metadata", metadata, "items", items, NULL);
}

/* ---- streams ---- */

int watch_server_position(const char *path)
{
    return parameter(path, "resourceVersion=");
}

static const struct server_record *next_record(const struct watch_server *server,
                                               enum cache_kind kind, int position)
{
    const struct server_collection *c = &server->of[kind];
    for (int i = 0; i < c->log_count; i++)
        if (c->log[i].object.version > position)
            return &c->log[i];
    return NULL;
}

bool watch_server_sent_all(const struct watch_server *server, enum cache_kind kind, int position)
{
    return next_record(server, kind, position) == NULL;
}

static char *error_line(int code)
{
    return xasprintf("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":%d}}", code);
}

char *watch_server_bookmark(const struct watch_server *server, int *position)
{
    *position = server->version;
    return xasprintf(
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%d\"}}}",
        server->version);
}

/* Now and then it is sent again, or cut. */
static char *record_line(struct watch_server *server, enum cache_kind kind,
                         const struct server_record *record, int *position)
{
    const struct server_object *object = &record->object;
    const char *type = object->uid == object->version ? "ADDED" : "MODIFIED";
    auto_free char *text = object_text(kind, record->slot, object);
    char *line =
        xasprintf("{\"type\":\"%s\",\"object\":%s}", object->present ? type : "DELETED", text);
    if (fault(server, 3))
        line[watch_server_below(server, (int)strlen(line))] = '\0';
    if (!fault(server, 10))
        *position = object->version;
    return line;
}

char *watch_server_line(struct watch_server *server, enum cache_kind kind, int *position)
{
    const struct server_record *record = next_record(server, kind, *position);
    if (record && *position < server->compacted)
        return error_line(410);
    if (fault(server, 2))
        return error_line(500);
    if (record)
        return record_line(server, kind, record, position);
    return watch_server_chance(server, 20) ? watch_server_bookmark(server, position) : NULL;
}

/* ---- the truth ---- */

char *watch_server_state(const struct watch_server *server, int job)
{
    const struct server_object *truth = &server->of[CACHE_JOBS].slots[job];
    if (!truth->present)
        return xstrdup("none");
    auto_str struct str text;
    str_init(&text, 1 << 14);
    str_printf(&text, "%d", truth->version);
    for (int slot = 0; slot < SERVER_SLOTS; slot++) {
        for (int kind = CACHE_PODS; kind < SERVER_KINDS; kind++) {
            const struct server_object *child = &server->of[kind].slots[slot];
            int replica = slot % SERVER_REPLICAS;
            bool wanted =
                slot / SERVER_REPLICAS == job && replica >= 1 && replica <= truth->variant;
            bool its_own = child->owner >= 0 ? child->owner == job : child->label == job;
            if (!child->present || !(wanted || its_own))
                continue;
            char name[64];
            str_printf(&text, " %s u%d", watch_server_child_name(slot, name, sizeof name),
                       child->uid);
            const char *phase = phases[child->variant];
            if (kind == CACHE_PODS)
                str_printf(&text, " %s", strcmp(phase, "Dancing") == 0 ? "Unknown" : phase);
            str_add(&text, ";");
        }
    }
    return xstrdup(str_text(&text));
}

size_t watch_server_count(const struct watch_server *server, enum cache_kind kind)
{
    size_t count = 0;
    for (int slot = 0; slot < SERVER_SLOTS; slot++)
        count += server->of[kind].slots[slot].present;
    return count;
}
