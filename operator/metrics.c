#include "operator/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/exposition.h"
#include "base/mem.h"
#include "base/table.h"
#include "operator/job/history.h"
#include "operator/job/names.h"
#include "operator/job/shown_time.h"

enum count {
    COUNT_CREATED,
    COUNT_DELETED,
    COUNT_SUCCESSFUL,
    COUNT_FAILED,
    COUNT_RESTARTED,
    COUNTS
};

/* The training operator's names and labels, so that dashboards made for it go on working. */
static const struct {
    const char *name, *help;
} counters[COUNTS] = {
    [COUNT_CREATED] = {"training_operator_jobs_created_total", "Jobs created."},
    [COUNT_DELETED] = {"training_operator_jobs_deleted_total",
                       "Jobs deleted because their ttlSecondsAfterFinished had passed."},
    [COUNT_SUCCESSFUL] = {"training_operator_jobs_successful_total", "Jobs that succeeded."},
    [COUNT_FAILED] = {"training_operator_jobs_failed_total", "Jobs that failed."},
    [COUNT_RESTARTED] = {"training_operator_jobs_restarted_total",
                         "Replica failures that led to a restart."},
};

struct space {
    char *name;
    uint64_t counts[COUNTS];
    int64_t spent_ms[GOODPUT_KINDS]; /* by jobs */
};

struct node {
    char *name;
    uint64_t left;
};

struct work {
    struct table_entry entry;
    char *key; /* "namespace/name" */
    char *uid; /* of the job: another one may have taken its name */
    struct shown_time time;
};

struct metrics {
    /* Held while what follows is changed, which one thread does, and while another reads it. */
    pthread_mutex_t mutex;
    struct space *spaces; /* in order of first appearance */
    size_t count;
    struct node *nodes; /* likewise */
    size_t node_count;
    struct table by_key; /* of struct work */
    struct work **jobs;  /* [by_key.count]: those at work, in order of first appearance */
    bool has_told;       /* that a job gets no series */
};

struct metrics *metrics_open(void)
{
    struct metrics *m = xcalloc(1, sizeof *m);
    pthread_mutex_init(&m->mutex, NULL);
    return m;
}

void metrics_close(struct metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++)
        free(m->spaces[i].name);
    free(m->spaces);
    for (size_t i = 0; i < m->node_count; i++)
        free(m->nodes[i].name);
    free(m->nodes);
    metrics_forget_all_jobs(m);
    free(m->jobs);
    table_free(&m->by_key);
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

static struct space *space_of(struct metrics *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (!strcmp(m->spaces[i].name, name))
            return &m->spaces[i];
    /* A counter may not disappear, so a namespace's row is for good. Past the limit all further
     * ones share a row: else their number would grow without end. */
    if (m->count == METRICS_MAX_NAMESPACES)
        name = METRICS_OTHERS;
    else if (m->count > METRICS_MAX_NAMESPACES)
        return &m->spaces[METRICS_MAX_NAMESPACES];
    m->spaces = xrealloc(m->spaces, (m->count + 1) * sizeof *m->spaces);
    m->spaces[m->count] = (struct space){.name = xstrdup(name)};
    return &m->spaces[m->count++];
}

static struct space *space_of_key(struct metrics *m, const char *key)
{
    auto_free char *name = strndup(key, strcspn(key, "/"));
    return space_of(m, name);
}

static bool holds(const struct job_status *status, enum condition_type type)
{
    for (size_t i = 0; i < status->condition_count; i++)
        if (status->conditions[i].type == type)
            return status->conditions[i].status;
    return false;
}

static bool began(const struct job_status *before, const struct job_status *after,
                  enum condition_type type)
{
    return holds(after, type) && !holds(before, type);
}

static size_t find_node(const struct metrics *m, const char *name)
{
    size_t i = 0;
    while (i < m->node_count && strcmp(m->nodes[i].name, name) != 0)
        i++;
    return i;
}

static void node_left(struct metrics *m, const char *name)
{
    size_t i = find_node(m, name);
    if (i == m->node_count && i >= METRICS_MAX_NODES)
        i = find_node(m, name = METRICS_OTHERS);
    if (i == m->node_count) {
        m->nodes = xrealloc(m->nodes, (i + 1) * sizeof *m->nodes);
        m->nodes[m->node_count++] = (struct node){.name = xstrdup(name)};
    }
    m->nodes[i].left++;
}

static void count_nodes_left(struct metrics *m, const struct job_status *before,
                             const struct job_status *after)
{
    for (size_t i = 0; i < after->history.avoided_count; i++)
        if (!history_avoided(&before->history, after->history.avoided[i].name))
            node_left(m, after->history.avoided[i].name);
}

static struct work *find_work(struct metrics *m, const char *key)
{
    return (struct work *)table_find(&m->by_key, key);
}

static void free_work(struct metrics *m, struct work *work)
{
    table_remove(&m->by_key, &work->entry);
    free(work->key);
    free(work->uid);
    free(work);
}

