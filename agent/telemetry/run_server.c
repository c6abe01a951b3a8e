#include "agent/telemetry/run_server.h"

#include "agent/telemetry/json_row.h"
#include "agent/telemetry/run_metrics.h"
#include "agent/telemetry/status_json.h"
#include "base/exposition.h"
#include "base/httpd.h"
#include "base/mem.h"
#include "base/resident.h"

#include <stdlib.h>

enum { PAGE_MAX_BYTES = 1 << 20 };

#define STEPS_PATH "/steps"

struct run_server {
    struct httpd *httpd;
    struct str text; /* of the page or message that is being written */
};

static void publish(struct run_server *s, const char *path, const char *type)
{
    httpd_publish(s->httpd, path, 200, type, str_text(&s->text), s->text.length);
    str_clear(&s->text);
}

void run_server_publish(struct run_server *s, const struct run_state *state)
{
    status_json(state, &s->text);
    publish(s, "/status", "application/json");
    run_metrics_print(state, resident_bytes(), &s->text);
    publish(s, "/metrics", EXPOSITION_CONTENT_TYPE);
    str_add(&s->text, "ok\n");
    publish(s, "/healthz", "text/plain");
}

int run_server_open(struct run_server **ret_server, const char *host, int port,
                    double healthy_within_s, const struct run_state *state, struct error *err)
{
    struct httpd *httpd;
    if (httpd_open(&httpd, host, port, err) < 0)
        return -1;
    struct run_server *s = xcalloc(1, sizeof *s);
    s->httpd = httpd;
    str_init(&s->text, PAGE_MAX_BYTES);
    httpd_stream(httpd, STEPS_PATH);
    run_server_publish(s, state);
    httpd_expect(httpd, "/healthz", (int64_t)(healthy_within_s * 1000));
    *ret_server = s;
    return 0;
}

void run_server_close(struct run_server *s)
{
    if (!s)
        return;
    httpd_close(s->httpd);
    str_free(&s->text);
    free(s);
}

int run_server_port(const struct run_server *s)
{
    return httpd_port(s->httpd);
}

void run_server_push(struct run_server *s, enum field_event event, const struct run_state *state)
{
    json_row(event, WORDS_HF, state, &s->text);
    httpd_push(s->httpd, STEPS_PATH, str_text(&s->text), s->text.length);
    str_clear(&s->text);
}
