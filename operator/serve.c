#include "operator/serve.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/exposition.h"
#include "base/httpd.h"
#include "base/mem.h"

#define METRICS_PATH "/metrics"
enum { STUCK_AFTER_MS = 60 * 1000 }; /* more than anything that may rightly hold up the loop */

struct serve {
    struct httpd *health;    /* NULL: not served */
    struct httpd *metrics;   /* may be `health` */
    int ready;               /* as published; -1: not yet */
    pthread_mutex_t mutex;   /* guards what /metrics is printed from */
    struct metrics *numbers; /* borrowed; NULL: nothing is published yet */
    struct metrics_view view;
};

int serve_listen(const char *address, struct httpd **ret_httpd, struct error *err)
{
    char host[256];
    int port;
    if (operator_config_address(address, host, sizeof host, &port, err) < 0)
        return -1;
    if (port == 0)
        return 0;
    return httpd_open(ret_httpd, host, port, err);
}

static void publish(struct httpd *httpd, const char *path, int status, const char *type,
                    const char *body)
{
    if (httpd)
        httpd_publish(httpd, path, status, type, body, strlen(body));
}

static void publish_ready(struct serve *s, bool ready)
{
    if (s->ready == (int)ready)
        return;
    s->ready = ready;
    publish(s->health, "/readyz", ready ? 200 : 503, "text/plain",
            ready ? "ok\n" : "the caches are not filled yet\n");
}

/* For whoever asks: of 1,000 jobs it is 1 MB, which nobody has to keep. */
static bool answer_metrics(void *context, const char *path, struct str *body)
{
    struct serve *s = context;
    pthread_mutex_lock(&s->mutex);
    struct metrics *numbers = s->numbers;
    const struct metrics_view view = s->view;
    pthread_mutex_unlock(&s->mutex);
    if (!numbers || strcmp(path, METRICS_PATH) != 0)
        return false;
    metrics_print(numbers, &view, body);
    return true;
}

int serve_open(struct serve **ret_serve, const struct operator_config *config, struct error *err)
{
    struct serve *s = xcalloc(1, sizeof *s);
    *ret_serve = s;
    s->ready = -1;
    pthread_mutex_init(&s->mutex, NULL);
    if (serve_listen(config->health_probe_bind_address, &s->health, err) < 0)
        return error_wrap(err, "--health-probe-bind-address");
    if (!strcmp(config->metrics_bind_address, config->health_probe_bind_address))
        s->metrics = s->health;
    else if (serve_listen(config->metrics_bind_address, &s->metrics, err) < 0)
        return error_wrap(err, "--metrics-bind-address");
    publish(s->health, "/healthz", 200, "text/plain", "ok\n");
    if (s->health)
        /* The loop publishes the page anew as long as it runs. If it hangs, the page expires, and
         * the kubelet restarts the pod. */
        httpd_expect(s->health, "/healthz", STUCK_AFTER_MS);
    if (s->metrics)
        httpd_answer_below(s->metrics, METRICS_PATH, EXPOSITION_CONTENT_TYPE, answer_metrics, s);
    publish_ready(s, false);
    return 0;
}

void serve_close(struct serve *s)
{
    if (!s)
        return;
    if (s->metrics != s->health)
        httpd_close(s->metrics);
    httpd_close(s->health);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

void serve_publish(struct serve *s, struct metrics *metrics, const struct metrics_view *view)
{
    publish_ready(s, view->ready);
    publish(s->health, "/healthz", 200, "text/plain", "ok\n");
    pthread_mutex_lock(&s->mutex);
    s->numbers = metrics;
    s->view = *view;
    pthread_mutex_unlock(&s->mutex);
}
