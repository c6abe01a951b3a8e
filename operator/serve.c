#include "operator/serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/exposition.h"
#include "base/httpd.h"
#include "base/mem.h"

enum { STUCK_AFTER_MS = 60 * 1000 }; /* more than anything that may rightly hold up the loop */

struct serve {
    struct httpd *health;  /* NULL: not served */
    struct httpd *metrics; /* may be `health` */
    int ready;             /* as published; -1: not yet */
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

int serve_open(struct serve **ret_serve, const struct operator_config *config, struct error *err)
{
    struct serve *s = xcalloc(1, sizeof *s);
    *ret_serve = s;
    s->ready = -1;
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
    free(s);
}

void serve_publish(struct serve *s, const struct metrics *metrics, const struct metrics_view *view)
{
    publish_ready(s, view->ready);
    publish(s->health, "/healthz", 200, "text/plain", "ok\n");
    auto_str struct str text;
    str_init(&text, METRICS_MAX_BYTES);
    metrics_print(metrics, view, &text);
    if (text.truncated) /* half a page would be read as the whole */
        publish(s->metrics, "/metrics", 500, "text/plain", "the page is too long\n");
    else
        publish(s->metrics, "/metrics", 200, EXPOSITION_CONTENT_TYPE, str_text(&text));
}
