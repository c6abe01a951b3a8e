#include "tests/support.h"

#include "base/json.h"
#include "base/json_lenient.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/kube/kube.h"
#include "operator/kube/kube_answer.h"

#include <string.h>

#define STATUS(message, reason)                                                                    \
    "{\"kind\":\"Status\",\"message\":\"" message "\",\"reason\":\"" reason "\"}"

struct row {
    const char *name;
    long status;
    const char *body;
    enum kube_verdict verdict;
    enum error_code code;
    const char *text;
};

/* All are about GET /api/v1/pods?limit=5. */
static const struct row rows[] = {
    {"an object", 200, "{\"kind\":\"Pod\"}", KUBE_DONE, ERR_NONE, ""},
    {"created", 201, "{}", KUBE_DONE, ERR_NONE, ""},
    {"no object", 200, "[]", KUBE_DONE, ERR_INPUT,
     "GET /api/v1/pods: the answer is no JSON object: []"},
    {"no body", 200, "", KUBE_DONE, ERR_INPUT,
     "GET /api/v1/pods: the answer is no JSON object: no message"},
    {"cut JSON", 200, "{\"a\":", KUBE_DONE, ERR_INPUT,
     "GET /api/v1/pods: the answer is no JSON object: {\"a\": (line 1, column "},
    {"bad request", 400, STATUS("no such field", "BadRequest"), KUBE_DONE, ERR_INPUT,
     "GET /api/v1/pods: no such field (400 BadRequest)"},
    {"unauthorized", 401, STATUS("Unauthorized", "Unauthorized"), KUBE_REFUSE, ERR_FORBIDDEN,
     "GET /api/v1/pods: Unauthorized (401 Unauthorized)"},
    {"forbidden", 403, STATUS("pods is forbidden: User \\\"u\\\" cannot list", "Forbidden"),
     KUBE_DONE, ERR_FORBIDDEN,
     "GET /api/v1/pods: pods is forbidden: User \"u\" cannot list (403 Forbidden)"},
    {"not found", 404, STATUS("pods \\\"p\\\" not found", "NotFound"), KUBE_DONE, ERR_NOT_FOUND,
     "GET /api/v1/pods: pods \"p\" not found (404 NotFound)"},
    {"no such resource", 404, "404 page not found\n", KUBE_DONE, ERR_NOT_FOUND,
     "GET /api/v1/pods: 404 page not found (404)"},
    {"exists", 409, STATUS("pods \\\"p\\\" already exists", "AlreadyExists"), KUBE_DONE, ERR_EXISTS,
     "already exists (409 AlreadyExists)"},
    {"conflict", 409, STATUS("the object has been modified", "Conflict"), KUBE_DONE, ERR_CONFLICT,
     "the object has been modified (409 Conflict)"},
    {"gone", 410, STATUS("too old resource version", "Expired"), KUBE_DONE, ERR_GONE,
     "too old resource version (410 Expired)"},
    {"too large", 413, "", KUBE_DONE, ERR_LIMIT, "GET /api/v1/pods: no message (413)"},
    {"invalid", 422, STATUS("spec.containers: Required value", "Invalid"), KUBE_DONE, ERR_INPUT,
     "spec.containers: Required value (422 Invalid)"},
    {"invalid, with the server's addresses", 422,
     STATUS("Exec:(*core.ExecAction)(0xc059843728), X:(*int)(0x1), Y:(*core.Y)(0xc0598a)",
            "Invalid"),
     KUBE_DONE, ERR_INPUT,
     "Exec:(*core.ExecAction)(0x...), X:(*int)(0x1), Y:(*core.Y)(0x...) (422 Invalid)"},
    {"invalid, with numbers that are no addresses", 422,
     STATUS("(0xabcd is no name, (0x, 0xc059843728", "Invalid"), KUBE_DONE, ERR_INPUT,
     "(0xabcd is no name, (0x, 0xc059843728 (422 Invalid)"},
    {"too many", 429, STATUS("slow down", "TooManyRequests"), KUBE_RETRY, ERR_IO,
     "slow down (429 TooManyRequests)"},
    {"server error", 500, STATUS("etcdserver: leader changed", "InternalError"), KUBE_RETRY, ERR_IO,
     "etcdserver: leader changed (500 InternalError)"},
    {"proxy", 502, "<html>\n<b>Bad\tGateway</b>", KUBE_RETRY, ERR_IO,
     "GET /api/v1/pods: <html> <b>Bad Gateway</b> (502)"},
    {"timeout", 504, STATUS("took too long", "Timeout"), KUBE_RETRY, ERR_TIMEOUT,
     "took too long (504 Timeout)"},
    {"a Status with other types", 500, "{\"message\":7,\"reason\":[]}", KUBE_RETRY, ERR_IO,
     "GET /api/v1/pods: {\"message\":7,\"reason\":[]} (500)"},
    {"redirect", 302, "", KUBE_DONE, ERR_IO, "no message (302)"},
};

