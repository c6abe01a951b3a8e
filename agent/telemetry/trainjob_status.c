#include "agent/telemetry/trainjob_status.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/http.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_FILE_BYTES = 256 * 1024,
    MAX_ANSWER_BYTES = 64 * 1024,
    TIMEOUT_MS = 5000, /* of a request */
};

struct trainjob_status {
    struct trainjob_status_setting setting;
    pthread_t thread;
    bool runs; /* there is a thread */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* by the monotonic clock */
    char *next;             /* what waits; NULL: nothing. Under the lock */
    bool ends;              /* likewise */
    bool warned;            /* of a failure; the thread's own */
};

/* ---- one request ---- */

struct answer {
    const char *url;
    bool done;
    struct error err;
};

static void on_done(void *ctx, const struct http_answer *answer)
{
    struct answer *a = ctx;
    a->done = true;
    a->err = answer->err;
    if (answer->err.code == ERR_NONE && answer->status / 100 != 2)
        error_set(&a->err, ERR_IO, "POST %s: HTTP %ld: %.200s", a->url, answer->status,
                  answer->body);
}

static int exchange(struct http *http, const struct http_call *call, struct error *err)
{
    struct answer answer = {.url = call->url};
    struct http_call mine = *call;
    mine.done = on_done;
    mine.context = &answer;
    struct http_request *request = http_send(http, &mine);
    while (!answer.done)
        if (http_poll(http, NULL, 0, TIMEOUT_MS, err) < 0) {
            http_cancel(http, request);
            return -1;
        }
    *err = answer.err;
    return err->code == ERR_NONE ? 0 : -1;
}

static int post(const struct trainjob_status *s, struct http *http, const char *body,
                struct error *err)
{
    auto_free char *ca = NULL, *token = NULL;
    size_t ca_bytes, token_bytes;
    if (file_read(s->setting.ca_file, MAX_FILE_BYTES, &ca, &ca_bytes, err) < 0 ||
        file_read(s->setting.token_file, MAX_FILE_BYTES, &token, &token_bytes, err) < 0)
        return -1;
    token[strcspn(token, " \r\n")] = '\0';
    http_set_tls(http, &(struct http_tls){.ca = ca});
    const struct http_call call = {
        .method = "POST",
        .url = s->setting.url,
        .body = body,
        .body_bytes = strlen(body),
        .content_type = "application/json",
        .bearer = token,
        .user_agent = "shoal-agent",
        .timeout_ms = TIMEOUT_MS,
    };
    return exchange(http, &call, err);
}

/* ---- the thread ---- */

static struct timespec deadline(int64_t ms)
{
    return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
}

/* Waits for a body whose time has come, or for the end. NULL: it is the end, and nothing waits. The
 * caller frees. */
static char *take_next(struct trainjob_status *s, int64_t not_before_ms)
{
    const struct timespec until = deadline(not_before_ms);
    pthread_mutex_lock(&s->lock);
    while (!s->ends && (!s->next || clock_monotonic_ms() < not_before_ms)) {
        if (s->next)
            pthread_cond_timedwait(&s->changed, &s->lock, &until);
        else
            pthread_cond_wait(&s->changed, &s->lock);
    }
    char *body = take(s->next);
    pthread_mutex_unlock(&s->lock);
    return body;
}

static void *run(void *ctx)
{
    struct trainjob_status *s = ctx;
    struct http *http = NULL;
    struct error err;
    const struct http_options options = {.max_body_bytes = MAX_ANSWER_BYTES,
                                         .max_line_bytes = MAX_ANSWER_BYTES,
                                         .max_in_flight = 1,
                                         .connect_timeout_ms = TIMEOUT_MS};
    int result = http_open(&http, &options, &err);
    int64_t next_ms = 0;
    for (char *body; (body = take_next(s, next_ms)); free(body)) {
        if ((result < 0 || post(s, http, body, &err) < 0) && !s->warned) {
            log_warning("the TrainJob does not show this run's progress: %s", err.msg);
            s->warned = true;
        }
        next_ms = clock_monotonic_ms() + s->setting.interval_ms;
    }
    http_close(http);
    return NULL;
}

void trainjob_status_publish(struct trainjob_status *s, const char *body)
{
    char *copy = xstrdup(body);
    pthread_mutex_lock(&s->lock);
    char *before = s->next;
    s->next = copy;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    free(before);
}

int trainjob_status_open(struct trainjob_status **ret_status,
                         const struct trainjob_status_setting *setting, struct error *err)
{
    if (!setting->ca_file || !setting->token_file)
        return error_set(err, ERR_CONFIG,
                         "KUBEFLOW_TRAINER_SERVER_URL without "
                         "KUBEFLOW_TRAINER_SERVER_CA_CERT and KUBEFLOW_TRAINER_SERVER_TOKEN");
    struct trainjob_status *s = xcalloc(1, sizeof *s);
    pthread_condattr_t attributes;
    s->setting = *setting;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attributes);
    /* By default the wall's clock decides: setting it would stretch or skip an interval. */
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int failure = pthread_create(&s->thread, NULL, run, s);
    s->runs = failure == 0;
    if (failure) {
        trainjob_status_close(s);
        return error_set(err, ERR_IO, "a thread for the TrainJob's progress: %s",
                         strerror(failure));
    }
    *ret_status = s;
    return 0;
}

void trainjob_status_close(struct trainjob_status *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->runs)
        pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->next);
    free(s);
}

/* ---- the body ---- */

static void add_metrics(const struct run_state *s, struct str *out)
{
    const struct {
        const char *name;
        double value;
        bool known;
    } rows[] = {
        {"loss", s->last.loss, s->steps > 0},
        {"grad_norm", s->last.grad_norm, s->steps > 0},
        {"learning_rate", s->last.lr, s->steps > 0},
        {"epoch", s->last.epoch, s->steps > 0},
        {"tokens_per_second", s->tokens_per_s, s->tokens_per_s > 0},
        {"samples_per_second", s->samples_per_s, s->samples_per_s > 0},
        {"eval_loss", s->eval.loss, true},
        {"eval_perplexity", s->eval.perplexity, true},
        {"eval_accuracy", s->eval.accuracy, true},
    };
    const char *comma = "";
    str_add(out, ",\"metrics\":[");
    for (size_t i = 0; i < array_length(rows); i++) {
        if (!rows[i].known || !isfinite(rows[i].value))
            continue;
        str_printf(out, "%s{\"name\":\"%s\",\"value\":\"%.6g\"}", comma, rows[i].name,
                   rows[i].value);
        comma = ",";
    }
    str_add(out, "]");
}

void trainjob_status_format(const struct run_state *s, bool is_done, struct str *out)
{
    int64_t steps = s->last.steps > 0 ? s->last.steps : s->facts.steps;
    int64_t left = steps > s->last.step ? steps - s->last.step : 0;
    char time[40];
    clock_format_rfc3339(s->progress_wall_us / 1000, time, sizeof time);
    str_printf(out, "{\"trainerStatus\":{\"lastUpdatedTime\":\"%s\"", time);
    if (is_done)
        str_add(out, ",\"progressPercentage\":100,\"estimatedRemainingSeconds\":0");
    else if (steps > 0) {
        int64_t percent = 100 * (steps - left) / steps;
        str_printf(out, ",\"progressPercentage\":%" PRId64, percent < 99 ? percent : 99);
        if (s->steps_per_s > 0)
            str_printf(out, ",\"estimatedRemainingSeconds\":%.0f", (double)left / s->steps_per_s);
    }
    add_metrics(s, out);
    str_add(out, "}}");
}
