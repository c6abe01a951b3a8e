#include "cli/cluster.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/contract.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/mem.h"
#include "operator/kube/kube.h"
#include "operator/kube/kubeconfig.h"

enum {
    BODY_MAX_BYTES = 64 << 20,
    LINE_MAX_BYTES = 1 << 20, /* nothing is streamed */
    IN_FLIGHT_MAX = 1,
    CONNECT_TIMEOUT_MS = 10 * 1000,
    REQUEST_TIMEOUT_MS = 30 * 1000,
    GIVE_UP_MS = 2000, /* a person waits */
    WAIT_MAX_MS = 60 * 1000,
    HINT_MAX_BYTES = 4096,
};

struct cluster {
    struct http *http;
    struct kubeconfig *kubeconfig;
    struct kube *kube;
    const char *namespace_;
    int stop_fd;
    /* of the request under way */
    bool is_done;
    struct json *answer;
    struct error err;
};

int cluster_options_check(const struct cluster_options *o, struct error *err)
{
    const struct {
        const char *name, *value;
    } texts[] = {
        {"namespace", o->namespace_}, {"context", o->context}, {"kubeconfig", o->kubeconfig}};
    for (size_t i = 0; i < array_length(texts); i++)
        if (texts[i].value && !*texts[i].value)
            return error_set(err, ERR_CONFIG, "--%s: must not be empty", texts[i].name);
    return 0;
}

int cluster_open(struct cluster **ret_cluster, const struct cluster_options *o, int stop_fd,
                 struct error *err)
{
    const struct http_options http = {.max_body_bytes = BODY_MAX_BYTES,
                                      .max_line_bytes = LINE_MAX_BYTES,
                                      .max_in_flight = IN_FLIGHT_MAX,
                                      .connect_timeout_ms = CONNECT_TIMEOUT_MS};
    const struct kubeconfig_options who = {.path = o->kubeconfig, .context = o->context};
    const struct kube_options kube = {.timeout_ms = REQUEST_TIMEOUT_MS,
                                      .give_up_ms = GIVE_UP_MS,
                                      .backoff_first_ms = 100,
                                      .backoff_max_ms = 1000,
                                      .seed = (uint64_t)clock_now_ns(),
                                      .user_agent = "shoal/" SHOAL_VERSION};
    struct cluster *cluster = xcalloc(1, sizeof *cluster);
    cluster->stop_fd = stop_fd;
    if (kubeconfig_open(&cluster->kubeconfig, &who, clock_now_ms(), err) < 0 ||
        http_open(&cluster->http, &http, err) < 0) {
        cluster_close(cluster);
        return -1;
    }
    cluster->kube = kube_open(cluster->http, cluster->kubeconfig, &kube);
    cluster->namespace_ = o->namespace_ ? o->namespace_ : kubeconfig_namespace(cluster->kubeconfig);
    *ret_cluster = cluster;
    return 0;
}

void cluster_close(struct cluster *cluster)
{
    if (!cluster)
        return;
    kube_close(cluster->kube);
    http_close(cluster->http);
    kubeconfig_close(cluster->kubeconfig);
    free(cluster);
}

const char *cluster_namespace(const struct cluster *cluster)
{
    return cluster->namespace_;
}

const char *cluster_server(const struct cluster *cluster)
{
    return kubeconfig_server(cluster->kubeconfig);
}

/* ---- one request ---- */

static void on_done(void *context, const struct json *answer, const struct error *err)
{
    struct cluster *cluster = context;
    cluster->is_done = true;
    cluster->answer = json_clone(answer);
    cluster->err = *err;
}

