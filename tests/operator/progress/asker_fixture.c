#include "tests/operator/progress/asker_fixture.h"

#include "base/contract.h"
#include "tests/free_port.h"
#include "tests/support.h"

#include <string.h>

int64_t asker_now_ms;

static int64_t now_ms(void)
{
    return asker_now_ms;
}

const struct clocks asker_clocks = {.wall_ms = now_ms, .steady_ms = now_ms};

static void on_news(void *context, const char *key)
{
    struct asker_fixture *f = context;
    assert_string_equal(key, "ns/j");
    f->news++;
}

static void on_detail(void *context, const char *key, const char *text, size_t bytes)
{
    struct asker_fixture *f = context;
    assert_string_equal(key, "ns/j");
    assert_int_equal(strlen(text), bytes);
    assert_string_equal(text, "{\"ranks\":[]}");
    f->details++;
}

const struct http_options asker_http = {.max_body_bytes = 1 << 20,
                                        .max_line_bytes = 1 << 20,
                                        .max_in_flight = 16,
                                        .connect_timeout_ms = 10000};

void asker_open_patient(struct asker_fixture *f, const struct fake_answer *answers, size_t count,
                        int timeout_ms)
{
    struct error err;
    *f = (struct asker_fixture){.news = 0};
    asker_now_ms = 1000000;
    assert_ok(http_open(&f->http, &asker_http, &err), &err);
    if (count)
        f->server = fake_server_open(answers, count, NULL);
    const struct asker_options options = {.http = f->http,
                                          .interval_ms = ASKER_EVERY_MS,
                                          .timeout_ms = timeout_ms,
                                          .clocks = &asker_clocks,
                                          .news = on_news,
                                          .detail = on_detail,
                                          .context = f};
    f->asker = asker_open(&options);
    f->job = (struct job){.name = "j", .namespace_ = "ns", .uid = "job"};
    f->job.replicas[REPLICA_MASTER].present = true;
    f->pod = (struct pod){.name = "j-master-0",
                          .uid = "u1",
                          .owner_uid = "job",
                          .type = REPLICA_MASTER,
                          .phase = POD_RUNNING,
                          .address = "127.0.0.1",
                          .training_port = f->server ? fake_server_port(f->server) : free_port()};
    f->snapshot =
        (struct snapshot){.job = &f->job, .status = &f->status, .pods = &f->pod, .pod_count = 1};
    asker_follow(f->asker, "ns/j", &f->snapshot);
}

void asker_open_fixture(struct asker_fixture *f, const struct fake_answer *answers, size_t count)
{
    asker_open_patient(f, answers, count, SUPPORT_PATIENCE_MS);
}

void asker_close_fixture(struct asker_fixture *f)
{
    asker_close(f->asker);
    http_close(f->http);
    if (f->server)
        fake_server_close(f->server);
}

int asker_requests(const struct asker_fixture *f)
{
    return (int)fake_server_request_count(f->server);
}

void asker_pass(struct asker_fixture *f, int64_t ms)
{
    struct error err;
    for (int64_t end_ms = asker_now_ms + ms; asker_now_ms < end_ms; asker_now_ms += 1000) {
        asker_tick(f->asker, 0);
        while (http_in_flight(f->http) > 0)
            assert_ok(http_poll(f->http, NULL, 0, 20, &err), &err);
    }
}