static void statuses_have_meanings(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct row *row = &rows[i];
        struct http_answer answer = {.status = row->status,
                                     .body = row->body,
                                     .body_bytes = strlen(row->body),
                                     .retry_after_ms = -1};
        struct json *object;
        struct error err;
        print_message("# %s\n", row->name);
        assert_int_equal(
            kube_answer_read(&answer, false, "GET", "/api/v1/pods?limit=5", NULL, &object, &err),
            row->verdict);
        assert_int_equal(err.code, row->code);
        assert_non_null(strstr(err.msg, row->text));
        assert_true((object != NULL) == (row->code == ERR_NONE));
        json_free(object);
    }
}

static void add_name(void *context, const struct json *item)
{
    str_printf(context, "%s ", json_as_text(json_get(item, "name")));
}

/* Of a good answer alone. */
static void a_list_gives_its_items(void **state)
{
    (void)state;
    static const struct {
        long status;
        const char *body, *names;
        enum error_code code;
        const char *text;
    } lists[] = {
        {200, "{\"items\":[{\"name\":\"a\"},{\"name\":\"b\"}]}", "a b ", ERR_NONE, ""},
        {200, "{\"items\":[{\"name\":\"a\"},{\"name\":}]}", "a ", ERR_INPUT,
         "(item 1 of the list: line 1, column 9: "},
        {410, "{\"items\":[{\"name\":\"a\"}]}", "", ERR_GONE, "(410)"},
    };
    for (size_t i = 0; i < array_length(lists); i++) {
        struct http_answer answer = {.status = lists[i].status,
                                     .body = lists[i].body,
                                     .body_bytes = strlen(lists[i].body),
                                     .retry_after_ms = -1};
        auto_str struct str names;
        str_init(&names, 100);
        const struct json_items items = {.left_out = NULL, .item = add_name, .context = &names};
        struct json *object;
        struct error err;
        assert_int_equal(kube_answer_read(&answer, false, "GET", "/x", &items, &object, &err),
                         KUBE_DONE);
        assert_int_equal(err.code, lists[i].code);
        assert_non_null(strstr(err.msg, lists[i].text));
        assert_string_equal(str_text(&names), lists[i].names);
        assert_true((object != NULL) == (lists[i].code == ERR_NONE));
        assert_int_equal(json_array_count(json_get(object, "items")), 0);
        json_free(object);
    }
}

static void no_answer_at_all(void **state)
{
    (void)state;
    static const struct {
        enum error_code code;
        enum kube_verdict verdict;
    } failures[] = {{ERR_IO, KUBE_RETRY},
                    {ERR_TIMEOUT, KUBE_RETRY},
                    {ERR_LIMIT, KUBE_DONE},
                    {ERR_CONFIG, KUBE_DONE}};
    for (size_t i = 0; i < array_length(failures); i++) {
        struct http_answer answer = {.body = "", .retry_after_ms = -1};
        error_set(&answer.err, failures[i].code, "what happened");
        struct json *object;
        struct error err;
        assert_int_equal(kube_answer_read(&answer, false, "POST", "/x", NULL, &object, &err),
                         failures[i].verdict);
        assert_int_equal(err.code, failures[i].code);
        assert_string_equal(err.msg, "what happened");
        assert_null(object);
    }
}