/* Until something happened. ERR_CANCELLED: someone wants to stop. */
static int wait_for_news(struct cluster *cluster, int64_t due_ms, struct error *err)
{
    struct pollfd fds[1 + COMMAND_FDS_MAX];
    size_t count = 0;
    int64_t left_ms, wait_ms = clock_until_ms(due_ms, clock_now_ms());
    if (cluster->stop_fd >= 0)
        fds[count++] = (struct pollfd){.fd = cluster->stop_fd, .events = POLLIN};
    size_t stop_fds = count;
    count += kube_fds(cluster->kube, fds + count, &left_ms);
    wait_ms = left_ms < wait_ms ? left_ms : wait_ms;
    wait_ms = wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS;
    if (http_poll(cluster->http, fds, count, (int)wait_ms, err) < 0)
        return -1;
    if (stop_fds && fds[0].revents)
        return error_set(err, ERR_CANCELLED, "stopped");
    return 0;
}

int cluster_get(struct cluster *cluster, const char *path, struct json **ret_object,
                struct error *err)
{
    const struct kube_call call = {
        .method = "GET", .path = path, .done = on_done, .context = cluster};
    cluster->is_done = false;
    struct kube_request *request = kube_send(cluster->kube, &call, clock_now_ms());
    while (!cluster->is_done) {
        int64_t due_ms;
        kube_tick(cluster->kube, clock_now_ms(), &due_ms);
        if (!cluster->is_done && wait_for_news(cluster, due_ms, err) < 0) {
            if (!cluster->is_done)
                kube_cancel(cluster->kube, request);
            json_free(take(cluster->answer));
            return -1;
        }
    }
    *ret_object = take(cluster->answer);
    if (*ret_object)
        return 0;
    *err = cluster->err;
    return -1;
}

/* ---- what to do about an error ---- */

bool cluster_is_forbidden(const struct cluster *cluster, const struct error *err)
{
    return err->code == ERR_FORBIDDEN && kube_requests_forbidden(cluster->kube) > 0;
}

static void add_login_hint(const struct error *err, struct str *out)
{
    if (err->code == ERR_NOT_FOUND)
        str_add(out, "name a kubeconfig with --kubeconfig FILE or KUBECONFIG, or look at the jobs "
                     "of this machine with --local");
    else if (err->code == ERR_CONFIG)
        str_add(out, "`kubectl config get-contexts` lists what --context can name");
}

static void add_hint(const struct cluster *cluster, const struct error *err, struct str *out)
{
    switch (err->code) {
    case ERR_FORBIDDEN: /* 401 or 403 */
        if (!cluster_is_forbidden(cluster, err))
            str_add(out, "the API server does not take this login: log in again, or choose another "
                         "with --context");
        else
            str_printf(out,
                       "ask for the role shoal-view or view in namespace %s; `kubectl "
                       "auth can-i list pytorchjobs.kubeflow.org -n %s` tells whether you have it",
                       cluster->namespace_, cluster->namespace_);
        break;
    case ERR_NOT_FOUND:
        str_printf(out,
                   "%s serves no PyTorchJobs: install Shoal there (`kubectl apply -k deploy`), or "
                   "choose another cluster with --context",
                   cluster_server(cluster));
        break;
    case ERR_IO:
    case ERR_TIMEOUT:
        str_printf(
            out,
            "no usable answer from %s: is that the cluster, and is it up? `kubectl cluster-info` tells, "
            "--context names another",
            cluster_server(cluster));
        break;
    default:
        break;
    }
}

int cluster_failed(const char *program, const struct cluster *cluster, const struct error *err)
{
    auto_str struct str hint;
    str_init(&hint, HINT_MAX_BYTES);
    int code = exit_failed(program, err);
    if (cluster)
        add_hint(cluster, err, &hint);
    else
        add_login_hint(err, &hint);
    if (hint.length)
        fprintf(stderr, "%s: %s\n", program, str_text(&hint));
    return code == EXIT_RETRYABLE ? EXIT_FAILED : code; /* a person tries again */
}

void cluster_add_query(struct str *path, const char *key, const char *value)
{
    str_printf(path, "%c%s=", strchr(str_text(path), '?') ? '&' : '?', key);
    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        str_printf(path, isalnum(*c) || strchr("-._~", *c) ? "%c" : "%%%02X", *c);
}
