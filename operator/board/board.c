#include "operator/board/board.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_text.h"
#include "base/mem.h"
#include "base/page.h"
#include "base/table.h"
#include "operator/board/board_job.h"
#include "operator/board/board_messages.h"
#include "operator/board/detail_view.h"
#include "operator/board/job_view.h"
#include "operator/job/condition.h"

enum { SWEEP_EVERY_MS = 10 * 60 * 1000 };

struct board {
    const struct clocks *clocks;
    /* Held while what follows is changed, which only the loop does, and while another thread reads
     * it. */
    pthread_mutex_t mutex;
    struct table jobs; /* of struct board_job */
    bool leading;
    char *leader;
    char *namespace_; /* of the operators */
    bool is_left_out; /* a job for which there was no room, so far as is known */
    size_t hidden;    /* jobs that there are and that are not here, for want of room */
    struct board_messages messages;
    int64_t swept_ms;
    char *looked_at[BOARD_DETAILS_MAX]; /* keys that board_looked_at has not told yet */
    int looked_at_count;
};

struct board *board_open(const struct clocks *clocks)
{
    struct board *b = xcalloc(1, sizeof *b);
    b->clocks = clocks;
    b->leader = xstrdup("");
    b->namespace_ = xstrdup("");
    pthread_mutex_init(&b->mutex, NULL);
    return b;
}

static void close_job(void *context, struct table_entry *entry)
{
    struct board *b = context;
    table_remove(&b->jobs, entry);
    board_job_close((struct board_job *)entry);
}

void board_forget_all(struct board *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->mutex);
    table_each(&b->jobs, close_job, b);
    b->is_left_out = false;
    board_messages_reload(&b->messages);
    pthread_mutex_unlock(&b->mutex);
}

void board_close(struct board *b)
{
    if (!b)
        return;
    board_forget_all(b);
    table_free(&b->jobs);
    str_free(&b->messages.gone);
    while (b->looked_at_count > 0)
        free(b->looked_at[--b->looked_at_count]);
    pthread_mutex_destroy(&b->mutex);
    free(b->leader);
    free(b->namespace_);
    free(b);
}

/* NULL: there is no room for it. With the mutex held. */
static struct board_job *job_of(struct board *b, const char *key)
{
    struct board_job *job = (struct board_job *)table_find(&b->jobs, key);
    if (job)
        return job;
    if (b->jobs.count >= BOARD_JOBS_MAX) {
        b->is_left_out = true;
        return NULL;
    }
    job = board_job_open(key);
    table_add(&b->jobs, &job->entry);
    return job;
}

/* What the plan makes of the status, which is written at once. */
static const struct job_status *newest_status(const struct snapshot *snapshot,
                                              const struct plan *plan)
{
    if (plan->count > 0 && plan->actions[0].kind == ACTION_SET_STATUS)
        return plan->actions[0].status;
    return snapshot->status;
}

static char *printed(struct json *value)
{
    char *text = json_print(value, JSON_COMPACT);
    json_free(value);
    return text;
}

void board_told(struct board *b, const char *key, const struct snapshot *snapshot,
                const struct plan *plan)
{
    if (!b)
        return;
    const struct job_status *status = newest_status(snapshot, plan);
    int64_t now_ms = b->clocks->wall_ms();
    pthread_mutex_lock(&b->mutex);
    struct board_job *job = job_of(b, key);
    if (job) {
        board_job_share(job, b->jobs.count);
        board_job_told(job, snapshot->job, status, now_ms);
        for (size_t i = 0; i < plan->count; i++)
            if (plan->actions[i].kind == ACTION_EVENT)
                board_job_event(job, &plan->actions[i], now_ms);
    }
    pthread_mutex_unlock(&b->mutex);
    if (!job)
        return;
    /* nobody else changes the job, so that its texts are made without the mutex */
    auto_free char *row = printed(job_view_row(snapshot, status, &job->series));
    auto_free char *more = printed(job_view_more(snapshot, status));
    pthread_mutex_lock(&b->mutex);
    board_job_show(job, row, more);
    pthread_mutex_unlock(&b->mutex);
}

void board_forget(struct board *b, const char *key)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->mutex);
    struct table_entry *entry = table_find(&b->jobs, key);
    if (entry) {
        board_messages_gone(&b->messages, key);
        close_job(b, entry);
    }
    pthread_mutex_unlock(&b->mutex);
}

/* A job that is not here may be about to come, or one that is here may be about to go: only where
 * one was left out is it hidden. With the mutex held. */
static void count_hidden(struct board *b, size_t jobs)
{
    size_t shown = b->jobs.count;
    if (jobs <= shown && shown < BOARD_JOBS_MAX)
        b->is_left_out = false;
    size_t hidden = b->is_left_out && jobs > shown ? jobs - shown : 0;
    if ((hidden == 0) != (b->hidden == 0)) /* no message tells of it */
        board_messages_reload(&b->messages);
    b->hidden = hidden;
}

void board_set_operator(struct board *b, bool leading, const char *leader, size_t jobs)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->mutex);
    if (leading != b->leading || strcmp(leader, b->leader) != 0) {
        free(b->leader);
        b->leader = xstrdup(leader);
        b->leading = leading;
        board_messages_reload(&b->messages);
    }
    count_hidden(b, jobs);
    pthread_mutex_unlock(&b->mutex);
}

