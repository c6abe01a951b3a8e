#include "agent/telemetry/run_server.h"

#include "agent/telemetry/json_row.h"
#include "agent/telemetry/run_metrics.h"
#include "agent/telemetry/status_json.h"
#include "base/exposition.h"
#include "base/httpd.h"
#include "base/mem.h"
#include "base/resident.h"

#include <pthread.h>
#include <stdlib.h>

enum { PAGE_MAX_BYTES = 1 << 20 };

#define STEPS_PATH "/steps"

struct run_server {
    struct httpd *httpd;
    struct str text;                            /* of the page or message that is being written */
    pthread_mutex_t lock;                       /* of those below */
    struct str run_metrics;                     /* as published last */
    struct str other_metrics[RUN_SERVER_PARTS]; /* of others, behind them */
    struct str status, ranks; /* the run's object, and what others tell of all ranks; "": nothing */
};

static void publish(struct run_server *s, const char *path, const char *type)
{
    httpd_publish(s->httpd, path, 200, type, str_text(&s->text), s->text.length);
    str_clear(&s->text);
}

/* Renews the page of metrics after some of them have changed. */
static void set_metrics(struct run_server *s, struct str *metrics, const char *text, size_t bytes)
{
    auto_str struct str page;
    str_init(&page, 2 * PAGE_MAX_BYTES);
    /* Two threads write parts of one page: the trainer its numbers, the GPU poller its own. */
    pthread_mutex_lock(&s->lock);
    str_clear(metrics);
    str_add_bytes(metrics, text, bytes);
    str_add_bytes(&page, str_text(&s->run_metrics), s->run_metrics.length);
    for (int i = 0; i < RUN_SERVER_PARTS; i++)
        str_add_bytes(&page, str_text(&s->other_metrics[i]), s->other_metrics[i].length);
    httpd_publish(s->httpd, "/metrics", 200, EXPOSITION_CONTENT_TYPE, str_text(&page), page.length);
    pthread_mutex_unlock(&s->lock);
}

void run_server_add_metrics(struct run_server *s, enum run_server_part part, const char *text,
                            size_t bytes)
{
    set_metrics(s, &s->other_metrics[part], text, bytes);
}

/* The same of the page of the status. */
static void set_status(struct run_server *s, struct str *part, const char *text)
{
    auto_str struct str page;
    str_init(&page, 2 * PAGE_MAX_BYTES);
    pthread_mutex_lock(&s->lock);
    str_clear(part);
    str_add(part, text);
    str_add(&page, str_text(&s->status));
    if (s->ranks.length > 0 && page.length > 2) {
        page.length -= 2; /* "}\n": the ranks are one more member of the object */
        str_printf(&page, ",\"ranks\":%s}\n", str_text(&s->ranks));
    }
    httpd_publish(s->httpd, "/status", 200, "application/json", str_text(&page), page.length);
    pthread_mutex_unlock(&s->lock);
}

void run_server_add_ranks(struct run_server *s, const char *json)
{
    set_status(s, &s->ranks, json);
}

void run_server_publish(struct run_server *s, const struct run_state *state)
{
    status_json(state, &s->text);
    set_status(s, &s->status, str_text(&s->text));
    str_clear(&s->text);
    run_metrics_print(state, resident_bytes(), &s->text);
    set_metrics(s, &s->run_metrics, str_text(&s->text), s->text.length);
    str_clear(&s->text);
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
    pthread_mutex_init(&s->lock, NULL);
    str_init(&s->text, PAGE_MAX_BYTES);
    str_init(&s->run_metrics, PAGE_MAX_BYTES);
    for (int i = 0; i < RUN_SERVER_PARTS; i++)
        str_init(&s->other_metrics[i], PAGE_MAX_BYTES);
    str_init(&s->status, PAGE_MAX_BYTES);
    str_init(&s->ranks, PAGE_MAX_BYTES);
    httpd_local_names_only(httpd);
    httpd_stream(httpd, STEPS_PATH);
    run_server_publish(s, state);
    /* Each step publishes the page anew, so a run that hangs lets it expire: a liveness probe then
     * ends the pod. */
    httpd_expect(httpd, "/healthz", (int64_t)(healthy_within_s * 1000));
    *ret_server = s;
    return 0;
}

void run_server_close(struct run_server *s)
{
    if (!s)
        return;
    httpd_close(s->httpd);
    pthread_mutex_destroy(&s->lock);
    str_free(&s->text);
    str_free(&s->run_metrics);
    for (int i = 0; i < RUN_SERVER_PARTS; i++)
        str_free(&s->other_metrics[i]);
    str_free(&s->status);
    str_free(&s->ranks);
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
