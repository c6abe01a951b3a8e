#include "agent/telemetry/page_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/telemetry/page_ranks.h"
#include "agent/telemetry/status_json.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/page.h"

enum {
    TRAINING_TEXT_BYTES = 64 * 1024,
    SECONDS_DIGITS = 15, /* to the millisecond: what is rounded is lost from the sum */
};

/* Of a run in no namespace: the page asks for jobs by both. */
#define NO_NAMESPACE "local"

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

static double goodput_of(const int64_t *ms)
{
    int64_t all_ms = 0;
    for (int kind = 0; kind < PAGE_TIME_KINDS; kind++)
        all_ms += ms[kind];
    return all_ms > 0 ? (double)ms[TIME_STEP] / (double)all_ms : (double)NAN;
}

static struct json *seconds_of(const int64_t *ms)
{
    struct json *seconds = json_new_object();
    for (int kind = 0; kind < PAGE_TIME_KINDS; kind++)
        if (ms[kind] > 0)
            json_set(seconds, page_time_kinds.name(kind),
                     json_new_real((double)ms[kind] / 1000, SECONDS_DIGITS));
    return seconds;
}

/* What the operator puts into status.training, in the same words. There, too, the time is that of
 * all processes. */
static struct json *training_of(const struct page_view *v)
{
    auto_str struct str text;
    str_init(&text, TRAINING_TEXT_BYTES);
    status_json_training(v->state, &text);
    struct json *training = json_parse_text(str_text(&text), JSON_STRICT, NULL);
    const int64_t *ms = page_past_ms(v->past);
    double goodput = goodput_of(ms);
    if (!training || !v->state->account || !isfinite(goodput))
        return training;
    json_set(training, TRAINING_SECONDS, seconds_of(ms));
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
    return json_object_of(
        "namespace", json_new_text(namespace_of(v)), "name", json_new_text(name_of(v)),
        "creationTimestamp", json_new_time(v->past->begin_ms), "startTime",
        json_new_time(v->past->begin_ms), "state", json_new_text("Running"), "waiting",
        waiting_of(v), "gpus", json_new_integer(on_gpu ? s->facts.world_size : 0), "restarts",
        json_new_integer(s->facts.restarts), "training", training_of(v), "losses",
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
    json_set(job, "timeline",
             timeline_json(&v->past->timeline, &page_time_kinds, v->past->begin_ms));
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
                             json_new_time(v->state->progress_wall_us / 1000), "hidden",
                             json_new_integer(0), "jobs", json_array_of(row_of(v), NULL), NULL),
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
