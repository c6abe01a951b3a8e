/* What comes from an API server, and from a kubeconfig's plugin: answers by their status (the first
 * byte), leases, credentials. Whatever the bytes, there is a message or a value. */
#include "tests/fuzz/fuzz.h"

#include "base/json.h"
#include "base/json_lenient.h"
#include "base/mem.h"
#include "operator/kube/kube_answer.h"
#include "operator/kube/kubeconfig_exec.h"
#include "operator/leader/lease_object.h"

#include <assert.h>
#include <string.h>

static void count(void *context, const struct json *item)
{
    assert(item);
    ++*(size_t *)context;
}

/* A list whose items are given out is the same list, or none. */
static void read_list(const char *text, size_t bytes)
{
    size_t given = 0;
    const struct json_items items = {
        .left_out = json_managed_fields, .item = count, .context = &given};
    struct error err = {0};
    struct json *whole = json_parse_lenient(text, bytes, json_managed_fields, &err);
    struct json *rest = json_parse_lenient_list(text, bytes, &items, &err);
    assert(!whole == !rest && (rest || err.msg[0]));
    if (whole)
        assert(json_array_count(json_get(whole, "items")) ==
               given + json_array_count(json_get(rest, "items")));
    json_free(whole);
    json_free(rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const long statuses[] = {200, 201, 302, 400, 401, 403, 404, 409,
                                    410, 413, 422, 429, 500, 503, 504, 0};
    static const char version[] = "client.authentication.k8s.io/v1";
    if (size == 0)
        return 0;
    auto_arena struct arena *arena = arena_open();
    char *body = arena_strndup(arena, (const char *)data + 1, size - 1);
    const struct http_answer answer = {
        .status = statuses[data[0] & 15],
        .body = body,
        .body_bytes = strlen(body),
        .retry_after_ms = -1,
    };
    struct error err = {0};
    struct json *object = NULL;
    bool is_stream = data[0] & 16;
    kube_answer_read(&answer, is_stream, "GET", "/x?y", NULL, &object, &err);
    assert(object || err.msg[0] || is_stream);
    if (object) {
        struct lease_record record;
        lease_object_read(object, &record, &err);
        json_free(object);
    }
    read_list((const char *)data + 1, size - 1);
    struct exec_credential credential = {0};
    if (kubeconfig_exec_decode(body, strlen(body), version, arena, &credential, &err) < 0)
        assert(err.msg[0]);
    return 0;
}
