#include "operator/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/exposition.h"
#include "base/mem.h"
#include "operator/job/names.h"

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
};

struct metrics {
    struct space *spaces; /* in order of first appearance */
    size_t count;
};

struct metrics *metrics_open(void)
{
    return xcalloc(1, sizeof(struct metrics));
}

void metrics_close(struct metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++)
        free(m->spaces[i].name);
    free(m->spaces);
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

void metrics_status_written(struct metrics *m, const char *namespace_,
                            const struct job_status *before, const struct job_status *after)
{
    struct space *space = space_of(m, namespace_);
    space->counts[COUNT_CREATED] += began(before, after, CONDITION_CREATED);
    space->counts[COUNT_SUCCESSFUL] += began(before, after, CONDITION_SUCCEEDED);
    bool failed = began(before, after, CONDITION_FAILED);
    space->counts[COUNT_FAILED] += failed;
    int32_t failures = after->history.failures - before->history.failures;
    if (failures > 0) /* the one that fails the job is not answered by a restart */
        space->counts[COUNT_RESTARTED] += (uint64_t)(failures - failed);
}

void metrics_job_deleted(struct metrics *m, const char *namespace_)
{
    space_of(m, namespace_)->counts[COUNT_DELETED]++;
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

void metrics_print(const struct metrics *m, const struct metrics_view *v, struct str *out)
{
    add_counters(m, out);
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
