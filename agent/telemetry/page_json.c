#include "agent/telemetry/page_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/telemetry/page_ranks.h"
#include "agent/telemetry/status_json.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/page.h"

enum { TRAINING_TEXT_BYTES = 64 * 1024 };

/* Of a run in no namespace: the page asks for jobs by both. */
#define NO_NAMESPACE "local"

static const char *kind_name(int kind)
{
    return time_kind_name((enum time_kind)kind);
}

/* As a process goes through them. */
static const struct timeline_kinds kinds = {
    .count = TIME_KINDS,
    .order =
        (const int[TIME_KINDS]){TIME_INITIALIZATION, TIME_PEER_WAIT, TIME_RESTORE, TIME_LOST_WORK,
                                TIME_DATA, TIME_STEP, TIME_EVALUATION, TIME_SAVE, TIME_OTHER},
    .name = kind_name,
};

void page_past_free(struct page_past *past)
{
    series_free(&past->series);
    timeline_free(&past->timeline);
}

void page_past_step(struct page_past *past, const struct run_state *s)
{
    double rate = s->facts.predicts_tokens ? s->tokens_per_s : s->samples_per_s;
    const struct series_point sample = {.time_s = (uint32_t)(s->progress_wall_us / 1000000),
                                        .step = s->last.step,
                                        .loss = (float)s->last.loss,
                                        .rate = rate > 0 ? (float)rate : NAN,
                                        .world_size = s->facts.world_size};
    series_add(&past->series, &sample);
}

void page_past_look(struct page_past *past, const struct time_account *account)
{
    int64_t ms[TIME_KINDS];
    for (int kind = 0; kind < TIME_KINDS; kind++)
        ms[kind] = account->us[kind] / 1000;
    timeline_told(&past->timeline, &kinds, ms);
}

static const char *namespace_of(const struct page_view *v)
{
    const char *of_pod = v->state->facts.pod_namespace;
    return of_pod[0] ? of_pod : NO_NAMESPACE;
}

/* Without a rendezvous' id a run has no name. */
static const char *name_of(const struct page_view *v)
{
    const struct run_facts *f = &v->state->facts;
    return f->job[0] ? f->job : f->model;
}

static struct json *time_of(int64_t wall_us)
{
    char text[32];
    clock_format_rfc3339(wall_us / 1000, text, sizeof text);
    return json_new_text(text);
}

static double goodput_of(const struct time_account *account)
{
    double step_s = time_account_s(account, TIME_STEP), all_s = 0;
    for (int k = 0; k < TIME_KINDS; k++)
        all_s += time_account_s(account, (enum time_kind)k);
    return all_s > 0 ? step_s / all_s : (double)NAN;
}

/* What the operator puts into status.training, in the same words. */
static struct json *training_of(const struct run_state *s)
{
    auto_str struct str text;
    str_init(&text, TRAINING_TEXT_BYTES);
    status_json_training(s, &text);
    struct json *training = json_parse_text(str_text(&text), JSON_STRICT, NULL);
    double goodput = s->account ? goodput_of(s->account) : (double)NAN;
    if (training && isfinite(goodput))
        json_set(training, TRAINING_GOODPUT, json_new_real(goodput, 4));
    return training;
}

static struct json *waiting_of(const struct page_view *v)
{
    if (v->hung_rank < 0)
        return NULL;
    return json_object_of(
        "reason", json_new_text("RankHung"), "message",
        json_new_textf("rank %d makes no progress, and others wait for it", v->hung_rank), NULL);
}

static struct json *row_of(const struct page_view *v)
{
    const struct run_state *s = v->state;
    bool on_gpu = strcmp(s->facts.device, "cpu") != 0;
    return json_object_of("namespace", json_new_text(namespace_of(v)), "name",
                          json_new_text(name_of(v)), "creationTimestamp", time_of(s->start_wall_us),
                          "startTime", time_of(s->start_wall_us), "state", json_new_text("Running"),
                          "waiting", waiting_of(v), "gpus",
                          json_new_integer(on_gpu ? s->facts.world_size : 0), "restarts",
                          json_new_integer(s->facts.restarts), "training", training_of(s), "losses",
                          series_losses(&v->past->series, PAGE_LOSSES_MAX), NULL);
}

