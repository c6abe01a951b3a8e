#include "operator/store_child.h"

#include "base/mem.h"

#include <string.h>

static size_t room(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* NULL gives NULL. */
static char *append(char **at, const char *text)
{
    if (!text)
        return NULL;
    size_t bytes = room(text);
    char *copy = memcpy(*at, text, bytes);
    *at += bytes;
    return copy;
}

/* A copy of `read`, which points into an arena, with its texts behind it. */
static struct stored_child *copy(const struct stored_child *read, const struct identity *identity)
{
    bool is_pod = read->kind == STORE_PODS;
    const char *reason = is_pod ? read->pod.waiting_reason : NULL;
    const char *message = is_pod ? read->pod.waiting_message : NULL;
    size_t bytes = room(identity->namespace_) + room(identity->name) + room(identity->uid) +
                   room(identity->owner_uid) + room(identity->resource_version) + room(reason) +
                   room(message);
    struct stored_child *child = xmalloc(sizeof *child + bytes);
    *child = *read;
    char *at = (char *)(child + 1);
    child->entry.key = append(&at, identity->namespace_);
    at[-1] = '/';
    const char *name = append(&at, identity->name), *uid = append(&at, identity->uid);
    const char *owner_uid = append(&at, identity->owner_uid);
    child->version = append(&at, identity->resource_version);
    if (is_pod) {
        child->pod.name = name;
        child->pod.uid = uid;
        child->pod.owner_uid = owner_uid;
        child->pod.waiting_reason = append(&at, reason);
        child->pod.waiting_message = append(&at, message);
    } else {
        child->service.name = name;
        child->service.uid = uid;
        child->service.owner_uid = owner_uid;
    }
    return child;
}

struct stored_child *stored_child_open(enum store_kind kind, const struct json_t *object,
                                       const struct identity *identity, struct arena *arena,
                                       struct lines *problems)
{
    struct stored_child read = {.kind = kind};
    if (kind == STORE_PODS)
        read.pod = decode_pod(object, identity, arena, problems);
    else
        read.service = decode_service(identity);
    return copy(&read, identity);
}

const char *stored_child_uid(const struct stored_child *child)
{
    return child->kind == STORE_PODS ? child->pod.uid : child->service.uid;
}
