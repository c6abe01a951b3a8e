#include "operator/board/board_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/contract.h"
#include "base/httpd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/page.h"
#include "operator/job/goodput.h"

enum {
    SERIES_KEPT_MS = 60 * 60 * 1000, /* of a job that has ended */
    POINTS_LEAST = 24,               /* a job keeps, however many there are */
    PIECES_LEAST = 12,
};

struct board_job *board_job_open(const char *key)
{
    struct board_job *job = xcalloc(1, sizeof *job);
    job->entry.key = job->key = xstrdup(key);
    job->unit = TRAINING_TOKENS_PER_S;
    return job;
}

static char *texts_of(const struct action *event)
{
    size_t reason_bytes = strlen(event->reason) + 1, message_bytes = strlen(event->message) + 1;
    char *texts = xmalloc(reason_bytes + message_bytes);
    memcpy(texts, event->reason, reason_bytes);
    memcpy(texts + reason_bytes, event->message, message_bytes);
    return texts;
}

static const char *message_of(const struct board_event *event)
{
    return event->texts + strlen(event->texts) + 1;
}

/* What went before was another job's. */
static void forget_past(struct board_job *job)
{
    series_free(&job->series);
    timeline_free(&job->timeline);
    for (int i = 0; i < job->event_count; i++)
        free(job->events[i].texts);
    job->event_count = 0;
    free(take(job->detail));
    free(take(job->uid));
}

void board_job_close(struct board_job *job)
{
    forget_past(job);
    free(job->row);
    free(job->more);
    free(job->key);
    free(job);
}

/* In which a process, and what lies before it, goes through them. */
static const struct timeline_kinds kinds = {
    .count = GOODPUT_KINDS,
    .order =
        (const int[GOODPUT_KINDS]){
            GOODPUT_SUSPENDED,
            GOODPUT_PENDING,
            GOODPUT_CONTAINER_START,
            GOODPUT_RECOVERY,
            TRAINING_SPENT_INITIALIZATION,
            TRAINING_SPENT_PEER_WAIT,
            TRAINING_SPENT_RESTORE,
            TRAINING_SPENT_LOST_WORK,
            TRAINING_SPENT_DATA,
            TRAINING_SPENT_STEP,
            TRAINING_SPENT_EVALUATION,
            TRAINING_SPENT_SAVE,
            TRAINING_SPENT_OTHER,
        },
    .name = goodput_kind_name,
};

static void add_sample(struct board_job *job, const struct training *training, int64_t now_ms)
{
    bool of_tokens = !isnan(training->tokens_per_s);
    if (!training->known || training->step < 0)
        return;
    if (of_tokens || !isnan(training->samples_per_s))
        job->unit = of_tokens ? TRAINING_TOKENS_PER_S : TRAINING_SAMPLES_PER_S;
    const struct series_point sample = {
        .time_s = (uint32_t)((training->progress_ms ? training->progress_ms : now_ms) / 1000),
        .step = training->step,
        .loss = (float)training->loss,
        .rate = (float)(of_tokens ? training->tokens_per_s : training->samples_per_s),
        .world_size = training->world_size < INT32_MAX ? (int32_t)training->world_size : 0};
    series_add(&job->series, &sample);
}

static int share_of(int all, int least, size_t jobs)
{
    size_t share =
        (size_t)all * BOARD_WHOLE_JOBS / (jobs > BOARD_WHOLE_JOBS ? jobs : BOARD_WHOLE_JOBS);
    return share > (size_t)least ? (int)share : least;
}

void board_job_share(struct board_job *job, size_t jobs)
{
    job->series.most = share_of(PAGE_POINTS_MAX, POINTS_LEAST, jobs);
    job->timeline.most = share_of(PAGE_SEGMENTS_MAX, PIECES_LEAST, jobs);
}

