#include "tests/operator/apply/executor_fixture.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdlib.h>

int64_t executor_fixture_now_ms;

static int64_t now(void)
{
    return executor_fixture_now_ms;
}

static const struct clocks clocks = {now, now};

static void on_over(void *context, const char *key, const struct executor_outcome *outcome)
{
    struct executor_fixture *f = context;
    (void)key;
    f->overs++;
    f->failure = outcome->failure ? *outcome->failure : (struct error){.code = ERR_NONE};
    f->is_new = outcome->is_new;
    f->written = outcome->written != NULL;
    f->job_deleted = outcome->job_deleted;
    f->accounted_ms = outcome->written ? goodput_sum_ms(&outcome->written->goodput) : 0;
    f->requeue_ms = outcome->requeue_ms;
}

static bool on_unseen_change(void *context, enum expectation_kind kind, bool is_old,
                             int64_t since_ms)
{
    static const char *const kinds[] = {"job", "pod", "service", "podgroup"};
    struct executor_fixture *f = context;
    str_printf(&f->asked, "%s%s since %d;", is_old ? "old " : "", kinds[kind], (int)since_ms);
    return f->rereads;
}

struct executor_fixture *executor_fixture_open(int workers)
{
    struct executor_fixture *f = xcalloc(1, sizeof *f);
    executor_fixture_now_ms = 1000;
    late_api_open(&f->kube);
    str_init(&f->asked, 1000);
    const struct executor_options options = {.transport = &late_api_transport,
                                             .pod.gang = {GANG_VOLCANO, "volcano"},
                                             .parallel_max = 8,
                                             .clocks = &clocks,
                                             .over = on_over,
                                             .unseen_change = on_unseen_change,
                                             .context = f};
    f->executor = executor_open(&f->kube, &options);
    f->cluster = cluster_open(1, workers, "OnFailure", "activeDeadlineSeconds: 9", "");
    f->object = json_object_of("metadata", json_texts_of("resourceVersion", "1", NULL), NULL);
    return f;
}

void executor_fixture_close(struct executor_fixture *f)
{
    executor_close(f->executor);
    late_api_close(&f->kube);
    str_free(&f->asked);
    json_free(f->object);
    cluster_close(f->cluster);
    free(f);
}

void executor_fixture_start_plan(struct executor_fixture *f, const char *key,
                                 const struct plan *plan)
{
    executor_start(f->executor, key, f->cluster->job, f->object, &f->cluster->status, plan);
}

/* Starts the plan of a first pass. */
void executor_fixture_start(struct executor_fixture *f, const char *key)
{
    cluster_plan(f->cluster);
    executor_fixture_start_plan(f, key, f->cluster->plan);
}

int64_t executor_fixture_early_ms(struct executor_fixture *f)
{
    struct snapshot snapshot = {.job = f->cluster->job,
                                .pods = f->cluster->pods,
                                .pod_count = f->cluster->pod_count,
                                .services = f->cluster->services,
                                .service_count = f->cluster->service_count};
    return executor_wait_ms(f->executor, "ns/j", &snapshot, f->object);
}
