/* When a pass over a job waits for pods. */
#include "operator/pass.h"

#include "base/mem.h"
#include "tests/operator/apply/executor_fixture.h"
#include "tests/operator/cache/cache_fixture.h"
#include "tests/support.h"

#define RUNNING "{type: Running, status: 'True', reason: R, message: m}"

static void put_job_with(struct fixture *f, int version, const char *conditions)
{
    feed_put(
        f, CACHE_JOBS,
        object_from("{metadata: {name: j, namespace: ns, uid: u, resourceVersion: '%d'}, spec: "
                    "{pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: "
                    "pytorch, image: i}]}}}}}, status: {conditions: [%s]}}",
                    version, conditions));
}

/* For how long it waits; -1: it has a plan. */
static int64_t waits_ms(struct fixture *f, struct executor *executor, bool pods_behind)
{
    auto_arena struct arena *arena = arena_open();
    const struct pass_options options = {.pods_behind = pods_behind, .now_ms = 1000};
    struct cached_job *job = cache_acquire_job(f->cache, "ns/j");
    assert_non_null(job);
    const struct pass pass = pass_over(f->cache, executor, "ns/j", job, &options, arena);
    int64_t early_ms = pass.plan ? -1 : pass.early_ms;
    cache_release_job(job);
    return early_ms;
}

/* What the operator before this one wrote goes by pods that a watch may be about to show. */
static void another_operators_status_waits_for_pods(void **state)
{
    static const struct {
        const char *name, *conditions;
        bool behind;
        int64_t after_ms, waits_ms;
    } rows[] = {
        {"a new job", "", true, 0, -1},
        {"pods are as new as the job", RUNNING, false, 0, -1},
        {"they are not", RUNNING, true, 0, PODS_AWAITED_MS},
        {"nor soon after", RUNNING, true, PODS_AWAITED_MS - 1, 1},
        {"nothing has happened to them since", RUNNING, true, 1, -1},
        {"they have come", RUNNING, false, 0, -1},
        {"the job is newer again", RUNNING, true, 0, PODS_AWAITED_MS},
    };
    struct fixture *f = *state;
    struct executor_fixture *e = executor_fixture_open(1);
    for (size_t i = 0; i < array_length(rows); i++) {
        put_job_with(f, (int)i + 1, rows[i].conditions);
        executor_fixture_now_ms += rows[i].after_ms;
        int64_t ms = waits_ms(f, e->executor, rows[i].behind);
        if (ms != rows[i].waits_ms)
            fail_msg("%s: waits %d ms", rows[i].name, (int)ms);
    }
    executor_fixture_close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(another_operators_status_waits_for_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
