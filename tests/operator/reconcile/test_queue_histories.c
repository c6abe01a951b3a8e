/* Kueue at random: whatever it, people and pods do to a job in a queue, no pod is without quota,
 * and no quota is given away while a pod has it. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/job/condition.h"
#include "tests/operator/cluster.h"

static uint32_t below(uint64_t *random, uint32_t bound)
{
    *random = *random * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(*random >> 33) % bound;
}

/* Pods that have not ended, with those that the plan makes. */
static int32_t pods_with_plan(const struct cluster *cluster, enum replica_type type)
{
    int32_t count = 0;
    for (size_t i = 0; i < cluster->pod_count; i++)
        count += cluster->pods[i].type == type && cluster->pods[i].phase != POD_SUCCEEDED &&
                 cluster->pods[i].phase != POD_FAILED;
    for (size_t i = 0; i < cluster->plan->count; i++)
        count += cluster->plan->actions[i].kind == ACTION_CREATE_POD &&
                 cluster->plan->actions[i].type == type;
    return count;
}

/* Pods are made for what is admitted alone; quota is neither released nor dropped while a pod has
 * it; what was given back is not taken again (Kueue's webhook would refuse that). */
static void check_plan(const struct cluster *cluster)
{
    const struct workload *workload = &cluster->workload;
    bool admitted = workload->name && workload->admitted && !workload->evicted;
    for (size_t i = 0; i < cluster->plan->count; i++) {
        const struct action *action = &cluster->plan->actions[i];
        const struct workload_status *told = action->workload_status;
        if (action->kind == ACTION_CREATE_POD)
            assert_true(admitted && action->placement &&
                        action->index < action->placement->replicas[action->type] &&
                        pods_with_plan(cluster, action->type) <=
                            workload->spec.counts[action->type] -
                                workload->reclaimable[action->type]);
        if (action->kind == ACTION_CREATE_WORKLOAD || action->kind == ACTION_DELETE_WORKLOAD)
            assert_true(cluster->pod_count == 0 && cluster->options.kueue == KUEUE_SEEN);
        if (!told)
            continue;
        assert_true(!told->releases || (cluster->pod_count == 0 && workload->evicted));
        for (int type = 0; type < REPLICA_TYPES && told->reclaims && !told->releases; type++)
            assert_true(told->reclaimable[type] <= workload->spec.counts[type] &&
                        (!workload->quota_reserved ||
                         told->reclaimable[type] >= workload->reclaimable[type]));
    }
}

/* Kueue admits no more than was asked for, and what has no quota. */
static const char *kueue_does(struct cluster *cluster, uint64_t *random)
{
    static const char *const other[] = {"say full", "unmake", "deactivate"};
    const struct workload *workload = &cluster->workload;
    if (!workload->name)
        return "wait 1";
    if (workload->quota_reserved && !workload->evicted)
        return below(random, 3) ? "wait 1" : "preempt Preempted";
    if (!workload->quota_reserved && workload->active && below(random, 4)) {
        uint32_t most = (uint32_t)workload->spec.counts[REPLICA_WORKER];
        uint32_t least = (uint32_t)workload->spec.min_workers;
        return least ? arena_printf(cluster->arena, "admit %u",
                                    least + below(random, most - least + 1))
                     : "admit";
    }
    return workload->quota_reserved ? "wait 1" : other[below(random, array_length(other))];
}

static const char *others_do(const struct cluster *cluster, uint64_t *random)
{
    static const char *const edits[] = {"suspend",    "resume",      "resume",   "scale 2",
                                        "scale 3",    "scale 5",     "queue r",  "queue q",
                                        "template t", "template t2", "class low"};
    static const char *const pods[] = {"run *",    "run *",    "gone *",
                                       "delete *", "exit * 0", "restart * 1"};
    if (cluster->pod_count > 0 && below(random, 2))
        return pods[below(random, array_length(pods))];
    return below(random, 3) ? "wait 1" : edits[below(random, array_length(edits))];
}

static void whatever_happens_quota_is_kept(void **state)
{
    enum { RUNS = 400, STEPS = 60 };
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        uint64_t random = seed;
        struct cluster *cluster =
            cluster_open((int)(seed % 2), 3, "OnFailure", "backoffLimit: -1",
                         seed % 3 ? "" : "elasticPolicy: {minReplicas: 2, maxReplicas: 8}");
        print_message("%d%s", (int)seed, seed == RUNS ? "\n" : " "); /* the last one fails */
        cluster_do(cluster, "queue q");
        for (int step = 0; step < STEPS && !condition_finished(&cluster->status); step++) {
            cluster_plan(cluster);
            check_plan(cluster);
            cluster_apply(cluster, below(&random, 3) ? cluster->plan->count : below(&random, 4));
            cluster_do(cluster, below(&random, 2) ? kueue_does(cluster, &random)
                                                  : others_do(cluster, &random));
        }
        cluster_do(cluster, "settle");
        cluster_close(cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_quota_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
