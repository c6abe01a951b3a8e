#include "tests/operator/api.h"

#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void api_write_file(const struct api *api, const char *name, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", api->directory, name);
    auto_fclose FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
}

void api_prepare(struct api *api, const struct fake_answer *answers, size_t count,
                 const struct fake_tls *tls)
{
    *api =
        (struct api){.directory = support_temp_dir(), .has_tls = tls != NULL, .now_ms = API_NOW_MS};
    api->server = fake_server_open(answers, count, tls);
}

void api_connect(struct api *api, const char *user)
{
    auto_free char *config =
        xasprintf("current-context: x\n"
                  "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                  "clusters: [{name: c, cluster: {server: '%s://127.0.0.1:%d'%s}}]\n"
                  "users: [{name: u, user: %s}]\n",
                  api->has_tls ? "https" : "http", fake_server_port(api->server),
                  api->has_tls ? ", certificate-authority: ca.crt" : "", user);
    api_write_file(api, "config", config);

    struct error err;
    auto_free char *path = xasprintf("%s/config", api->directory);
    struct kubeconfig_options from = {.path = path};
    struct http_options limits = {.max_body_bytes = 1 << 20,
                                  .max_line_bytes = 1 << 20,
                                  .max_in_flight = 64,
                                  .connect_timeout_ms = SUPPORT_PATIENCE_MS};
    struct kube_options options = {.timeout_ms = SUPPORT_PATIENCE_MS,
                                   .give_up_ms = 30000,
                                   .backoff_first_ms = 100,
                                   .backoff_max_ms = 2000,
                                   .seed = 1,
                                   .user_agent = "shoal-test/1"};
    assert_ok(kubeconfig_open(&api->config, &from, api->now_ms, &err), &err);
    assert_ok(http_open(&api->http, &limits, &err), &err);
    api->kube = kube_open(api->http, api->config, &options);
}

void api_open(struct api *api, const struct fake_answer *answers, size_t count, const char *user)
{
    api_prepare(api, answers, count, NULL);
    api_write_file(api, "token", "first\n");
    api_connect(api, user ? user : "{tokenFile: token}");
}

void api_close(struct api *api)
{
    kube_close(api->kube);
    assert_int_equal(http_in_flight(api->http), 0);
    http_close(api->http);
    kubeconfig_close(api->config);
    fake_server_close(api->server);
    support_remove_tree(api->directory);
    free(api->directory);
}

static void on_done(void *context, const struct json *answer, const struct error *err)
{
    struct api_result *result = context;
    assert_false(result->is_done);
    result->is_done = true;
    result->err = *err;
    result->asked_ms = kube_asked_ms(result->kube);
    result->answer = answer ? json_print(answer, JSON_SORTED) : NULL;
}

struct kube_request *api_send(struct api *api, const struct kube_call *call,
                              struct api_result *result)
{
    struct kube_call ours = *call;
    *result = (struct api_result){.kube = api->kube};
    ours.done = on_done;
    ours.context = result;
    return kube_send(api->kube, &ours, api->now_ms);
}

void api_wait(struct api *api, const bool *is_done)
{
    while (!*is_done) {
        int64_t due_ms;
        struct error err;
        kube_tick(api->kube, api->now_ms, &due_ms);
        if (*is_done)
            return;
        if (due_ms <= api->now_ms)
            continue;
        struct pollfd fds[COMMAND_FDS_MAX];
        int64_t left_ms;
        size_t count = kube_fds(api->kube, fds, &left_ms);
        if (count > 0 || http_in_flight(api->http) > 0) {
            assert_ok(http_poll(api->http, fds, count, count > 0 ? (int)left_ms : -1, &err), &err);
            continue;
        }
        assert_true(due_ms < INT64_MAX && api->wait_count < API_WAITS_MAX);
        api->waits_ms[api->wait_count++] = due_ms - api->now_ms;
        api->now_ms = due_ms;
    }
}

void api_wait_requests(struct api *api, size_t count)
{
    struct error err;
    while (fake_server_request_count(api->server) < count)
        assert_ok(http_poll(api->http, NULL, 0, 10, &err), &err);
}

void api_wait_answers(struct api *api)
{
    struct error err;
    while (http_in_flight(api->http) > 0)
        assert_ok(http_poll(api->http, NULL, 0, -1, &err), &err);
}

void api_forget(struct api_result *result)
{
    free(result->answer);
}

void api_ask(struct api *api, const struct fake_answer *answers, size_t count,
             const struct kube_call *call, struct api_result *result)
{
    api_open(api, answers, count, NULL);
    api_send(api, call, result);
    api_wait(api, &result->is_done);
}

void api_end(struct api *api, struct api_result *result)
{
    api_forget(result);
    api_close(api);
}

bool api_request_has(struct api *api, size_t index, const char *part)
{
    auto_free char *text = fake_server_request(api->server, index);
    return strstr(text, part) != NULL;
}
