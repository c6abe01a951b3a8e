#include "operator/kube/kube_answer.h"

#include "base/backoff.h"
#include "base/json.h"
#include "base/json_lenient.h"
#include "base/json_read.h"
#include "base/mem.h"

#include <string.h>

enum { RETRY_AFTER_MAX_MS = 60 * 1000, SHOWN_BYTES = 160 };

/* metav1.Status: what an API server says instead of an object. */
struct status {
    const char *message, *reason;
};

static const struct json_field status_fields[] = {
    JSON_TEXT("message", struct status, message),
    JSON_TEXT("reason", struct status, reason),
    JSON_END,
};

static struct status read_status(const struct json *object, struct arena *arena)
{
    struct status status = {0};
    struct lines ignored; /* what does not fit is as good as absent */
    lines_init(&ignored, arena);
    struct json_reader reader = {.arena = arena, .problems = &ignored};
    if (json_is_object(object))
        json_read(&reader, object, status_fields, &status);
    return status;
}

static enum error_code code_of(long status, const char *reason)
{
    switch (status) {
    case 401:
    case 403:
        return ERR_FORBIDDEN;
    case 404:
        return ERR_NOT_FOUND;
    /* Two failures share the number, and only metav1.Status.reason tells them apart. The name is
     * taken (POST), or the object is newer than the one that was sent (PUT). */
    case 409:
        return reason && strcmp(reason, "AlreadyExists") == 0 ? ERR_EXISTS : ERR_CONFLICT;
    case 410:
        return ERR_GONE;
    case 413:
        return ERR_LIMIT;
    case 408:
    case 504:
        return ERR_TIMEOUT;
    default:
        return status >= 400 && status != 429 && status < 500 ? ERR_INPUT : ERR_IO;
    }
}

/* What may pass by itself: a timeout, an overloaded server, one that restarts. The others would be
 * answered the same again. 401 asks for another login first. */
static enum kube_verdict verdict_of(long status)
{
    if (status == 401)
        return KUBE_REFUSE;
    return status == 408 || status == 429 || status >= 500 ? KUBE_RETRY : KUBE_DONE;
}

/* The beginning of a body that is no Status (a proxy's page), as one line: words with one space
 * between them. */
static const char *beginning(const struct http_answer *answer, struct arena *arena)
{
    size_t length = strnlen(answer->body, SHOWN_BYTES), used = 0;
    char *text = arena_strndup(arena, answer->body, length);
    bool space = false;
    for (size_t i = 0; i < length; i++) {
        bool is_space = (unsigned char)text[i] <= ' ';
        if (!is_space && space && used)
            text[used++] = ' ';
        if (!is_space)
            text[used++] = text[i];
        space = is_space;
    }
    text[used] = '\0';
    return used ? text : "no message";
}

/* "VERB PATH", without the query: it says how, not what. */
static const char *subject(const char *method, const char *path, struct arena *arena)
{
    return arena_printf(arena, "%s %.*s", method, (int)strcspn(path, "?"), path);
}

/* API servers print some invalid values as Go does, with pointers:
 * "(*core.ExecAction)(0xc0598437)". These differ each time, and would make each refusal news:
 * "(0x...)" stands for them. */
static const char *without_addresses(const char *message, struct arena *arena)
{
    static const char digits[] = "0123456789abcdef", instead[] = "...";
    char *text = arena_strdup(arena, message);
    for (char *at = text; (at = strstr(at, "(0x"));) {
        at += strlen("(0x");
        size_t length = strspn(at, digits);
        if (length < strlen(instead) || at[length] != ')')
            continue;
        memcpy(at, instead, strlen(instead));
        at += strlen(instead);
        memmove(at, at + length - strlen(instead), strlen(at + length - strlen(instead)) + 1);
    }
    return text;
}

/* How much of the server's text there is room for beside what else is said. */
static int shown_bytes(const struct error *err, const char *what)
{
    size_t beside = strnlen(what, 200) + sizeof ":  (999 )" + 30;
    return (int)(sizeof err->msg - beside);
}

static struct json *parse(const struct http_answer *answer, const struct json_items *items,
                          struct error *err)
{
    if (items)
        return json_parse_lenient_list(answer->body, answer->body_bytes, items, err);
    return json_parse_lenient(answer->body, answer->body_bytes, json_managed_fields, err);
}

enum kube_verdict kube_answer_read(const struct http_answer *answer, bool is_stream,
                                   const char *method, const char *path,
                                   const struct json_items *items, struct json **ret_object,
                                   struct error *err)
{
    *ret_object = NULL;
    err->code = ERR_NONE;
    err->msg[0] = '\0';
    if (answer->err.code != ERR_NONE) {
        *err = answer->err; /* base/http names method and URL */
        bool may_pass = answer->err.code == ERR_IO || answer->err.code == ERR_TIMEOUT;
        return may_pass ? KUBE_RETRY : KUBE_DONE;
    }
    bool is_good = answer->status >= 200 && answer->status < 300;
    if (is_good && is_stream)
        return KUBE_DONE;
    auto_arena struct arena *arena = arena_open();
    const char *what = subject(method, path, arena);
    struct error unreadable = {.code = ERR_NONE};
    struct json *object = parse(answer, is_good ? items : NULL, &unreadable);
    if (is_good && json_is_object(object)) {
        *ret_object = object;
        return KUBE_DONE;
    }
    struct status status = read_status(object, arena);
    json_free(object);
    if (is_good) {
        const char *place =
            unreadable.code == ERR_NONE ? "" : arena_printf(arena, " (%s)", unreadable.msg);
        error_set(err, ERR_INPUT, "%.200s: the answer is no JSON object: %s%s", what,
                  beginning(answer, arena), place);
        return KUBE_DONE;
    }
    const char *message = status.message && *status.message
                              ? without_addresses(status.message, arena)
                              : beginning(answer, arena);
    const char *reason = status.reason ? status.reason : "";
    error_set(err, code_of(answer->status, status.reason), "%.200s: %.*s (%ld%s%.30s)", what,
              shown_bytes(err, what), message, answer->status, *reason ? " " : "", reason);
    return verdict_of(answer->status);
}

int64_t kube_answer_asked_ms(const struct http_answer *answer)
{
    int64_t asked_ms = answer->retry_after_ms > 0 ? answer->retry_after_ms : 0;
    return asked_ms < RETRY_AFTER_MAX_MS ? asked_ms : RETRY_AFTER_MAX_MS;
}

int64_t kube_answer_wait_ms(const struct http_answer *answer, int64_t first_ms, int64_t max_ms,
                            unsigned failures, uint64_t *random)
{
    /* Retry-After is the least wait. The server sends many clients the same number, so each adds
     * its own random part. */
    return kube_answer_asked_ms(answer) + backoff_ms(first_ms, max_ms, failures, random);
}
