#include "operator/progress/asker.h"

#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/schedule.h"
#include "base/table.h"
#include "operator/decode/decode_training.h"
#include "operator/progress/ask_times.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Timeouts in a row until it is told that something may forbid the asks: one is a busy node. */
enum { TIMEOUTS_TOLD = 2 };

struct asked {
    struct table_entry entry;
    struct asker *asker;
    const char *key, *run, *uid, *pod, *url; /* in `texts` */
    struct ask_times times;
    int32_t restart_count;
    int timeouts;                        /* in a row */
    struct schedule_entry due;           /* of the next ask; none waits while one is in flight */
    struct http_request *request;        /* NULL: none is in flight */
    struct http_request *detail_request; /* likewise */
    struct training *heard;              /* the status does not have it; NULL: nothing */
    uint64_t digest;                     /* of what was told last */
    bool has_told;                       /* an agent has; else any answer of one is news */
    bool has_no_detail;                  /* an agent of before, or another program */
    char texts[];
};

struct asker {
    struct asker_options options;
    struct table jobs;
    struct schedule schedule;
    size_t in_flight;
    uint64_t asks, unanswered;
    bool told_of_timeouts, told_of_refusals;
};

/* ---- whom ---- */

static struct asked *asked_that_waits(struct schedule_entry *entry)
{
    return (struct asked *)((char *)entry - offsetof(struct asked, due));
}

static void forget(void *context, struct table_entry *entry)
{
    struct asker *asker = context;
    struct asked *a = (struct asked *)entry;
    table_remove(&asker->jobs, entry);
    if (a->request) {
        http_cancel(asker->options.http, a->request);
        asker->in_flight--;
    }
    if (a->detail_request) {
        http_cancel(asker->options.http, a->detail_request);
        asker->in_flight--;
    }
    if (schedule_waits(&a->due))
        schedule_remove(&asker->schedule, &a->due);
    free(a->heard);
    free(a);
}

/* Without a path. */
static char *url_of(const struct ask_target *target)
{
    bool is_ipv6 = strchr(target->address, ':') != NULL;
    return xasprintf("http://%s%s%s:%" PRId32, is_ipv6 ? "[" : "", target->address,
                     is_ipv6 ? "]" : "", target->port);
}

static bool is_same(const struct asked *a, const struct ask_target *target)
{
    auto_free char *url = url_of(target);
    return strcmp(a->run, target->run) == 0 && strcmp(a->uid, target->uid) == 0 &&
           a->restart_count == target->restart_count && strcmp(a->url, url) == 0;
}

static const char *put(char **at, const char *text)
{
    size_t bytes = strlen(text) + 1;
    const char *copy = memcpy(*at, text, bytes);
    *at += bytes;
    return copy;
}

static void add(struct asker *asker, const char *key, const struct ask_target *target)
{
    auto_free char *url = url_of(target);
    size_t bytes = strlen(key) + strlen(target->run) + strlen(target->uid) + strlen(target->pod) +
                   strlen(url) + 5;
    struct asked *a = xcalloc(1, sizeof *a + bytes);
    char *at = a->texts;
    a->asker = asker;
    a->key = put(&at, key);
    a->run = put(&at, target->run);
    a->uid = put(&at, target->uid);
    a->pod = put(&at, target->pod);
    a->url = put(&at, url);
    a->restart_count = target->restart_count;
    a->times.answered = target->is_agent;
    a->entry.key = a->key;
    table_add(&asker->jobs, &a->entry);
    int64_t now_ms = asker->options.clocks->steady_ms();
    schedule_add(&asker->schedule, &a->due,
                 ask_times_first(now_ms, asker->options.interval_ms, a->entry.hash));
}

/* What the status has by now need not be kept beside it. Where somebody has taken it out of there
 * again, the next answer is news, whatever it is. */
static void compare(struct asked *a, const struct training *shown)
{
    if (!a->heard) {
        a->has_told = a->has_told && shown->known;
        return;
    }
    struct training merged = *shown;
    training_merge(&merged, a->heard);
    if (training_equal(&merged, shown))
        free(take(a->heard));
}

