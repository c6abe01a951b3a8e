/* What a lost pod costs the API server: one create, and a delete where nobody has deleted it yet;
 * nothing for the pods that are left, however many there are. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/cluster.h"

#include <stdio.h>
#include <string.h>

enum { WORKERS = 31, PASSES = 8, KINDS = ACTION_REQUEUE + 1 };

static void remove_deleted(struct cluster *c)
{
    for (size_t i = c->pod_count; i-- > 0;)
        if (c->pods[i].deleted_ms)
            cluster_remove_pod(c, &c->pods[i]);
}

/* Passes until nothing is left to do. */
static void count_requests(struct cluster *c, int requests[KINDS])
{
    for (int pass = 0; pass < PASSES; pass++) {
        cluster_plan(c);
        for (size_t i = 0; i < c->plan->count; i++)
            requests[c->plan->actions[i].kind]++;
        cluster_apply(c, c->plan->count);
        remove_deleted(c);
    }
}

/* Of the workers from `lost` on, in one text. */
static const char *others(struct cluster *c, int lost)
{
    const char *all = cluster_pod(c, "j-master-0")->uid;
    for (int i = lost; i < WORKERS; i++)
        all = arena_printf(c->arena, "%s %s", all,
                           cluster_pod(c, arena_printf(c->arena, "j-worker-%d", i))->uid);
    return all;
}

static void lose(const char *policy, const char *how, bool is_deleted, int lost)
{
    int requests[KINDS] = {0};
    struct cluster *c = cluster_open(1, WORKERS, policy, "backoffLimit: 0", "");
    cluster_do(c, "patience 1; settle; run *; settle");
    const char *before = others(c, lost);
    for (int i = 0; i < lost; i++)
        cluster_do(c, arena_printf(c->arena, "%s worker-%d", how, i));
    cluster_do(c, "wait 100");
    count_requests(c, requests);
    int deletes = requests[ACTION_DELETE_POD] + requests[ACTION_FORCE_DELETE_POD];
    if (requests[ACTION_CREATE_POD] != lost || deletes != (is_deleted ? 0 : lost) ||
        requests[ACTION_CREATE_SERVICE] || requests[ACTION_DELETE_SERVICE] ||
        requests[ACTION_SET_STATUS] > 3)
        fail_msg("%s, %s of %d: %d creates, %d deletes, %d writes of the status", policy, how, lost,
                 requests[ACTION_CREATE_POD], deletes, requests[ACTION_SET_STATUS]);
    assert_string_equal(others(c, lost), before);
    assert_int_equal(c->status.history.failures, 0);
    cluster_close(c);
}

static void only_what_is_missing_is_asked_for(void **state)
{
    (void)state;
    static const char *const policies[] = {"OnFailure", "Always", "Never", "ExitCode"};
    static const struct {
        const char *how;
        bool is_deleted; /* by whom it was lost */
    } ways[] = {{"gone", true}, {"delete", true}, {"evict", false}, {"lose", false}};
    static const int lost[] = {1, 3, 9};
    for (size_t p = 0; p < array_length(policies); p++)
        for (size_t w = 0; w < array_length(ways); w++)
            for (size_t n = 0; n < array_length(lost); n++)
                lose(policies[p], ways[w].how, ways[w].is_deleted, lost[n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_is_missing_is_asked_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