void board_set_namespace(struct board *b, const char *namespace_)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->mutex);
    free(b->namespace_);
    b->namespace_ = xstrdup(namespace_);
    pthread_mutex_unlock(&b->mutex);
}

/* ---- details ---- */

char *board_looked_at(struct board *b)
{
    if (!b)
        return NULL;
    pthread_mutex_lock(&b->mutex);
    char *key = b->looked_at_count > 0 ? b->looked_at[--b->looked_at_count] : NULL;
    pthread_mutex_unlock(&b->mutex);
    return key;
}

struct details {
    int count;
    struct board_job *oldest;
};

static void count_detail(void *context, struct table_entry *entry)
{
    struct details *details = context;
    struct board_job *job = (struct board_job *)entry;
    if (!job->detail)
        return;
    details->count++;
    if (!details->oldest || job->detail_ms < details->oldest->detail_ms)
        details->oldest = job;
}

/* There is room for one more. With the mutex held. */
static void make_room(struct board *b)
{
    struct details details = {.count = 0};
    table_each(&b->jobs, count_detail, &details);
    if (details.count >= BOARD_DETAILS_MAX)
        free(take(details.oldest->detail));
}

void board_detail(struct board *b, const char *key, const char *text, size_t bytes)
{
    struct json *view = b ? detail_view(text, bytes) : NULL;
    if (!view)
        return;
    auto_free char *detail = printed(view);
    pthread_mutex_lock(&b->mutex);
    struct board_job *job = (struct board_job *)table_find(&b->jobs, key);
    if (job && !job->detail)
        make_room(b);
    if (job)
        board_job_detail(job, take(detail), b->clocks->steady_ms());
    pthread_mutex_unlock(&b->mutex);
}

/* With the mutex held. */
static void look_at(struct board *b, struct board_job *job)
{
    int64_t now_ms = b->clocks->steady_ms();
    board_job_forget_old_detail(job, now_ms);
    bool is_due = !job->looked_at_ms || now_ms - job->looked_at_ms >= BOARD_DETAIL_EVERY_MS;
    if (!is_due || job->completed_ms || b->looked_at_count == BOARD_DETAILS_MAX)
        return;
    job->looked_at_ms = now_ms;
    b->looked_at[b->looked_at_count++] = xstrdup(job->key);
}

/* ---- what has changed ---- */

static void add_changed(void *context, struct table_entry *entry)
{
    struct board *b = context;
    struct board_job *job = (struct board_job *)entry;
    if (!job->changed)
        return;
    job->changed = false;
    board_messages_add(&b->messages, job->row);
}

static void sweep(void *context, struct table_entry *entry)
{
    board_job_rest((struct board_job *)entry, *(const int64_t *)context);
}

void board_send(struct board *b, bool heard,
                void (*send)(void *context, const char *text, size_t bytes), void *context)
{
    if (!b)
        return;
    int64_t now_ms = b->clocks->steady_ms(), wall_ms = b->clocks->wall_ms();
    pthread_mutex_lock(&b->mutex);
    board_messages_begin(&b->messages, heard);
    table_each(&b->jobs, add_changed, b);
    board_messages_end(&b->messages, now_ms, send, context);
    if (now_ms >= b->swept_ms + SWEEP_EVERY_MS) {
        table_each(&b->jobs, sweep, &wall_ms);
        b->swept_ms = now_ms;
    }
    pthread_mutex_unlock(&b->mutex);
}

/* ---- answers ---- */

static void add_row(void *context, struct table_entry *entry)
{
    struct str *body = context;
    const struct board_job *job = (const struct board_job *)entry;
    if (!job->row)
        return;
    if (body->text[body->length - 1] != '[')
        str_add(body, ",");
    str_add(body, job->row);
}

static void add_all(struct board *b, struct str *body)
{
    char now[32];
    clock_format_rfc3339(b->clocks->wall_ms(), now, sizeof now);
    str_printf(
        body, "{\"server\":\"operator\",\"leading\":%s,\"leader\":", b->leading ? "true" : "false");
    json_text(b->leader, body);
    str_add(body, ",\"namespace\":");
    json_text(b->namespace_, body);
    str_printf(body, ",\"version\":%lld,\"time\":\"%s\",\"hidden\":%zu,\"jobs\":[",
               (long long)b->messages.version, now, b->leading ? b->hidden : 0);
    table_each(&b->jobs, add_row, body);
    str_add(body, "]}\n");
}

bool board_answer(void *context, const char *path, struct str *body)
{
    struct board *b = context;
    bool is_found = true;
    const char *key = path + strlen(PAGE_JOBS_PATH);
    pthread_mutex_lock(&b->mutex);
    if (*key) {
        struct board_job *job = (struct board_job *)table_find(&b->jobs, key + 1);
        is_found = job && job->row;
        if (is_found) {
            look_at(b, job);
            board_job_print(job, body);
        }
    } else {
        add_all(b, body);
    }
    pthread_mutex_unlock(&b->mutex);
    return is_found;
}
