#include "agent/telemetry/run_server.h"

#include "agent/telemetry/json_row.h"
#include "agent/telemetry/page_json.h"
#include "agent/telemetry/run_metrics.h"
#include "agent/telemetry/status_json.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/contract.h"
#include "base/exposition.h"
#include "base/httpd.h"
#include "base/mem.h"
#include "base/page.h"
#include "base/resident.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_MAX_BYTES = 1 << 20, PAGE_SEND_EVERY_US = 1000 * 1000 };

#define STEPS_PATH "/steps"

struct run_server {
    struct httpd *httpd;
    int64_t (*steady_us)(void);
    struct str text;                            /* of the page or message that is being written */
    pthread_mutex_t lock;                       /* of those below */
    struct str run_metrics;                     /* as published last */
    struct str other_metrics[RUN_SERVER_PARTS]; /* of others, behind them */
    struct str status, ranks; /* the run's object, and what others tell of all ranks; "": nothing */
    struct str progress;      /* what the operator asks for */
    int hung_rank, hung_node; /* members of it; -1: none */
    struct str last_hang;     /* its last member, and of the status; "": none */
    /* The live page's: as published last, how it went so far, and the last message. */
    struct run_state shown;
    struct time_account account;
    struct page_past past;
    struct page_keeper keeper; /* of the past; its note is not kept */
    int64_t version, pushed_us;
    int64_t told_ms; /* when a message was pushed last, by the clock of waits */
    int64_t sign_of_life_ms;
    /* Says that the run is there when its loop has nothing to tell, as within a step of minutes. */
    pthread_t thread;
    pthread_cond_t ended; /* `ends` was set */
    bool ends;
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

/* Makes the text one more member of an object that ends with "}\n"; "": it is none. */
static void add_member(struct str *object, const char *name, const char *json)
{
    if (!json[0] || object->length <= 2)
        return;
    object->length -= 2;
    str_printf(object, ",\"%s\":%s}\n", name, json);
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
    add_member(&page, "last_hang", str_text(&s->last_hang));
    add_member(&page, "ranks", str_text(&s->ranks));
    httpd_publish(s->httpd, "/status", 200, "application/json", str_text(&page), page.length);
    pthread_mutex_unlock(&s->lock);
}

/* Called with the lock. */
static void publish_progress(struct run_server *s)
{
    char rank[16], node[16];
    auto_str struct str page;
    str_init(&page, PAGE_MAX_BYTES);
    str_add(&page, str_text(&s->progress));
    if (s->hung_rank >= 0) {
        snprintf(rank, sizeof rank, "%d", s->hung_rank);
        snprintf(node, sizeof node, "%d", s->hung_node);
        add_member(&page, TRAINING_HUNG_RANK, rank);
        add_member(&page, TRAINING_HUNG_NODE, node);
    }
    add_member(&page, TRAINING_LAST_HANG, str_text(&s->last_hang));
    httpd_publish(s->httpd, TRAINING_PATH, 200, "application/json", str_text(&page), page.length);
}

/* Called with the lock. */
static struct page_view view_of(const struct run_server *s)
{
    return (struct page_view){.state = &s->shown,
                              .past = &s->past,
                              .ranks = str_text(&s->ranks),
                              .hung_rank = s->hung_rank,
                              .version = s->version};
}

/* On the server's thread. */
static bool answer_page(void *context, const char *path, struct str *body)
{
    struct run_server *s = context;
    pthread_mutex_lock(&s->lock);
    struct page_view view = view_of(s);
    bool is_there = page_json_answer(&view, path, body);
    pthread_mutex_unlock(&s->lock);
    return is_there;
}

/* Likewise. False: nothing lies below it. */
static bool answer_detail(void *context, const char *path, struct str *body)
{
    struct run_server *s = context;
    if (strcmp(path, TRAINING_DETAIL_PATH) != 0)
        return false;
    pthread_mutex_lock(&s->lock);
    struct page_view view = view_of(s);
    page_json_detail(&view, body);
    pthread_mutex_unlock(&s->lock);
    return true;
}

/* For the page, and for the process that may be started in this one's place. With the lock. */
static void look_back(struct run_server *s, const struct time_account *account)
{
    auto_str struct str note;
    str_init(&note, PAGE_NOTE_BYTES - 1);
    page_past_look(&s->past, account);
    page_past_note(&s->past, &note);
    if (s->keeper.keep)
        s->keeper.keep(s->keeper.context, str_text(&note));
}

/* Tells those who look what the page shows now, once a second at most. */
static void push_page(struct run_server *s)
{
    auto_str struct str message;
    str_init(&message, HTTPD_MESSAGE_BYTES_MAX);
    pthread_mutex_lock(&s->lock);
    int64_t now_us = s->steady_us();
    bool is_due = s->version == 0 || now_us - s->pushed_us >= PAGE_SEND_EVERY_US;
    if (is_due) {
        s->version++;
        s->pushed_us = now_us;
        s->told_ms = clock_monotonic_ms();
        if (s->shown.account)
            look_back(s, s->shown.account);
        struct page_view view = view_of(s);
        page_json_message(&view, &message);
    }
    pthread_mutex_unlock(&s->lock);
    if (is_due && !message.truncated)
        httpd_push(s->httpd, PAGE_LIVE_PATH, str_text(&message), message.length);
}

static void push_sign_of_life(struct run_server *s)
{
    auto_free char *message =
        xasprintf("{\"version\":%" PRId64 ",\"after\":%" PRId64 "}", s->version, s->version);
    httpd_push(s->httpd, PAGE_LIVE_PATH, message, strlen(message));
    s->told_ms = clock_monotonic_ms();
}

static void *tell_of_life(void *context)
{
    struct run_server *s = context;
    pthread_mutex_lock(&s->lock);
    while (!s->ends) {
        int64_t due_ms = s->told_ms + s->sign_of_life_ms;
        if (!cond_wait_until(&s->ended, &s->lock, due_ms) &&
            clock_monotonic_ms() >= s->told_ms + s->sign_of_life_ms)
            push_sign_of_life(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* What the page shows from now on. The account goes on while others read. */
static void show(struct run_server *s, const struct run_state *state)
{
    pthread_mutex_lock(&s->lock);
    s->shown = *state;
    if (state->account) {
        s->account = *state->account;
        s->shown.account = &s->account;
    }
    pthread_mutex_unlock(&s->lock);
    push_page(s);
}

void run_server_add_ranks(struct run_server *s, const char *json)
{
    set_status(s, &s->ranks, json);
    push_page(s);
}

void run_server_add_hung(struct run_server *s, int rank, int node, const char *last_hang)
{
    pthread_mutex_lock(&s->lock);
    bool is_news = rank != s->hung_rank || node != s->hung_node ||
                   strcmp(last_hang, str_text(&s->last_hang)) != 0;
    s->hung_rank = rank;
    s->hung_node = node;
    str_clear(&s->last_hang);
    str_add(&s->last_hang, last_hang);
    if (is_news)
        publish_progress(s);
    pthread_mutex_unlock(&s->lock);
}

void run_server_publish(struct run_server *s, const struct run_state *state)
{
    /* first of all what the operator asks for: of whom it has 404 it takes for no agent */
    pthread_mutex_lock(&s->lock);
    str_clear(&s->progress);
    status_json_training(state, &s->progress);
    publish_progress(s);
    pthread_mutex_unlock(&s->lock);
    status_json(state, &s->text);
    set_status(s, &s->status, str_text(&s->text));
    str_clear(&s->text);
    run_metrics_print(state, resident_bytes(), &s->text);
    set_metrics(s, &s->run_metrics, str_text(&s->text), s->text.length);
    str_clear(&s->text);
    show(s, state);
    str_add(&s->text, "ok\n");
    publish(s, "/healthz", "text/plain");
}

void run_server_failed(struct run_server *s, const struct run_state *state)
{
    pthread_mutex_lock(&s->lock);
    if (state->account)
        look_back(s, state->account);
    pthread_mutex_unlock(&s->lock);
}

static void close_all(struct run_server *s)
{
    httpd_close(s->httpd);
    pthread_cond_destroy(&s->ended);
    pthread_mutex_destroy(&s->lock);
    str_free(&s->text);
    str_free(&s->run_metrics);
    for (int i = 0; i < RUN_SERVER_PARTS; i++)
        str_free(&s->other_metrics[i]);
    str_free(&s->status);
    str_free(&s->ranks);
    str_free(&s->progress);
    str_free(&s->last_hang);
    page_past_free(&s->past);
    free(s);
}

int run_server_open(struct run_server **ret_server, const struct run_server_setting *setting,
                    const struct run_state *state, struct error *err)
{
    struct httpd *httpd;
    if (httpd_open(&httpd, setting->host, setting->port, err) < 0)
        return -1;
    struct run_server *s = xcalloc(1, sizeof *s);
    s->httpd = httpd;
    s->steady_us = setting->steady_us;
    s->sign_of_life_ms = setting->sign_of_life_ms;
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->ended);
    str_init(&s->text, PAGE_MAX_BYTES);
    str_init(&s->run_metrics, PAGE_MAX_BYTES);
    for (int i = 0; i < RUN_SERVER_PARTS; i++)
        str_init(&s->other_metrics[i], PAGE_MAX_BYTES);
    str_init(&s->status, PAGE_MAX_BYTES);
    str_init(&s->ranks, PAGE_MAX_BYTES);
    str_init(&s->progress, PAGE_MAX_BYTES);
    str_init(&s->last_hang, TRAINING_MAX_BYTES);
    s->hung_rank = s->hung_node = -1;
    s->keeper = setting->keeper;
    page_past_begin(&s->past, s->keeper.note ? s->keeper.note : "", state->process_wall_us / 1000);
    s->keeper.note = NULL;
    httpd_local_names_only(httpd);
    httpd_stream(httpd, STEPS_PATH);
    httpd_stream(httpd, PAGE_LIVE_PATH);
    run_server_publish(s, state);
    page_publish(httpd);
    httpd_answer_below(httpd, PAGE_JOBS_PATH, "application/json", answer_page, s);
    httpd_answer_below(httpd, TRAINING_DETAIL_PATH, "application/json", answer_detail, s);
    /* Each step publishes the page anew, so a run that hangs lets it expire: a liveness probe then
     * ends the pod. */
    httpd_expect(httpd, "/healthz", (int64_t)(setting->healthy_within_s * 1000));
    int failure = pthread_create(&s->thread, NULL, tell_of_life, s);
    if (failure) {
        close_all(s);
        return error_errno(err, failure, "a thread to serve the run with");
    }
    *ret_server = s;
    return 0;
}

void run_server_close(struct run_server *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    close_all(s);
}

int run_server_port(const struct run_server *s)
{
    return httpd_port(s->httpd);
}

void run_server_push(struct run_server *s, enum field_event event, const struct run_state *state)
{
    if (event == FIELD_STEP) {
        pthread_mutex_lock(&s->lock);
        page_past_step(&s->past, state);
        pthread_mutex_unlock(&s->lock);
    }
    json_row(event, WORDS_HF, state, &s->text);
    httpd_push(s->httpd, STEPS_PATH, str_text(&s->text), s->text.length);
    str_clear(&s->text);
}