void asker_follow(struct asker *asker, const char *key, const struct snapshot *snapshot)
{
    struct asked *a = asker ? (struct asked *)table_find(&asker->jobs, key) : NULL;
    struct ask_target target;
    bool found = asker && snapshot && ask_target_find(snapshot, &target);
    if (a && found && is_same(a, &target)) {
        compare(a, &snapshot->status->training);
        return;
    }
    if (a)
        forget(asker, &a->entry);
    if (found)
        add(asker, key, &target);
}

void asker_forget_all(struct asker *asker)
{
    if (asker)
        table_each(&asker->jobs, forget, asker);
}

/* Returns whether it is news. */
static bool hear(struct asked *a, const struct training *told)
{
    uint64_t digest = training_digest(told);
    if (a->has_told && a->digest == digest)
        return false;
    a->has_told = true;
    a->digest = digest;
    if (!a->heard)
        a->heard = xmalloc(sizeof *a->heard);
    *a->heard = *told;
    return true;
}

const struct training *asker_heard(const struct asker *asker, const char *key)
{
    const struct asked *a = asker ? (const struct asked *)table_find(&asker->jobs, key) : NULL;
    return a ? a->heard : NULL;
}

bool asker_is_quiet(const struct asker *asker, const char *key)
{
    const struct asked *a = asker ? (const struct asked *)table_find(&asker->jobs, key) : NULL;
    return a && ask_times_quiet(&a->times);
}

/* ---- what is answered ---- */

static void tell_of_timeouts(struct asked *a)
{
    struct asker *asker = a->asker;
    if (asker->told_of_timeouts)
        return;
    asker->told_of_timeouts = true;
    log_warning("%s: pod %s does not answer at %s" TRAINING_PATH
                " within %d ms, so status.training is not known; "
                "does a NetworkPolicy forbid it? deploy/jobs/network_policy.yaml lets the operator "
                "in (this is logged once)",
                a->key, a->pod, a->url, asker->options.timeout_ms);
}

/* Who refuses may be another program's pod, or an agent that starts: told only of long silence. */
static void tell_of_refusals(const struct asked *a, const struct error *refused)
{
    struct asker *asker = a->asker;
    if (asker->told_of_refusals)
        return;
    asker->told_of_refusals = true;
    log_info("%s: pod %s has refused all connections to %s" TRAINING_PATH
             " for some minutes (%s), so status.training is not known. If it runs an agent of "
             "Shoal's, does a NetworkPolicy reject them? deploy/jobs/network_policy.yaml lets the "
             "operator in (this is logged once)",
             a->key, a->pod, a->url, refused->msg);
}

/* A proxy in the pod answers with 5xx for an agent that does not listen yet, and on a node's
 * network another job's agent may have the port. */
static enum ask_outcome outcome_of(const struct http_answer *answer, const char *run,
                                   struct training *told)
{
    struct error err;
    if (answer->err.code == ERR_IO || answer->err.code == ERR_TIMEOUT || answer->status >= 500)
        return ASK_SILENT;
    if (answer->err.code || answer->status != 200)
        return ASK_STRANGER;
    if (decode_training_answer(answer->body, answer->body_bytes, run, told, &err) == 0)
        return ASK_HEARD;
    return err.code == ERR_CONFLICT ? ASK_SILENT : ASK_STRANGER;
}