static struct json *phases_of(const struct run_state *s)
{
    struct json *phases = json_new_object();
    for (int p = 0; p < RUN_PHASES; p++)
        if (s->phase_s[p] > 0)
            json_set(phases, run_phase_name((enum run_phase)p), json_new_real(s->phase_s[p], 6));
    return phases;
}

static struct json *use_of(int64_t current, int64_t peak)
{
    return json_object_of("current", json_new_integer(current), "peak", json_new_integer(peak),
                          NULL);
}

static struct json *memory_of(const struct memory_use *use)
{
    struct json *memory = json_new_object();
    for (int k = 0; k < MEMORY_KINDS; k++)
        if (use->peak_bytes[k] > 0)
            json_set(memory, memory_kind_name((enum memory_kind)k),
                     use_of(use->current_bytes[k], use->peak_bytes[k]));
    json_set(memory, "all", use_of(use->current_total_bytes, use->peak_total_bytes));
    return memory;
}

static struct json *run_of(const struct run_facts *f)
{
    return json_object_of("model", json_new_text(f->model), "parameters",
                          json_new_integer(f->parameters), "strategy", json_new_text(f->strategy),
                          "precision", json_new_text(f->precision), "device",
                          json_new_text(f->device), NULL);
}

/* What no status of a job has. */
static void set_detail(struct json *object, const struct page_view *v)
{
    const struct run_state *s = v->state;
    int64_t hidden;
    json_set(object, TRAINING_DETAIL_RANKS, page_ranks(v->ranks, s->facts.world_size, &hidden));
    if (hidden > 0)
        json_set_integer(object, TRAINING_DETAIL_RANKS_HIDDEN, hidden);
    json_set(object, TRAINING_DETAIL_PHASES, phases_of(s));
    json_set(object, TRAINING_DETAIL_MEMORY, memory_of(&s->last.memory));
    json_set(object, TRAINING_DETAIL_RUN, run_of(&s->facts));
}

static struct json *job_of(const struct page_view *v)
{
    const struct run_state *s = v->state;
    struct json *job = row_of(v);
    json_set(job, "series",
             series_json(&v->past->series, s->facts.predicts_tokens ? TRAINING_TOKENS_PER_S
                                                                    : TRAINING_SAMPLES_PER_S));
    json_set(job, "timeline", timeline_json(&v->past->timeline, &kinds, s->process_wall_us / 1000));
    set_detail(job, v);
    return job;
}

/* Takes the value. */
static void print(struct json *value, struct str *out)
{
    auto_free char *text = json_print(value, JSON_COMPACT);
    json_free(value);
    str_add(out, text);
    str_add(out, "\n");
}

bool page_json_answer(const struct page_view *v, const char *path, struct str *out)
{
    auto_free char *own = xasprintf(PAGE_JOBS_PATH "/%s/%s", namespace_of(v), name_of(v));
    if (strcmp(path, PAGE_JOBS_PATH) == 0)
        print(json_object_of("server", json_new_text("agent"), "version",
                             json_new_integer(v->version), "time",
                             time_of(v->state->progress_wall_us), "hidden", json_new_integer(0),
                             "jobs", json_array_of(row_of(v), NULL), NULL),
              out);
    else if (strcmp(path, own) == 0)
        print(job_of(v), out);
    else
        return false;
    return true;
}

void page_json_detail(const struct page_view *v, struct str *out)
{
    struct json *detail = json_new_object();
    set_detail(detail, v);
    print(detail, out);
}

void page_json_message(const struct page_view *v, struct str *out)
{
    print(json_object_of("version", json_new_integer(v->version), "after",
                         json_new_integer(v->version - 1), "jobs", json_array_of(row_of(v), NULL),
                         NULL),
          out);
}
