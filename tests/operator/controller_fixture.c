#include "tests/operator/controller_fixture.h"

#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

int64_t controller_now_ms;

static int64_t now_ms(void)
{
    return controller_now_ms;
}

static const struct clocks test_clocks = {.wall_ms = now_ms, .steady_ms = now_ms};

void open_with(struct fixture *f, const struct fake_answer *answers, size_t count,
               struct controller_options options)
{
    controller_now_ms = API_NOW_MS;
    *f = (struct fixture){.leading = true, .kinds = KINDS + options.watch_nodes};
    api_open(&f->api, answers, count, NULL);
    options.default_backoff_limit = 6;
    options.ask_by = options.ask_interval_ms ? f->api.http : NULL;
    options.ask_timeout_ms = SUPPORT_PATIENCE_MS;
    options.clocks = &test_clocks;
    f->controller = controller_open(f->api.kube, &options);
}

void open_fixture(struct fixture *f, const struct fake_answer *answers, size_t count)
{
    open_with(f, answers, count, (struct controller_options){.ask_interval_ms = 15000});
}

void close_fixture(struct fixture *f)
{
    controller_close(f->controller);
    api_close(&f->api);
}

size_t count_requests(struct fixture *f, const char *begin, const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < fake_server_request_count(f->api.server); i++) {
        auto_free char *text = fake_server_request(f->api.server, i);
        count += strncmp(text, begin, strlen(begin)) == 0 && strstr(text, part);
    }
    return count;
}

size_t asked(struct fixture *f, const char *begin)
{
    return count_requests(f, begin, "");
}

void turn(struct fixture *f)
{
    int64_t due_ms;
    struct error err;
    kube_tick(f->api.kube, controller_now_ms, &due_ms);
    controller_run_once(f->controller, f->leading);
    assert_ok(http_poll(f->api.http, NULL, 0, 20, &err), &err);
}

void settle(struct fixture *f)
{
    for (;;) {
        uint64_t sent = kube_requests_sent(f->api.kube);
        bool is_quiet = controller_is_ready(f->controller) &&
                        http_in_flight(f->api.http) == f->kinds &&
                        fake_server_request_count(f->api.server) == sent &&
                        count_requests(f, "GET", "?limit=") == count_requests(f, "GET", "?watch=");
        turn(f);
        if (is_quiet && sent == kube_requests_sent(f->api.kube))
            return;
    }
}

struct metrics_view view_of(const struct fixture *f)
{
    struct metrics_view view = {0};
    controller_view(f->controller, &view);
    return view;
}
