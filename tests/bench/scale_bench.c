/* The operator's own cost, by the number of jobs and pods: its cache, queue, executor and passes,
 * as they ship, beside a simulated cluster (scale_cluster.h). No sockets: `make bench-operator` has
 * those. `make bench-scale` shows a table for docs/benchmarks.md, of as many jobs as its argument
 * says; --help tells the rest.
 *
 * Of each: what is kept in memory, a pod; the processor time of a pass (the decision alone, and
 * that of a job which is new among them); then 1,000 pods fail at once, one a job where there are
 * so many, and are replaced. */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/apply/executor.h"
#include "operator/cache/cache.h"
#include "operator/cache/queue.h"
#include "operator/job/condition.h"
#include "operator/pass.h"
#include "tests/bench/scale_cluster.h"

#include <assert.h>
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in controller.c. */
enum { BACKOFF_FIRST_MS = 200, BACKOFF_MAX_MS = 60 * 1000, PARALLEL_MAX = 32 };
enum { PASSES_PER_RUN_MAX = 100, PLANS_MAX = 56 };

enum { RESTARTS = 1000, SEED = 17, MAX_JOBS = 1000000 };

/* How long passes took: a count for each 64th of an octave of nanoseconds. */
enum { OCTAVE = 64, BUCKETS = 40 * OCTAVE };

struct plan_under_way {
    struct cached_job *job;
    char *key;
};

static struct {
    struct kube *kube;
    struct cache *cache;
    struct queue *queue;
    struct executor *executor;
    struct plan_under_way plans[PLANS_MAX];
    size_t plan_count;
    int64_t passes, longest_ns;
    uint32_t took[BUCKETS];
} op;

/* ---- the operator, as the controller has it ---- */

static int64_t now_ms(void)
{
    return scale_clocks.steady_ms();
}

static void on_changed(void *context, const char *key, bool finished)
{
    (void)context;
    queue_add(op.queue, key, finished ? QUEUE_PATIENT : QUEUE_URGENT, now_ms());
}

static void on_warn(void *context, const char *message)
{
    (void)context;
    fprintf(stderr, "scale_bench: %s\n", message);
    exit(1);
}

static void add_in(const char *key, int64_t delay_ms)
{
    queue_add(op.queue, key, QUEUE_URGENT, now_ms() + delay_ms);
}

static void forget_plan(const char *key)
{
    size_t i = 0;
    while (strcmp(op.plans[i].key, key) != 0)
        i++;
    cache_release_job(op.plans[i].job);
    free(op.plans[i].key);
    op.plans[i] = op.plans[--op.plan_count];
}

static void on_over(void *context, const char *key, const struct executor_outcome *outcome)
{
    (void)context;
    if (outcome->requeue_ms)
        queue_add(op.queue, key, QUEUE_URGENT, outcome->requeue_ms);
    if (outcome->expects_changes)
        add_in(key, EXPECT_MAX_MS);
    if (outcome->failure)
        on_warn(NULL, outcome->failure->msg);
    queue_succeeded(op.queue, key);
    forget_plan(key);
}

