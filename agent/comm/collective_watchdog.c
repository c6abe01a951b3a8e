/* Three threads, because two kinds of call may hang. The first checks all communicators a few times
 * a second. When it finds a failure, it exchanges desync reports with the other ranks and starts
 * the second thread, which aborts the communicators: ncclCommAbort() may hang. The third counts
 * which collectives have ended: a driver that waits for the device blocks cudaEventQuery() as well.
 * So the first thread always goes on, to send heartbeats and to end the process when the abort
 * hangs. */
#include "agent/comm/collective_watchdog.h"

#include "agent/comm/desync_report.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LAST_WAIT_MS = 5000
}; /* beyond grace_ms: after it the launcher kills a process that is left */
enum { CHECK_MS = 100, LOGGED_RECORDS = 10, DUMP_MAX_BYTES = 1 << 20, PATH_BYTES = 512 };

struct watchdog {
    struct watchdog_options options;
    struct store_watcher lost;
    pthread_t thread, follower, aborter;
    pthread_mutex_t mutex; /* guards the fields below */
    pthread_cond_t changed, asked;
    bool has_aborter;
    struct watched_comm *watched;
    const struct watched_comm *asks; /* the one whose count_ended() runs just now; else NULL */
    struct flight_recorder *recorder;
    struct error failure; /* the first; code ERR_NONE: none */
    bool closing;
    enum { ABORT_NOT_BEGUN, ABORT_RUNS, ABORT_DONE } abort;
};

/* ---- failing; with the mutex held ---- */

static void set_failure(struct watchdog *w, const struct error *err)
{
    if (w->failure.code)
        return;
    w->failure = *err;
    pthread_cond_broadcast(&w->changed);
}

static struct watched_comm *find_broken(const struct watchdog *w, struct error *err)
{
    struct watched_comm *broken = w->watched;
    while (broken && broken->check(broken->ctx, err) == 0)
        broken = broken->next;
    return broken;
}

static struct watched_comm *find_late(const struct watchdog *w, int64_t now_ms)
{
    struct watched_comm *late = w->watched;
    while (late && (late->queued == late->ended || now_ms - late->since_ms < w->options.timeout_ms))
        late = late->next;
    return late;
}

/* ---- reports; without the mutex ---- */

static void write_dump(const struct watchdog *w, const char *text)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s%d", w->options.dump_path, w->options.rank);
    FILE *file = fopen(path, "w");
    bool is_written = file && fputs(text, file) >= 0;
    is_written = file && fclose(file) == 0 && is_written; /* a full disk may show only here */
    log_warning(is_written ? "rank %d: its last collectives are in %s"
                           : "rank %d: its last collectives cannot be written to %s",
                w->options.rank, path);
}

static void log_lines(int rank, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        log_warning("rank %d: %s", rank, line);
}

/* Every rank writes the file, as people compare all ranks'. Only a rank with a late collective also
 * logs the records: on the others one line, the failure, is enough. */
static void dump(struct watchdog *w, bool is_late)
{
    auto_str struct str all, last;
    str_init(&all, DUMP_MAX_BYTES);
    str_init(&last, DUMP_MAX_BYTES);
    int64_t now_ms = clock_monotonic_ms();
    pthread_mutex_lock(&w->mutex);
    str_printf(&all, "%s\n", w->failure.msg);
    flight_recorder_print(w->recorder, w->options.records, now_ms, &all);
    flight_recorder_print(w->recorder, LOGGED_RECORDS, now_ms, &last);
    pthread_mutex_unlock(&w->mutex);
    if (is_late && last.length)
        log_lines(w->options.rank, last.text);
    if (w->options.dump_path[0])
        write_dump(w, str_text(&all));
}

/* ---- the first thread: checks ---- */

/* Sets the failure of a late collective. Releases the mutex while the ranks exchange
 * their reports. */
static void fail_late(struct watchdog *w, const struct watched_comm *late)
{
    struct desync_report report =
        desync_report_make(late->id, late->rank, late->size, late->world_ranks, late->queued);
    const struct flight_record *record = flight_recorder_find(w->recorder, late->id, late->ended);
    struct error err;
    auto_str struct str missing;
    str_init(&missing, 128);
    error_set(&err, ERR_TIMEOUT, "%s %" PRIu64 " of %s (%" PRId64 " bytes) did not end within %g s",
              record ? record->op : "collective", late->ended, late->id, record ? record->bytes : 0,
              (double)w->options.timeout_ms / 1000);
    pthread_mutex_unlock(&w->mutex);
    desync_report_exchange(&report, w->options.store, WATCHDOG_REPORT_MS, &missing);
    desync_report_free(&report);
    pthread_mutex_lock(&w->mutex);
    struct error whole;
    error_set(&whole, ERR_TIMEOUT, "%s%s", err.msg, str_text(&missing));
    set_failure(w, &whole);
}

