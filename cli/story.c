#include "cli/story.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/layout.h"
#include "cli/story_internal.h"
#include "operator/job/names.h"

enum { LABEL_COLUMNS = 14, FIELD_MAX_BYTES = 4096, BAR_COLUMNS = 50 };

/* ---- its head ---- */

static void add_head(const struct story *story, int columns, int64_t now_ms, struct str *out)
{
    const struct job_facts *job = story->job;
    const struct condition *last = job_facts_condition(job);
    auto_str struct str head;
    char since[TRAINING_TEXT_BYTES], all[TRAINING_TEXT_BYTES];
    str_init(&head, FIELD_MAX_BYTES);
    str_printf(&head, "%s in namespace %s: %s", job->name, job->namespace_, job->state);
    int64_t since_ms = last ? last->transition_ms : job->created_ms;
    training_duration_text((now_ms - since_ms) / 1000, since);
    if (job_facts_finished(job) && job->completion_ms && job->created_ms) {
        training_duration_text((job->completion_ms - job->created_ms) / 1000, all);
        str_printf(&head, " %s ago, %s after its creation", since, all);
    } else if (since_ms) {
        str_printf(&head, " for %s", since);
    }
    layout_wrap(str_text(&head), 0, 2, columns, out);
    if (last && *last->message) {
        str_add(out, "  ");
        layout_wrap(last->message, 2, 2, columns, out);
    }
    str_add(out, "\n");
}

void story_add_field(const char *label, const char *text, int columns, struct str *out)
{
    str_printf(out, "  %-*s", LABEL_COLUMNS - 2, label);
    layout_wrap(text, LABEL_COLUMNS, LABEL_COLUMNS, columns, out);
}

/* ---- how it goes ---- */

/* ", " between what a field says. */
__attribute__((format(printf, 2, 3))) static void add_part(struct str *field, const char *format,
                                                           ...)
{
    va_list args;
    auto_free char *text = NULL;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length > 0)
        str_printf(field, "%s%s", field->length ? ", " : "", text);
}

static void add_bar(const struct training *t, int columns, struct str *out)
{
    int room = layout_room(columns) - LABEL_COLUMNS - (int)strlen("[] 100%");
    int width = room < BAR_COLUMNS ? room : BAR_COLUMNS;
    if (t->step < 0 || t->steps <= 0 || width < 4)
        return;
    double done = (double)(t->step < t->steps ? t->step : t->steps) / (double)t->steps;
    str_printf(out, "%*s", LABEL_COLUMNS, "");
    layout_bar(done, width, out);
    str_printf(out, " %3d%%\n", (int)(done * 100));
}

static void add_training(const struct training *t, int columns, int64_t now_ms, struct str *out)
{
    char progress[TRAINING_TEXT_BYTES], text[TRAINING_TEXT_BYTES];
    auto_str struct str field;
    str_init(&field, FIELD_MAX_BYTES);
    if (!t->known)
        return;
    training_progress_text(t, progress);
    if (*progress)
        add_part(&field, "step %s", progress);
    if (!isnan(t->epoch))
        add_part(&field, "epoch %.4g", t->epoch);
    if (!isnan(t->loss))
        add_part(&field, "loss %.5g", t->loss);
    if (!isnan(t->eval_loss))
        add_part(&field, "eval loss %.5g", t->eval_loss);
    if (t->world_size > 0)
        add_part(&field, "%" PRId64 " ranks", t->world_size);
    story_add_field("training", str_text(&field), columns, out);
    add_bar(t, columns, out);
    str_clear(&field);
    if (!isnan(t->tokens_per_s))
        add_part(&field, "%.0f tokens/s", t->tokens_per_s);
    if (!isnan(t->samples_per_s))
        add_part(&field, "%.4g samples/s", t->samples_per_s);
    if (!isnan(t->mfu))
        add_part(&field, "MFU %.1f%%", t->mfu * 100);
    if (t->seconds_left >= 0) {
        training_left_text(t, text);
        add_part(&field, "%s left", text);
    }
    if (t->progress_ms) {
        training_duration_text((now_ms - t->progress_ms) / 1000, text);
        add_part(&field, "last progress %s ago", text);
    }
    if (field.length)
        story_add_field("speed", str_text(&field), columns, out);
    if (t->checkpoint_step < 0)
        return;
    str_clear(&field);
    add_part(&field, "step %" PRId64, t->checkpoint_step);
    if (t->checkpoint_ms) {
        training_duration_text((now_ms - t->checkpoint_ms) / 1000, text);
        add_part(&field, "%s ago", text);
    }
    story_add_field("checkpoint", str_text(&field), columns, out);
}

static void add_restarts(const struct job_facts *job, int columns, struct str *out)
{
    auto_str struct str field;
    str_init(&field, FIELD_MAX_BYTES);
    int64_t after_failures = job->restarts - job->rank_restarts;
    if (job->limit >= 0)
        str_printf(&field, "%" PRId64 " of %" PRId64 " that backoffLimit allows", after_failures,
                   job->limit);
    else
        str_printf(&field, "%" PRId64 " after failures", after_failures);
    if (job->rank_restarts > 0)
        str_printf(&field, ", and %" PRId64 " of ranks in their containers", job->rank_restarts);
    story_add_field("restarts", str_text(&field), columns, out);
    if (*job->avoided)
        story_add_field("bad nodes", job->avoided, columns, out);
}