static void note_pass(int64_t ns)
{
    int bucket = (int)(log2((double)(ns > 1 ? ns : 1)) * OCTAVE);
    op.took[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
    op.passes++;
    op.longest_ns = ns > op.longest_ns ? ns : op.longest_ns;
}

/* What becomes of a pass; the arena of its plan is still open. */
static void carry_on(const char *key, struct cached_job *job, const struct pass *pass)
{
    if (pass->plan && !pass->idle && !pass->hold_ms) {
        struct plan_under_way *active = &op.plans[op.plan_count++];
        *active = (struct plan_under_way){job, xstrdup(key)};
        executor_start(op.executor, active->key, job->job, job->object, pass->snapshot.status,
                       pass->plan);
        return;
    }
    if (!pass->plan || pass->hold_ms)
        add_in(key, pass->plan ? pass->hold_ms : pass->early_ms);
    else if (pass->requeue_ms)
        queue_add(op.queue, key, QUEUE_URGENT, pass->requeue_ms);
    queue_done(op.queue, key);
    cache_release_job(job);
}

static void pass_job(const char *key)
{
    const struct pass_options options = {.now_ms = now_ms()};
    auto_arena struct arena *arena = arena_open();
    scale_work_begin(op.kube);
    struct cached_job *job = cache_acquire_job(op.cache, key);
    const struct pass pass = pass_over(op.cache, op.executor, key, job, &options, arena);
    note_pass(scale_work_end(op.kube));
    scale_work_begin(op.kube);
    carry_on(key, job, &pass);
    scale_work_end(op.kube);
}

static void pass_due(void)
{
    const char *key;
    int64_t at_ms = now_ms();
    for (int i = 0; i < PASSES_PER_RUN_MAX && op.plan_count < PLANS_MAX &&
                    (key = queue_pop(op.queue, QUEUE_URGENT, at_ms));
         i++)
        pass_job(key);
}

/* Until nobody has anything to do. */
static void run(void)
{
    for (;;) {
        scale_happen(op.kube);
        pass_due();
        int64_t pass_ms = op.plan_count < PLANS_MAX ? queue_due(op.queue, QUEUE_URGENT) : INT64_MAX;
        int64_t due_ms = scale_due_ms(op.kube);
        due_ms = due_ms < pass_ms ? due_ms : pass_ms;
        if (due_ms == INT64_MAX)
            return;
        scale_wait_until(op.kube, due_ms);
    }
}

static void open_operator(void)
{
    const struct cache_options cache = {.changed = on_changed, .warn = on_warn};
    const struct executor_options executor = {.transport = &scale_transport,
                                              .parallel_max = PARALLEL_MAX,
                                              .clocks = &scale_clocks,
                                              .over = on_over};
    op.cache = cache_open(&cache);
    op.queue = queue_open(BACKOFF_FIRST_MS, BACKOFF_MAX_MS);
    op.executor = executor_open(op.kube, &executor);
}

static void close_operator(void)
{
    executor_close(op.executor);
    queue_close(op.queue);
    cache_close(op.cache);
}

/* ---- the table ---- */

static double pass_us(double share)
{
    int64_t rank = (int64_t)(share * (double)(op.passes - 1)), seen = 0;
    int bucket = 0;
    while ((seen += op.took[bucket]) <= rank)
        bucket++;
    return exp2((bucket + 0.5) / OCTAVE) / 1000;
}

static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "scale_bench: %s\n", what);
    exit(1);
}

static void row(int jobs, int pods_per_job)
{
    int pods = jobs * pods_per_job, storm = pods < RESTARTS ? pods : RESTARTS;
    memset(&op, 0, sizeof op);
    op.kube = scale_open(jobs, pods_per_job, SEED);
    size_t before = bytes_in_use();
    int64_t began_ms = now_ms();
    open_operator();
    scale_list(op.kube, op.cache);
    run();
    require(scale_pods(op.kube) == pods, "not all pods run");
    double made_s = (double)(now_ms() - began_ms) / 1000;
    size_t bytes = (bytes_in_use() - before) / (size_t)pods;
    int64_t requests = scale_requests(op.kube), writes = scale_status_writes(op.kube);

    const int32_t *ms;
    scale_fail(op.kube, storm);
    run();
    require(scale_replaced(op.kube, &ms) == storm, "not all pods that failed were replaced");
    require(scale_pods(op.kube) == pods, "not all pods run again");
    printf("| %d x %d | %zu | %.0f | %.0f | %.1f | %.1f | %.1f | %.1f | %d / %d / %d |\n", jobs,
           pods_per_job, bytes, pass_us(0.5), pass_us(0.99), (double)op.longest_ns / 1e6, made_s,
           (double)requests / jobs, (double)writes / jobs, ms[storm / 2], ms[storm * 99 / 100],
           ms[storm - 1]);
    fflush(stdout);
    close_operator();
    scale_close(op.kube);
}

int main(int argc, char **argv)
{
    int64_t count = 10000;
    if (argc > 2 || (argc > 1 && !str_to_i64(argv[1], 4, MAX_JOBS, &count))) {
        fprintf(
            stderr,
            "usage: %s [JOBS]\n"
            "Memory and time of the operator for JOBS simulated jobs of 10 pods (10000; from 4 to "
            "%d),\nfor a half and a quarter of them, and for a hundredth of each with 1,000 "
            "pods. docs/benchmarks.md\nsays what the columns mean.\n",
            argv[0], MAX_JOBS);
        return 2;
    }
    int jobs = (int)count;
    log_set_level(LOG_ERROR);
    puts(
        "| jobs x pods | bytes a pod | pass p50, us | p99, us | longest, ms | all pods made, s | "
        "requests a job | status writes a job | 1,000 failed pods replaced, ms: p50 / p99 / last |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (int part = 4; part >= 1; part /= 2)
        row(jobs / part, 10);
    for (int part = 4; part >= 1; part /= 2)
        row(jobs / part / 100 > 0 ? jobs / part / 100 : 1, 1000);
    return 0;
}
