#include "cli/story_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/goodput_table.h"
#include "cli/layout.h"

enum { TABLE_MAX_BYTES = 4096 };

void story_add_goodput(const struct goodput *goodput, struct str *out)
{
    auto_str struct str table;
    str_init(&table, TABLE_MAX_BYTES);
    goodput_table(goodput, &table);
    if (table.length)
        str_printf(out, "\n%s", str_text(&table));
}

/* ---- what happened ---- */

/* Events are forgotten after an hour, conditions stay: one of them that no event tells of. */
static bool is_told(const struct story *story, const struct condition *condition)
{
    for (size_t i = 0; i < story->event_count; i++)
        if (!strcmp(story->events[i].reason, condition->reason))
            return true;
    return false;
}

static int compare_events(const void *a, const void *b)
{
    const struct event_facts *x = a, *y = b;
    if (x->time_ms != y->time_ms)
        return x->time_ms > y->time_ms ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static size_t gather(const struct story *story, struct event_facts *all)
{
    const struct job_facts *job = story->job;
    size_t count = 0;
    for (size_t i = 0; i < job->condition_count; i++) {
        const struct condition *condition = &job->conditions[i];
        if (!condition->status || is_told(story, condition))
            continue;
        all[count] = (struct event_facts){.time_ms = condition->transition_ms,
                                          .count = 1,
                                          .reason = condition->reason,
                                          .message = condition->message};
        count++;
    }
    for (size_t i = 0; i < story->event_count; i++)
        all[count++] = story->events[i];
    for (size_t i = 0; i < count; i++)
        all[i].order = i;
    if (count)
        qsort(all, count, sizeof *all, compare_events);
    return count;
}

void story_add_events(const struct story *story, int columns, int64_t now_ms, struct str *out)
{
    auto_arena struct arena *arena = arena_open();
    struct event_facts *all = arena_array(arena, struct event_facts,
                                          story->event_count + story->job->condition_count + 1);
    size_t count = gather(story, all);
    if (story->events_missing || count > 0)
        str_add(out, "\n");
    if (story->events_missing)
        layout_wrap(story->events_missing, 0, 2, columns, out);
    if (count > 0)
        str_add(out, "What happened:\n");
    for (size_t i = 0; i < count; i++) {
        char age[TRAINING_TEXT_BYTES];
        training_duration_text((now_ms - all[i].time_ms) / 1000, age);
        const char *times =
            all[i].count > 1 ? arena_printf(arena, " (%" PRId64 " times)", all[i].count) : "";
        const char *text = arena_printf(arena, "%s%s: %s", all[i].reason, times, all[i].message);
        const char *when = arena_printf(arena, "%8s ago  ", age);
        str_add(out, when);
        layout_wrap(text, (int)strlen(when), columns > 60 ? (int)strlen(when) : 4, columns, out);
    }
}

/* ---- what to look at next ---- */

static const struct pod_facts *first_that(const struct story *story, bool failed)
{
    for (size_t i = 0; i < story->pod_count; i++)
        if (failed ? story->pods[i].has_failed : story->pods[i].is_stuck)
            return &story->pods[i];
    return NULL;
}

/* As a shell takes it: what is in a name of a file must not act there. */
static void add_quoted(const char *path, struct str *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+,:@%";
    if (path[strspn(path, plain)] == '\0') {
        str_add(out, path);
        return;
    }
    str_add(out, "'");
    for (; *path; path++)
        if (*path == '\'')
            str_add(out, "'\\''");
        else
            str_add_bytes(out, path, 1);
    str_add(out, "'");
}

/* The log of a process of this machine. */
static void add_next_local(const struct story *story, struct str *out)
{
    const struct pod_facts *failed = first_that(story, true), *stuck = first_that(story, false),
                           *leader = story_leader(story);
    const struct pod_facts *pod = failed ? failed : stuck ? stuck : leader;
    bool goes_on = pod == leader && !job_facts_finished(story->job);
    if (!pod || !pod->log) {
        str_add(out, "\nNext: shoal top --local\n");
        return;
    }
    str_printf(out, "\nNext: tail -n 50 %s", goes_on ? "-f " : "");
    add_quoted(pod->log, out);
    str_add(out, "\n");
}

void story_add_next(const struct story *story, struct str *out)
{
    if (story->is_local) {
        add_next_local(story, out);
        return;
    }
    const struct job_facts *job = story->job;
    const struct pod_facts *failed = first_that(story, true), *stuck = first_that(story, false),
                           *leader = story_leader(story);
    const struct condition *last = job_facts_condition(job);
    str_add(out, "\nNext: ");
    if (!last)
        str_add(out, "no operator has looked at it yet; is one there? kubectl get pods -A -l "
                     "app.kubernetes.io/name=shoal\n");
    else if (last->type == CONDITION_SUSPENDED && last->status)
        str_printf(out,
                   "resume it: kubectl patch pytorchjob -n %s %s --type merge -p "
                   "'{\"spec\":{\"runPolicy\":{\"suspend\":false}}}'\n",
                   job->namespace_, job->name);
    else if (failed && failed->has_run)
        str_printf(out, "kubectl logs -n %s %s -c pytorch%s\n", job->namespace_, failed->name,
                   strcmp(failed->state, "Running") ? "" : " --previous");
    else if (stuck)
        str_printf(out, "kubectl describe pod -n %s %s\n", job->namespace_, stuck->name);
    else if (leader && leader->has_run)
        str_printf(out, "kubectl logs -n %s %s -c pytorch%s\n", job->namespace_, leader->name,
                   job_facts_finished(job) ? "" : " -f");
    else
        str_printf(out, "kubectl describe pytorchjob -n %s %s\n", job->namespace_, job->name);
}