static void *abort_all(void *arg)
{
    struct watchdog *w = arg;
    pthread_mutex_lock(&w->mutex);
    const struct watched_comm *first = w->watched; /* the list does not change during an abort */
    pthread_mutex_unlock(&w->mutex);
    w->options.abort(first);
    pthread_mutex_lock(&w->mutex);
    w->abort = ABORT_DONE;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

/* With the mutex held; releases it in between. */
static void handle_failure(struct watchdog *w)
{
    bool is_late = w->failure.code == ERR_TIMEOUT;
    pthread_mutex_unlock(&w->mutex);
    if (w->options.dumps)
        dump(w, is_late);
    pthread_mutex_lock(&w->mutex);
    if (!w->options.aborts) {
        log_warning("rank %d: %s; nothing is aborted (runtime.abort_collectives)", w->options.rank,
                    w->failure.msg);
        return;
    }
    w->abort = ABORT_RUNS;
    w->has_aborter = pthread_create(&w->aborter, NULL, abort_all, w) == 0;
    if (!w->has_aborter)
        w->abort = ABORT_DONE; /* nothing is aborted: options.stuck ends the process */
}

static void check_collectives(struct watchdog *w)
{
    struct error err;
    if (find_broken(w, &err)) {
        set_failure(w, &err);
        return;
    }
    const struct watched_comm *late = find_late(w, clock_monotonic_ms());
    if (late)
        fail_late(w, late);
}

static void send_heartbeat(const struct watchdog *w, int64_t wait_ms)
{
    if (w->options.heartbeat)
        w->options.heartbeat(w->options.heartbeat_ctx, wait_ms);
}

static void *run(void *arg)
{
    struct watchdog *w = arg;
    int64_t give_up_ms = INT64_MAX,
            next_heartbeat_ms = clock_monotonic_ms() + WATCHDOG_HEARTBEAT_MS;
    bool handled = false;
    pthread_mutex_lock(&w->mutex);
    while (!w->closing) {
        if (!w->failure.code)
            check_collectives(w);
        if (w->failure.code && !handled) {
            handled = true;
            if (w->options.aborts) {
                give_up_ms = clock_monotonic_ms() + w->options.grace_ms;
                send_heartbeat(w, w->options.grace_ms + LAST_WAIT_MS);
                next_heartbeat_ms = INT64_MAX;
            }
            handle_failure(w);
        }
        if (clock_monotonic_ms() >= next_heartbeat_ms) {
            send_heartbeat(w, w->options.heartbeat_interval_ms);
            next_heartbeat_ms = clock_monotonic_ms() + WATCHDOG_HEARTBEAT_MS;
        }
        if (clock_monotonic_ms() >= give_up_ms && w->options.stuck) {
            log_error("rank %d: did not end %g s after: %s", w->options.rank,
                      (double)w->options.grace_ms / 1000, w->failure.msg);
            w->options.stuck();
            give_up_ms = INT64_MAX;
        }
        if (!w->closing)
            cond_wait_until(&w->changed, &w->mutex, clock_monotonic_ms() + CHECK_MS);
    }
    /* 0 says that no more come. After a failure the deadline stays: the launcher then ends a
     * process that hangs. */
    if (next_heartbeat_ms != INT64_MAX)
        send_heartbeat(w, 0);
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

/* ---- the third thread: counts what has ended ---- */

/* After a failure nothing is recorded any more: the collective may have ended by the abort. */
static void note_ended(struct watchdog *w, struct watched_comm *one, uint64_t ended)
{
    int64_t now_ms = clock_monotonic_ms();
    if (w->failure.code && w->options.aborts)
        return;
    if (one->ended < ended) {
        one->since_ms = now_ms;
        collective_progress_end(w->options.progress, ended - one->ended);
    }
    for (; one->ended < ended; one->ended++)
        flight_recorder_end(w->recorder, one->id, one->ended, now_ms);
}

static void *follow(void *arg)
{
    struct watchdog *w = arg;
    pthread_mutex_lock(&w->mutex);
    while (!w->closing) {
        for (struct watched_comm *one = w->watched; one; one = one->next) {
            w->asks = one;
            pthread_mutex_unlock(&w->mutex);
            uint64_t ended = one->count_ended(one->ctx);
            pthread_mutex_lock(&w->mutex);
            w->asks = NULL;
            pthread_cond_broadcast(&w->asked);
            note_ended(w, one, ended);
        }
        int64_t next_ms = clock_monotonic_ms() + CHECK_MS;
        while (!w->closing && clock_monotonic_ms() < next_ms)
            cond_wait_until(&w->changed, &w->mutex, next_ms);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static void on_peer_lost(void *ctx, const char *reason)
{
    struct error err;
    error_set(&err, ERR_PEER, "%s", reason);
    watchdog_fail(ctx, &err);
}

/* ---- called by communicators ---- */

static void close_threads(struct watchdog *w)
{
    pthread_mutex_lock(&w->mutex);
    w->closing = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

/* Starts both threads, or none. */
static int start(struct watchdog *w)
{
    int failure = pthread_create(&w->thread, NULL, run, w);
    if (failure)
        return failure;
    failure = pthread_create(&w->follower, NULL, follow, w);
    if (failure) {
        close_threads(w);
        pthread_join(w->thread, NULL);
    }
    return failure;
}

static void destroy(struct watchdog *w)
{
    pthread_cond_destroy(&w->changed);
    pthread_cond_destroy(&w->asked);
    pthread_mutex_destroy(&w->mutex);
    flight_recorder_close(w->recorder);
    free(w);
}

int watchdog_open(const struct watchdog_options *options, struct watchdog **ret_watchdog,
                  struct error *err)
{
    struct watchdog *w = xcalloc(1, sizeof *w);
    w->options = *options;
    w->recorder = flight_recorder_open(options->records);
    pthread_mutex_init(&w->mutex, NULL);
    cond_init(&w->changed);
    cond_init(&w->asked);
    send_heartbeat(w, options->heartbeat_interval_ms);
    int failure = start(w);
    if (failure) {
        error_errno(err, failure, "threads to watch collectives with");
        send_heartbeat(w, 0);
        destroy(w);
        return -1;
    }
    w->lost = (struct store_watcher){.on_peer_lost = on_peer_lost, .ctx = w};
    store_watch(options->store, &w->lost);
    *ret_watchdog = w;
    return 0;
}

void watchdog_close(struct watchdog *w)
{
    if (!w)
        return;
    store_unwatch(w->options.store, &w->lost);
    close_threads(w);
    pthread_join(w->thread, NULL);
    pthread_join(w->follower, NULL);
    if (w->has_aborter)
        pthread_join(w->aborter, NULL);
    destroy(w);
}

/* With the mutex held. */
static int check(const struct watchdog *w, struct error *err)
{
    if (!w->failure.code || !w->options.aborts)
        return 0;
    *err = w->failure;
    return -1;
}

int watchdog_add(struct watchdog *w, struct watched_comm *one, struct error *err)
{
    pthread_mutex_lock(&w->mutex);
    int result = check(w, err);
    if (result == 0) {
        one->queued = one->ended = 0;
        one->next = w->watched;
        w->watched = one;
    }
    pthread_mutex_unlock(&w->mutex);
    return result;
}

bool watchdog_remove(struct watchdog *w, struct watched_comm *one)
{
    pthread_mutex_lock(&w->mutex);
    for (;;) { /* each wait releases the mutex, so every condition is checked again after it */
        bool is_coming = w->failure.code && w->options.aborts;
        if (w->abort == ABORT_RUNS || (is_coming && w->abort == ABORT_NOT_BEGUN))
            pthread_cond_wait(&w->changed, &w->mutex);
        else if (w->asks == one)
            pthread_cond_wait(&w->asked, &w->mutex);
        else
            break;
    }
    struct watched_comm **at = &w->watched;
    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    collective_progress_end(w->options.progress, one->queued - one->ended);
    bool was_aborted = w->abort == ABORT_DONE;
    pthread_mutex_unlock(&w->mutex);
    return was_aborted;
}

void watchdog_begin(struct watchdog *w, struct watched_comm *one, const char *op, int64_t bytes)
{
    int64_t now_ms = clock_monotonic_ms();
    pthread_mutex_lock(&w->mutex);
    if (one->queued == one->ended)
        one->since_ms = now_ms;
    uint64_t number = one->queued++;
    flight_recorder_add(w->recorder, op, one->id, number, bytes, now_ms);
    pthread_mutex_unlock(&w->mutex);
    if (w->options.logs_each)
        log_info("rank %d: %s %" PRIu64 " of %s, %" PRId64 " bytes", w->options.rank, op, number,
                 one->id, bytes);
}

void watchdog_fail(struct watchdog *w, const struct error *err)
{
    pthread_mutex_lock(&w->mutex);
    set_failure(w, err);
    pthread_mutex_unlock(&w->mutex);
}

int watchdog_check(struct watchdog *w, struct error *err)
{
    pthread_mutex_lock(&w->mutex);
    int result = check(w, err);
    pthread_mutex_unlock(&w->mutex);
    return result;
}

bool watchdog_has_failed(struct watchdog *w)
{
    struct error ignored;
    return watchdog_check(w, &ignored) < 0;
}