static void add_replica_counts(const struct job_facts *job, int columns, struct str *out)
{
    auto_str struct str field;
    str_init(&field, FIELD_MAX_BYTES);
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (job->replicas[type] > 0)
            add_part(&field, "%" PRId64 " %s", job->replicas[type], names_replica_type(type));
    add_part(&field, "%" PRId64 " active", job->active);
    if (job->gpus > 0)
        add_part(&field, "%" PRId64 " GPU%s", job->gpus, job->gpus == 1 ? "" : "s");
    story_add_field("replicas", str_text(&field), columns, out);
}

/* ---- who waits for what ---- */

const struct pod_facts *story_leader(const struct story *story)
{
    return story->pod_count > 0 && story->pods[0].index == 0 ? &story->pods[0] : NULL;
}

/* What stands below a pod's row. Workers look for their master before anything of theirs runs. */
static const char *reason_of(const struct story *story, const struct pod_facts *pod,
                             struct arena *arena)
{
    const struct pod_facts *leader = story_leader(story);
    if (*pod->reason || *pod->message)
        return arena_printf(arena, "%s%s%s", pod->reason, *pod->reason && *pod->message ? ": " : "",
                            pod->message);
    bool waits = leader && leader != pod && leader->type == REPLICA_MASTER && !leader->has_run;
    if (strcmp(pod->state, "Pending") == 0 && *pod->node && waits)
        return arena_printf(arena, "waits for %s, which does not run yet", leader->name);
    return "";
}

static const char *count_text(struct arena *arena, int64_t number)
{
    return arena_printf(arena, "%" PRId64, number);
}

static void add_pods(const struct story *story, int columns, int64_t now_ms, struct str *out)
{
    static const struct layout_column titles[] = {
        {"REPLICA", false, 0}, {"STATE", false, 0}, {"NODE", false, 3},
        {"RESTARTS", true, 2}, {"AGE", true, 1},
    };
    auto_arena struct arena *arena = arena_open();
    const char **cells =
        arena_array(arena, const char *, story->pod_count *array_length(titles) + 1);
    const char **below = arena_array(arena, const char *, story->pod_count + 1), **cell = cells;
    for (size_t i = 0; i < story->pod_count; i++) {
        const struct pod_facts *pod = &story->pods[i];
        char *age = arena_array(arena, char, TRAINING_TEXT_BYTES);
        if (pod->created_ms)
            training_duration_text((now_ms - pod->created_ms) / 1000, age);
        *cell++ = pod->name;
        *cell++ = pod->state;
        *cell++ = *pod->node ? pod->node : "-";
        *cell++ = count_text(arena, pod->restarts);
        *cell++ = *age ? age : "-";
        below[i] = reason_of(story, pod, arena);
    }
    const struct layout_table table = {.columns = titles,
                                       .column_count = array_length(titles),
                                       .cells = cells,
                                       .below = below,
                                       .row_count = story->pod_count};
    str_add(out, "\n");
    if (story->pods_missing)
        layout_wrap(story->pods_missing, 0, 2, columns, out);
    else if (story->pod_count)
        layout_table(&table, columns, out);
    else
        str_add(out, "It has no pods.\n");
}

/* The pod of a node rank; NULL: it is not known, or not there. */
static const struct pod_facts *pod_of_node(const struct story *story, int64_t node)
{
    enum replica_type type = node == 0 ? REPLICA_MASTER : REPLICA_WORKER;
    int64_t index = node == 0 ? 0 : node - 1;
    for (size_t i = 0; i < story->pod_count && story->job->has_fixed_nodes; i++)
        if (story->pods[i].type == type && story->pods[i].index == index)
            return &story->pods[i];
    return NULL;
}

/* A rank that hangs, by the pod that it is in. */
static void add_hang(const struct story *story, int columns, struct str *out)
{
    const struct training *t = &story->job->training;
    auto_str struct str field;
    str_init(&field, FIELD_MAX_BYTES);
    if (!t->known || t->hung_rank < 0)
        return;
    str_printf(&field, "rank %" PRId64, t->hung_rank);
    const struct pod_facts *pod = pod_of_node(story, t->hung_node);
    if (pod)
        str_printf(&field, " (%s)", pod->name);
    str_add(&field, " makes no progress, the others wait for it");
    story_add_field("hang", str_text(&field), columns, out);
}

/* ---- the whole ---- */

void story_render(const struct story *story, int columns, int64_t now_ms, struct str *out)
{
    add_head(story, columns, now_ms, out);
    add_training(&story->job->training, columns, now_ms, out);
    add_hang(story, columns, out);
    add_replica_counts(story->job, columns, out);
    add_restarts(story->job, columns, out);
    if (story->page)
        story_add_field("page", story->page, columns, out);
    add_pods(story, columns, now_ms, out);
    story_add_goodput(&story->job->goodput, out);
    story_add_events(story, columns, now_ms, out);
    story_add_next(story, out);
}