static void on_done(void *context, const struct http_answer *answer)
{
    struct asked *a = context;
    struct asker *asker = a->asker;
    const struct asker_options *options = &asker->options;
    struct training told;
    enum ask_outcome outcome = outcome_of(answer, a->run, &told);
    bool was_quiet = ask_times_quiet(&a->times);
    a->request = NULL;
    asker->in_flight--;
    asker->unanswered += outcome != ASK_HEARD;
    a->timeouts = answer->err.code == ERR_TIMEOUT ? a->timeouts + 1 : 0;
    if (a->timeouts == TIMEOUTS_TOLD)
        tell_of_timeouts(a);
    int64_t next_ms =
        ask_times_next(&a->times, outcome, options->clocks->steady_ms(), options->interval_ms);
    bool is_quiet = ask_times_quiet(&a->times);
    if (is_quiet && !was_quiet && !a->times.answered && answer->err.code == ERR_IO)
        tell_of_refusals(a, &answer->err);
    if (next_ms != ASK_NEVER)
        schedule_add(&asker->schedule, &a->due, next_ms);
    bool is_news = outcome == ASK_HEARD && hear(a, &told);
    if (is_news || is_quiet != was_quiet)
        options->news(options->context, a->key); /* the last: it may forget the job */
}

static struct http_request *get(struct asked *a, const char *path, size_t max_bytes,
                                void (*done)(void *context, const struct http_answer *answer))
{
    struct asker *asker = a->asker;
    auto_free char *url = xasprintf("%s%s", a->url, path);
    const struct http_call call = {
        .method = "GET",
        .url = url,
        .user_agent = "shoal-operator/" SHOAL_VERSION,
        .direct = true,
        .max_body_bytes = max_bytes,
        .timeout_ms = asker->options.timeout_ms,
        .done = done,
        .context = a,
    };
    asker->in_flight++;
    asker->asks++;
    return http_send(asker->options.http, &call);
}

static void ask(struct asked *a)
{
    schedule_remove(&a->asker->schedule, &a->due);
    a->request = get(a, TRAINING_PATH, TRAINING_MAX_BYTES, on_done);
}

static void on_detail(void *context, const struct http_answer *answer)
{
    struct asked *a = context;
    const struct asker_options *options = &a->asker->options;
    bool is_heard = answer->err.code == ERR_NONE && answer->status == 200;
    a->detail_request = NULL;
    a->asker->in_flight--;
    a->asker->unanswered += !is_heard;
    /* who is silent for a moment is asked again, who answers otherwise is not */
    a->has_no_detail =
        answer->err.code == ERR_LIMIT ||
        (answer->err.code == ERR_NONE && answer->status >= 300 && answer->status < 500);
    if (is_heard)
        options->detail(options->context, a->key, answer->body, answer->body_bytes);
}

void asker_ask_detail(struct asker *asker, const char *key)
{
    struct asked *a = asker ? (struct asked *)table_find(&asker->jobs, key) : NULL;
    if (!a || !a->has_told || a->has_no_detail || a->detail_request ||
        asker->in_flight == ASKER_IN_FLIGHT_MAX)
        return;
    a->detail_request = get(a, TRAINING_DETAIL_PATH, TRAINING_DETAIL_MAX_BYTES, on_detail);
}

int64_t asker_tick(struct asker *asker, size_t writes)
{
    if (!asker)
        return INT64_MAX;
    int64_t now_ms = asker->options.clocks->steady_ms();
    while (asker->in_flight + writes < ASKER_IN_FLIGHT_MAX &&
           schedule_due(&asker->schedule) <= now_ms)
        ask(asked_that_waits(schedule_first(&asker->schedule)));
    if (asker->in_flight + writes >= ASKER_IN_FLIGHT_MAX) /* the end of one comes first */
        return INT64_MAX;
    return clock_until_ms(schedule_due(&asker->schedule), now_ms);
}

uint64_t asker_asks(const struct asker *asker)
{
    return asker ? asker->asks : 0;
}

uint64_t asker_unanswered(const struct asker *asker)
{
    return asker ? asker->unanswered : 0;
}

/* ---- life cycle ---- */

struct asker *asker_open(const struct asker_options *options)
{
    if (!options->http || options->interval_ms <= 0)
        return NULL;
    struct asker *asker = xcalloc(1, sizeof *asker);
    asker->options = *options;
    return asker;
}

void asker_close(struct asker *asker)
{
    if (!asker)
        return;
    asker_forget_all(asker);
    table_free(&asker->jobs);
    schedule_free(&asker->schedule);
    free(asker);
}
