#!/bin/bash
# Breaks the operator on purpose, one line at a time, and looks whether acto finds it.
#   tests/acto/mutations.sh "COMPILER AND FLAGS" "LINKER AND FLAGS" OBJECTS-AND-LIBRARIES...
# make acto-mutations calls it (T=WORDS: only those with these words). Prints a row a mutation for docs/operator-proofs.md; exit code 1
# if one is not found.
set -u
cd "$(dirname "$0")/../.." || exit
compile=$1 link=$2
shift 2
# shellcheck source=tests/tap.sh
. tests/tap.sh
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh
# shellcheck source=tests/cluster/operator.sh
. tests/cluster/operator.sh
# shellcheck source=tests/mutant.sh
. tests/mutant.sh

# what is broken | file | sed | leaf and rest that find it
mutations='
a field is not read|operator/manifest/pod.c|s/elastic->rdzv_backend ? elastic->rdzv_backend : "c10d"/"c10d"/|elasticPolicy.rdzvBackend suspended
a field of the template gets lost|operator/manifest/manifest_pod.c|s/    avoid_nodes(spec, &pod->avoided);/    json_free(json_take(spec, "tolerations"));\n&/|template.spec.tolerations[].effect suspended
an edit of a field is not followed|operator/reconcile/policy_gang.c|s/a->min_member == b->min_member &&/true \&\&/|schedulingPolicy.minAvailable running
what a field has made stays when it is removed|operator/reconcile/policy_autoscaler.c|/^void policy_autoscaler_sync/,/^}/s/policy_autoscaler_delete(snapshot, plan);/return;/|elasticPolicy.metrics[].external.metric.name running
an edit inside a list is not followed|operator/reconcile/policy_autoscaler.c|s/strcmp(a->metrics_hash, b->metrics_hash) == 0/true/|elasticPolicy.metrics[].resource.target.averageUtilization running
what a field promises never comes|operator/reconcile/policy_deadline.c|s/job->run_policy.ttl_seconds_after_finished/(struct optional){0}/|runPolicy.ttlSecondsAfterFinished finished
the order of two edits counts|operator/reconcile/children.c|/^bool children_desired/,/^}/s/child->index < replica->replicas.value/true/|Worker.replicas running
a bad value ends the operator|operator/reconcile/reconcile.c|s/    ctx->job = job_as_seen(ctx);/    __builtin_trap();/|elasticPolicy.minReplicas running
a bad value stops other jobs|operator/reconcile/reconcile.c|s/    ctx->job = job_as_seen(ctx);/    for (;;) {}/|elasticPolicy.minReplicas running
a bad value is not told|operator/reconcile/reconcile.c|/^static void reconcile_suspended/,/^}/s/set_waiting(ctx, .*/set_waiting(ctx, \&(struct blocker){.reason = NULL});/|elasticPolicy.minReplicas suspended
what was bad is told for ever|operator/job/condition.c|/^bool condition_wait/,/^}/s/    remove_type(status, CONDITION_WAITING);/    if (reason) remove_type(status, CONDITION_WAITING);/|elasticPolicy.minReplicas running
a job that was spoilt in its sleep has failed|operator/reconcile/reconcile.c|s/!condition_is_true(&ctx.status, CONDITION_CREATED)/!ctx.status.start_ms/|elasticPolicy.minReplicas suspended
addresses make each refusal news|operator/kube/kube_answer.c|s/? without_addresses(status.message, arena)/? arena_strdup(arena, status.message + 0 * strlen(without_addresses("", arena)))/|template.spec.initContainers[].livenessProbe.exec.command[] running
'

folder=build/acto-mutations
look() { # LEAF REST
    # shellcheck disable=SC2086 # two words
    BUILD=$PWD/$folder tests/acto/acto.py --first --only $1 </dev/null >"$log" 2>&1
    grep -q "^DIVERGED" "$log" && sed -n "/^DIVERGED: /{n;s/^ *//p;q}" "$log" | cut -c 1-120
}
place() { echo "\`${1% *}\`, ${1##* } | "; }

check_choice
operator_world podgc
pod_groups scheduling.volcano.sh v1beta1 >/dev/null
pod_groups scheduling.x-k8s.io v1alpha1 >/dev/null
export WORLD_PATIENCE_S=15
break_each "$folder/shoal-operator" "$compile" "$link" "$@"
