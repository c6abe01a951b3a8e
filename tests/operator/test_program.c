/* shoal-operator, all parts wired, against a fake API server: it gets ready and leaves in
 * good order when it is told to; what cannot be opened is named. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/program.h"
#include "tests/free_port.h"
#include "tests/operator/api.h"
#include "tests/operator/page.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TO(request, text, and_then)                                                                \
    {                                                                                              \
        .to = request, .bytes = text, .then = and_then                                             \
    }
#define STREAM_OF(path) TO("GET " path "?watch", FAKE_CHUNKED, FAKE_HOLD)

#define STREAMS_OF(namespace_)                                                                     \
    STREAM_OF("/apis/kubeflow.org/v1/" namespace_ "pytorchjobs"),                                  \
        STREAM_OF("/api/v1/" namespace_ "pods"), STREAM_OF("/api/v1/" namespace_ "services"),      \
        STREAM_OF("/apis/autoscaling/v2/" namespace_ "horizontalpodautoscalers")

/* Nothing is there; watches are silent. */
static const struct fake_answer empty_cluster[] = {
    STREAMS_OF(""),
    STREAMS_OF("namespaces/team/"),
    TO("GET /api",
       API_TEXT("200 OK", "", "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}"),
       FAKE_CLOSE),
};

struct fixture {
    struct api api;
    char *kubeconfig, *address;
    int port;
    struct operator_config config;
};

/* Before any thread is made, so that all of them leave signals to the program, as in main. */
static int block_signals(void **state)
{
    (void)state;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    return pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void open_fixture(struct fixture *f)
{
    api_open(&f->api, empty_cluster, array_length(empty_cluster), NULL);
    f->port = free_port();
    f->address = xasprintf("127.0.0.1:%d", f->port);
    f->kubeconfig = xasprintf("%s/config", f->api.directory);
    f->config = (struct operator_config){
        .metrics_bind_address = f->address,
        .health_probe_bind_address = f->address,
        .ui_bind_address = "0",
        .own_name = "me",
        .kubeconfig = f->kubeconfig,
        .init_template_file = "/etc/config/initContainer.yaml",
        .init_image = "",
        .init_max_tries = 100,
        .default_backoff_limit = 6,
    };
}

static void close_fixture(struct fixture *f)
{
    api_close(&f->api);
    free(f->kubeconfig);
    free(f->address);
}

/* Waits for the metrics page to say that it is ready then tells it to stop. */
struct watchman {
    pthread_t thread;
    int port;
};

static void *watch_the_page(void *context)
{
    struct watchman *w = context;
    for (bool seen = false; !seen;) {
        usleep(10 * 1000);
        auto_free char *page = page_get(w->port, "/metrics");
        seen = strstr(page, "\nshoal_operator_ready 1\n") != NULL;
    }
    kill(getpid(), SIGTERM);
    return NULL;
}

/* Until all that it wants to know is listed. */
static void run_until_ready(struct fixture *f)
{
    struct program *program;
    struct error err;
    struct watchman watchman = {.port = f->port};
    assert_ok(program_open(&program, &f->config, &err), &err);
    assert_int_equal(pthread_create(&watchman.thread, NULL, watch_the_page, &watchman), 0);
    assert_ok(program_run(program, &err), &err);
    pthread_join(watchman.thread, NULL);
    program_close(program);
}

static size_t asked(struct fixture *f, const char *start, const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < fake_server_request_count(f->api.server); i++) {
        auto_free char *text = fake_server_request(f->api.server, i);
        count += strncmp(text, start, strlen(start)) == 0 && strstr(text, part) != NULL;
    }
    return count;
}

static void it_gets_ready_and_stops(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    run_until_ready(&f);
    assert_int_equal(asked(&f, "GET /apis/kubeflow.org/v1/pytorchjobs?limit", ""), 1);
    close_fixture(&f);
}

static void only_the_namespace_is_watched(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    f.config.namespace_ = "team";
    run_until_ready(&f);
    assert_int_equal(asked(&f, "GET /apis/kubeflow.org/v1/pytorchjobs", ""), 0);
    assert_int_equal(asked(&f, "GET /apis/kubeflow.org/v1/namespaces/team/pytorchjobs?limit", ""),
                     1);
    close_fixture(&f);
}

static void kinds_of_jobs_that_are_not_run_are_told(void **state)
{
    (void)state;
    char told[8192];
    struct fixture f;
    open_fixture(&f);
    f.config.schemes = (struct option_list){{"pytorchjob", "tfjob"}, 2};
    support_stderr_begin();
    run_until_ready(&f);
    support_stderr_end(told, sizeof told);
    assert_non_null(strstr(told, "--enable-scheme=tfjob: shoal-operator runs PyTorchJobs alone"));
    assert_null(strstr(told, "--enable-scheme=pytorchjob"));
    close_fixture(&f);
}

static void what_cannot_be_opened_is_named(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    struct operator_config rows[] = {f.config, f.config, f.config};
    rows[0].kubeconfig = "/nowhere/config";
    rows[1].init_template_file = "/nowhere/template.yaml";
    rows[2].metrics_bind_address = "nonsense";
    static const char *const words[] = {"/nowhere/config", "/nowhere/template.yaml", "nonsense"};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct program *program;
        struct error err;
        assert_int_equal(program_open(&program, &rows[i], &err), -1);
        if (!strstr(err.msg, words[i]))
            fail_msg("\"%s\" does not name %s", err.msg, words[i]);
        program_close(program);
    }
    program_close(NULL);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_gets_ready_and_stops),
        cmocka_unit_test(only_the_namespace_is_watched),
        cmocka_unit_test(kinds_of_jobs_that_are_not_run_are_told),
        cmocka_unit_test(what_cannot_be_opened_is_named),
    };
    return cmocka_run_group_tests(tests, block_signals, NULL);
}