/* NULL-safe. */
static void forget_work(struct metrics *m, struct work *work)
{
    if (!work)
        return;
    size_t i = 0;
    while (m->jobs[i] != work)
        i++;
    memmove(m->jobs + i, m->jobs + i + 1, (m->by_key.count - i - 1) * sizeof *m->jobs);
    free_work(m, work);
}

void metrics_forget_job(struct metrics *m, const char *key)
{
    pthread_mutex_lock(&m->mutex);
    forget_work(m, find_work(m, key));
    pthread_mutex_unlock(&m->mutex);
}

void metrics_forget_all_jobs(struct metrics *m)
{
    pthread_mutex_lock(&m->mutex);
    while (m->by_key.count > 0)
        free_work(m, m->jobs[m->by_key.count - 1]);
    pthread_mutex_unlock(&m->mutex);
}

static bool is_over(const struct job_status *status)
{
    return holds(status, CONDITION_SUCCEEDED) || holds(status, CONDITION_FAILED);
}

static void add_work(struct metrics *m, const char *key, const char *uid,
                     const struct shown_time *time)
{
    struct work *work = xcalloc(1, sizeof *work);
    work->entry.key = work->key = xstrdup(key);
    work->uid = xstrdup(uid);
    work->time = *time;
    m->jobs = xrealloc(m->jobs, (m->by_key.count + 1) * sizeof(struct work *));
    m->jobs[m->by_key.count] = work;
    table_add(&m->by_key, &work->entry);
}

static bool job_seen(struct metrics *m, const char *key, const struct job *job,
                     const struct job_status *status, int64_t now_ms)
{
    struct work *work = find_work(m, key);
    if (work && (is_over(status) || strcmp(work->uid, job->uid) != 0)) {
        forget_work(m, work); /* nobody wrote its end here, or told of it */
        work = NULL;
    }
    if (work || is_over(status))
        return false;
    const struct shown_time time = shown_time_open(&status->goodput, job->created_ms, now_ms);
    add_work(m, key, job->uid, &time);
    bool is_first_left_out = m->by_key.count > METRICS_MAX_JOBS && !m->has_told;
    m->has_told |= is_first_left_out;
    return is_first_left_out;
}

bool metrics_job_seen(struct metrics *m, const char *key, const struct job *job,
                      const struct job_status *status, int64_t now_ms)
{
    pthread_mutex_lock(&m->mutex);
    bool is_first_left_out = job_seen(m, key, job, status, now_ms);
    pthread_mutex_unlock(&m->mutex);
    return is_first_left_out;
}

void metrics_status_written(struct metrics *m, const char *key, const struct job_status *before,
                            const struct job_status *after)
{
    pthread_mutex_lock(&m->mutex);
    struct space *space = space_of_key(m, key);
    space->counts[COUNT_CREATED] += began(before, after, CONDITION_CREATED);
    space->counts[COUNT_SUCCESSFUL] += began(before, after, CONDITION_SUCCEEDED);
    bool failed = began(before, after, CONDITION_FAILED);
    space->counts[COUNT_FAILED] += failed;
    int32_t failures = after->history.failures - before->history.failures;
    if (failures > 0) /* the one that fails the job is not answered by a restart */
        space->counts[COUNT_RESTARTED] += (uint64_t)(failures - failed);
    count_nodes_left(m, before, after);
    struct work *work = find_work(m, key);
    if (work) /* known from here on: what went by before was told of no one yet */
        shown_time_follow(&work->time, &after->goodput, space->spent_ms);
    if (is_over(after))
        forget_work(m, work);
    pthread_mutex_unlock(&m->mutex);
}

void metrics_go_on(struct metrics *m, int64_t now_ms)
{
    pthread_mutex_lock(&m->mutex);
    for (size_t i = 0; i < m->by_key.count; i++)
        shown_time_go_on(&m->jobs[i]->time, now_ms, space_of_key(m, m->jobs[i]->key)->spent_ms);
    pthread_mutex_unlock(&m->mutex);
}

void metrics_job_deleted(struct metrics *m, const char *namespace_)
{
    pthread_mutex_lock(&m->mutex);
    space_of(m, namespace_)->counts[COUNT_DELETED]++;
    pthread_mutex_unlock(&m->mutex);
}

static void add_value(const char *kind, const char *name, const char *help, int64_t value,
                      struct str *out)
{
    exposition_head(name, help, kind, out);
    str_printf(out, "%s %" PRId64 "\n", name, value);
}

static void add_counters(const struct metrics *m, struct str *out)
{
    for (int i = 0; i < COUNTS; i++) {
        exposition_head(counters[i].name, counters[i].help, "counter", out);
        for (size_t s = 0; s < m->count; s++) /* names of namespaces need no escaping */
            str_printf(out, "%s{job_namespace=\"%s\",framework=\"pytorch\"} %" PRIu64 "\n",
                       counters[i].name, m->spaces[s].name, m->spaces[s].counts[i]);
    }
}