void board_job_rest(struct board_job *job, int64_t now_ms)
{
    if (job->completed_ms && now_ms - job->completed_ms > SERIES_KEPT_MS)
        series_free(&job->series);
}

void board_job_told(struct board_job *job, const struct job *told, const struct job_status *status,
                    int64_t now_ms)
{
    bool is_found = !job->uid || strcmp(job->uid, told->uid) != 0;
    if (is_found) {
        forget_past(job);
        job->uid = xstrdup(told->uid);
    }
    job->created_ms = told->created_ms;
    job->completed_ms = status->completion_ms;
    add_sample(job, &status->training, now_ms);
    if (status->goodput.known && is_found) /* none yet, or another operator saw it come */
        timeline_found(&job->timeline, &kinds, status->goodput.ms);
    else if (status->goodput.known)
        timeline_told(&job->timeline, &kinds, status->goodput.ms);
    board_job_rest(job, now_ms);
}

void board_job_event(struct board_job *job, const struct action *event, int64_t now_ms)
{
    struct board_event *newest = &job->events[0];
    /* a plan that failed is made again */
    if (job->event_count > 0 && strcmp(newest->texts, event->reason) == 0 &&
        strcmp(message_of(newest), event->message) == 0) {
        newest->wall_ms = now_ms;
        return;
    }
    if (job->event_count == BOARD_EVENTS_MAX)
        free(job->events[--job->event_count].texts);
    memmove(job->events + 1, job->events, (size_t)job->event_count * sizeof *job->events);
    job->event_count++;
    *newest = (struct board_event){
        .wall_ms = now_ms, .type = event->event_type, .texts = texts_of(event)};
}

void board_job_show(struct board_job *job, const char *row, const char *more)
{
    job->changed =
        job->changed || !job->row || strcmp(job->row, row) != 0 || strcmp(job->more, more) != 0;
    mem_keep_text(&job->row, row);
    mem_keep_text(&job->more, more);
}

void board_job_detail(struct board_job *job, char *detail, int64_t steady_ms)
{
    job->changed = job->changed || !job->detail || strcmp(job->detail, detail) != 0;
    free(job->detail);
    job->detail = detail;
    job->detail_ms = steady_ms;
}

void board_job_forget_old_detail(struct board_job *job, int64_t steady_ms)
{
    if (job->detail && steady_ms - job->detail_ms >= BOARD_DETAIL_KEPT_MS)
        free(take(job->detail));
}

static struct json *events_of(const struct board_job *job)
{
    static const char *const types[] = {[EVENT_NORMAL] = "Normal", [EVENT_WARNING] = "Warning"};
    struct json *list = json_new_array();
    for (int i = 0; i < job->event_count; i++) {
        const struct board_event *event = &job->events[i];
        json_append(list,
                    json_object_of("time", json_new_time(event->wall_ms), "type",
                                   json_new_text(types[event->type]), "reason",
                                   json_new_text(event->texts), "message",
                                   json_new_text_cut(message_of(event), PAGE_MESSAGE_BYTES), NULL));
    }
    return list;
}

/* Adds the members of an object to those of others. */
static void join(const char *object, struct str *out)
{
    size_t length = strlen(object);
    if (length <= strlen("{}"))
        return;
    if (out->length > 0)
        str_add(out, ",");
    str_add_bytes(out, object + 1, length - 2);
}

void board_job_print(const struct board_job *job, struct str *out)
{
    struct json *past =
        json_object_of("events", events_of(job), "series", series_json(&job->series, job->unit),
                       "timeline", timeline_json(&job->timeline, &kinds, job->created_ms), NULL);
    auto_free char *text = json_print(past, JSON_COMPACT);
    json_free(past);
    auto_str struct str members;
    str_init(&members, HTTPD_BODY_BYTES_MAX);
    join(job->row, &members);
    join(job->more, &members);
    join(text, &members);
    if (job->detail)
        join(job->detail, &members);
    str_printf(out, "{%s}\n", str_text(&members));
}