static void a_stream_has_no_object(void **state)
{
    (void)state;
    struct http_answer answer = {.status = 200, .body = "", .retry_after_ms = -1};
    struct json *object;
    struct error err;
    assert_int_equal(kube_answer_read(&answer, true, "GET", "/x", NULL, &object, &err), KUBE_DONE);
    assert_int_equal(err.code, ERR_NONE);
    answer.status = 410;
    kube_answer_read(&answer, true, "GET", "/x", NULL, &object, &err);
    assert_int_equal(err.code, ERR_GONE);
}

/* The server's text is cut, the codes behind it are not. */
static void long_texts_are_cut(void **state)
{
    (void)state;
    char message[2000], path[1000];
    memset(message, 'm', sizeof message - 1);
    message[sizeof message - 1] = '\0';
    memset(path, 'p', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    auto_free char *body = xasprintf(STATUS("%s", "Forbidden"), message);
    struct http_answer answer = {
        .status = 403, .body = body, .body_bytes = strlen(body), .retry_after_ms = -1};
    struct json *object;
    struct error err;
    kube_answer_read(&answer, false, "GET", path, NULL, &object, &err);
    assert_non_null(strstr(err.msg, "GET /ppp"));
    assert_non_null(strstr(err.msg, "mmm (403 Forbidden)"));
    kube_answer_read(&answer, false, "POST", "/api/v1/namespaces/default/pods", NULL, &object,
                     &err);
    message[400] = '\0'; /* of a pod's problems as many as there is room for */
    assert_non_null(strstr(err.msg, message));
    assert_non_null(strstr(err.msg, "mmm (403 Forbidden)"));
}

static void waits_as_the_server_asks(void **state)
{
    (void)state;
    uint64_t random = 3;
    struct http_answer answer = {.status = 429, .retry_after_ms = -1};
    for (int i = 0; i < 1000; i++)
        assert_in_range(kube_answer_wait_ms(&answer, 100, 1000, 3, &random), 1, 400);
    assert_int_equal(kube_answer_asked_ms(&answer), 0);
    answer.retry_after_ms = 7000;
    for (int i = 0; i < 1000; i++)
        assert_in_range(kube_answer_wait_ms(&answer, 100, 1000, 3, &random), 7001, 7400);
    assert_int_equal(kube_answer_asked_ms(&answer), 7000);
    answer.retry_after_ms = 3600 * 1000;
    assert_in_range(kube_answer_wait_ms(&answer, 100, 1000, 1, &random), 60001, 60100);
    assert_int_equal(kube_answer_asked_ms(&answer), 60000);
}

static void paths_are_built_and_escaped(void **state)
{
    (void)state;
    char out[256];
    assert_true(kube_path(out, sizeof out, "", "v1", "pods", NULL, NULL, NULL));
    assert_string_equal(out, "/api/v1/pods");
    assert_true(kube_path(out, sizeof out, "", "v1", "pods", "ns", "a-0", "status"));
    assert_string_equal(out, "/api/v1/namespaces/ns/pods/a-0/status");
    assert_true(kube_path(out, sizeof out, "kubeflow.org", "v1", "pytorchjobs", "ns", NULL, NULL));
    assert_string_equal(out, "/apis/kubeflow.org/v1/namespaces/ns/pytorchjobs");
    assert_true(kube_path(out, sizeof out, "", "v1", "nodes", NULL, "n", NULL));
    assert_string_equal(out, "/api/v1/nodes/n");
    assert_true(kube_path(out, sizeof out, "", "v1", "pods", "../x", "a b?c%", NULL));
    assert_string_equal(out, "/api/v1/namespaces/..%2Fx/pods/a%20b%3Fc%25");
}

static void a_path_that_does_not_fit(void **state)
{
    (void)state;
    static const char whole[] = "/api/v1/namespaces/ns/pods/a%20b";
    char out[sizeof whole];
    assert_true(kube_path(out, sizeof out, "", "v1", "pods", "ns", "a b", NULL));
    assert_string_equal(out, whole);
    for (size_t size = 1; size < sizeof whole; size++)
        assert_false(kube_path(out, size, "", "v1", "pods", "ns", "a b", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_meanings),
        cmocka_unit_test(a_list_gives_its_items),
        cmocka_unit_test(no_answer_at_all),
        cmocka_unit_test(a_stream_has_no_object),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(waits_as_the_server_asks),
        cmocka_unit_test(paths_are_built_and_escaped),
        cmocka_unit_test(a_path_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