static void add_seconds(const struct metrics *m, struct str *out)
{
    const char *name = "shoal_operator_training_seconds_total";
    exposition_head(name, "Time of jobs, by what it was spent on.", "counter", out);
    for (size_t s = 0; s < m->count; s++)
        for (int k = 0; k < GOODPUT_KINDS; k++)
            if (m->spaces[s].spent_ms[k])
                str_printf(out, "%s{job_namespace=\"%s\",kind=\"%s\"} %" PRId64 ".%03d\n", name,
                           m->spaces[s].name, goodput_kind_name(k), m->spaces[s].spent_ms[k] / 1000,
                           (int)(m->spaces[s].spent_ms[k] % 1000));
}

static void add_nodes(const struct metrics *m, struct str *out)
{
    const char *name = "shoal_operator_nodes_left_total";
    exposition_head(name, "Jobs that left a node whose hardware is bad, by node.", "counter", out);
    for (size_t i = 0; i < m->node_count; i++)
        str_printf(out, "%s{node=\"%s\"} %" PRIu64 "\n", name, m->nodes[i].name, m->nodes[i].left);
}

/* The time of a job, as it is printed. */
struct job_time {
    const char *key;
    int64_t ms[GOODPUT_KINDS];
};

/* Those that have series; [shown]. */
static struct job_time *copy_jobs(const struct metrics *m, size_t shown, struct arena *arena)
{
    struct job_time *jobs = arena_array(arena, struct job_time, shown);
    for (size_t i = 0; i < shown; i++) {
        jobs[i].key = arena_strdup(arena, m->jobs[i]->key);
        memcpy(jobs[i].ms, m->jobs[i]->time.ms, sizeof jobs[i].ms);
    }
    return jobs;
}

static void add_jobs(const struct job_time *jobs, size_t shown, size_t left_out, struct str *out)
{
    const char *name = "shoal_operator_job_seconds_total";
    exposition_head(name, "Time of a job at work since its creation, by what it was spent on.",
                    "counter", out);
    for (size_t i = 0; i < shown; i++) {
        const char *key = jobs[i].key;
        int space = (int)strcspn(key, "/");
        for (int k = 0; k < GOODPUT_KINDS; k++)
            if (jobs[i].ms[k])
                str_printf(out,
                           "%s{job_namespace=\"%.*s\",job_name=\"%s\",kind=\"%s\"} %" PRId64
                           ".%03d\n",
                           name, space, key, key + space + 1, goodput_kind_name(k),
                           jobs[i].ms[k] / 1000, (int)(jobs[i].ms[k] % 1000));
    }
    add_value("gauge", "shoal_operator_jobs_without_series",
              "Jobs at work beyond those that shoal_operator_job_seconds_total tells of.",
              (int64_t)left_out, out);
}

/* Of 1,000 jobs there are some 9,000 lines: they are printed from a copy, as the loop waits for the
 * mutex. */
static void add_guarded(struct metrics *m, struct str *out)
{
    auto_arena struct arena *arena = arena_open();
    pthread_mutex_lock(&m->mutex);
    add_counters(m, out);
    add_seconds(m, out);
    add_nodes(m, out);
    size_t count = m->by_key.count, shown = count < METRICS_MAX_JOBS ? count : METRICS_MAX_JOBS;
    const struct job_time *jobs = copy_jobs(m, shown, arena);
    pthread_mutex_unlock(&m->mutex);
    add_jobs(jobs, shown, count - shown, out);
}

void metrics_print(struct metrics *m, const struct metrics_view *v, struct str *out)
{
    add_guarded(m, out);
#define ADD_VALUE(type, field, kind, name, help)                                                   \
    add_value(kind, name, help, (int64_t)v->field, out);
    METRICS_VALUES(ADD_VALUE)
#undef ADD_VALUE
    exposition_head("shoal_operator_jobs_in_state",
                    "PyTorchJobs in the cache, by their latest condition.", "gauge", out);
    for (enum condition_type state = 0; state < CONDITION_TYPES; state++)
        str_printf(out, "shoal_operator_jobs_in_state{state=\"%s\"} %zu\n", names_condition(state),
                   v->jobs_in_state[state]);
    exposition_head("shoal_operator_watch_failing",
                    "1 if objects of this kind cannot be listed or watched, else 0.", "gauge", out);
    for (size_t i = 0; i < v->watch_count; i++)
        str_printf(out, "shoal_operator_watch_failing{kind=\"%s\"} %d\n", v->watches[i].kind,
                   v->watches[i].failing);
    if (v->resident_bytes >= 0)
        add_value("gauge", "process_resident_memory_bytes", "Resident memory size in bytes.",
                  v->resident_bytes, out);
    exposition_head("process_start_time_seconds",
                    "Start time of the process since unix epoch in seconds.", "gauge", out);
    str_printf(out, "process_start_time_seconds %" PRId64 ".%03d\n", v->start_ms / 1000,
               (int)(v->start_ms % 1000));
}
