#!/bin/bash
# Breaks the operator's decisions on purpose, one line at a time, and looks whether the histories find it.
#   tests/operator/histories/mutations.sh "COMPILER AND FLAGS" "LINKER AND FLAGS" SMALL.o RANDOM.o OBJECTS-AND-LIBRARIES...
# make prove-mutations calls it (T=WORDS: only those with these words). Prints a row a mutation for docs/operator-proofs.md; exit code 1 if one is not found.
set -u
cd "$(dirname "$0")/../../.." || exit
compile=$1 link=$2 small=$3 random=$4
shift 4
# shellcheck source=tests/mutant.sh
. tests/mutant.sh

# what is broken | file | sed | the row of the small histories that finds it, if not one of make check; or `random` histories
mutations='
a limit is reached one failure too early|operator/reconcile/reconcile.c|s/history.failures > limit.value/history.failures >= limit.value/
a failure is counted again in each pass|operator/reconcile/observe.c|s/replica.counted += fresh;/replica.counted += 0;/
failures of a group are counted one by one|operator/reconcile/observe.c|s/history->failures = before + 1;/;/|2 pods, a group: two failures
a counted failure waits|operator/job/job_status.c|s/           history_only_completes(&before->history, &after->history);/           after->history.known;/
what waits to be written is forgotten|operator/pass.c|s/= executor_unwritten(.*;/= NULL;/|2 pods: deletion, crash
what waits is forgotten when a late write gets through|operator/apply/job_record.c|s/^        move_completed(.*/        (void)move_completed;/|2 pods: trouble, deletion
a replica that is done is made again|operator/reconcile/children.c|s/pods \&\& !there \&\& !history_is_complete(history, type, i)/pods \&\& !there/|2 pods: deletion, crash
pods of the next attempt are made beside those of the last|operator/reconcile/children.c|s/type, !old_attempt, blocker/type, true, blocker/
an attempt never gets old|operator/reconcile/children.c|s/pod->attempt < history->attempt/pod->attempt + 1 < history->attempt/
what the system ends has failed|operator/reconcile/restart.c|s/POD_FAILED \&\& !pod->disrupted \&\& !ended/POD_FAILED \&\& !ended/
a job succeeds by half of its workers|operator/reconcile/policy_success.c|s/>= wanted/* 2 >= wanted/
a job resumes beside its old pods|operator/reconcile/policy_suspend.c|s/view->pods.count > 0/view->pods.count > 9/
a finished job is not cleaned up|operator/reconcile/policy_cleanup.c|/^static bool stays/,/^}/s/if (policy == CLEAN_ALL)/if (policy == CLEAN_ALL \&\& pod->pod->phase != POD_RUNNING)/
the limit is forgotten|operator/reconcile/reconcile.c|s/return limit.set \&\& limit.value >= 0/return limit.value > 9/
each pass writes the status|operator/reconcile/context.c|s/bool differs = !job_status_equal(/bool differs = 1 + !job_status_equal(/
pods are deleted while the status is written|operator/apply/steps.c|s/\[ACTION_SET_STATUS\] = {0,/[ACTION_SET_STATUS] = {2,/;s/\[ACTION_EVENT\] = {1,/[ACTION_EVENT] = {2,/
a failed plan is not tried again|operator/apply/steps.c|s/    return steps->failure.code ? \&steps->failure : NULL;/    return NULL;/
a delete names no UID|operator/apply/request.c|s/\.uid = action->uid,/.uid = NULL,/
the cache keeps what is gone|operator/cache/cache.c|/^void cache_delete/,/^}/s/if (identify(cache, \&reading))/if (cache == NULL)/
a status that was refused counts as written|operator/apply/steps.c|s/    if (err->code \&\& !is_as_good(action, err->code)) {/    if (err->code \&\& err->code != ERR_FORBIDDEN \&\& !is_as_good(action, err->code)) {/
what is counted of a pod is not stored|operator/job/history_fields.c|/replica_history, counted/d
a pod of another owner counts|operator/reconcile/view.c|s/bool foreign = !ours(snapshot, pod->owner_uid)/bool foreign = false/|random
a name that another owner has is asked for|operator/reconcile/children.c|s/= view_foreign_pod(view, snapshot, name)/= NULL/|random
what was refused is told to nobody|operator/reconcile/reconcile.c|s/    if (refused \&\& (/    if (0 \&\& (/|random
a pod stays on bad hardware|operator/reconcile/policy_avoid_node.c|s/           !was_told_of_node(pod);/           was_told_of_node(pod);/|random
an end by bad hardware counts|operator/reconcile/policy_avoid_node.c|s/return policy_leaves_node(history, pod) \&\&/return !policy_leaves_node(history, pod) \&\&/|random
bad hardware is forgiven for ever|operator/reconcile/policy_avoid_node.c|s/history->hardware_leaves <= AVOID/history->hardware_leaves >= 0 * AVOID/|random
each pod that one fault ends is a leave|operator/reconcile/policy_avoid_node.c|s/now_ms - history->hardware_ms < AVOID_NODE_LEAVE_MS/now_ms < 0/|random
a node is avoided for ever|operator/job/history.c|s/if (history->avoided\[i\].since_ms > since_ms)/if (since_ms)/|random
a pod may come to a node that is avoided|operator/manifest/pod.c|s/        .avoided = avoided_nodes(history, arena),//|random
a pod does not tell what it avoids|operator/manifest/pod.c|/(struct pair){ANNOTATION_AVOIDED_NODES, avoided}/s/, avoided}/, ""}/|random
a pod waits for a node that is avoided|operator/reconcile/policy_avoid_node.c|s/!pod->node \&\& !str_equal/pod->node \&\& !str_equal/|random
a pod that waits for a node ends the attempt|operator/reconcile/observe.c|s/    if (policy_waits_for_others(child->pod, ctx->avoided))/    if (policy_waits_for_others(child->pod, ctx->avoided)) return true; else if (0)/|random
a mark of others is not heeded|operator/reconcile/policy_avoid_node.c|s/^        heed_signs(ctx);/        (void)heed_signs;/|random
a marked node is left though no other is spare|operator/reconcile/policy_avoid_node.c|s/(int64_t)bad->spares > replicas/(int64_t)bad->spares + 99 > replicas/|random
a marked node is left again by who can be nowhere else|operator/reconcile/policy_avoid_node.c|s/was_told_of_node(child->pod)/false/|random
avoided nodes are not stored|operator/job/history_fields.c|/FIELD(history, avoided)/,+1d|random
a deadline never comes|operator/reconcile/policy_deadline.c|s/    if (!status->start_ms)/    if (status)/|random
a deadline comes at once|operator/reconcile/policy_deadline.c|s/later(status->start_ms, job->run_policy.active_deadline_seconds)/status->start_ms + 1/|random
a TTL is never over|operator/reconcile/policy_deadline.c|s/!condition_finished(status)/status/|random
a TTL is over at once|operator/reconcile/policy_deadline.c|s/later(finished_ms(status), job->run_policy.ttl_seconds_after_finished)/finished_ms(status)/|random
seconds count as milliseconds|operator/reconcile/policy_deadline.c|s/seconds.value, 1000,/seconds.value, 1,/|random
a TTL goes on while the job is suspended|operator/reconcile/policy_deadline.c|s/job->run_policy.suspend/false/|random
what ends at once is made again at once|operator/reconcile/policy_recreate_backoff.c|s/BACKOFF_MIN_MS 10000/BACKOFF_MIN_MS 0/|random
what ends at once is kept for longer than a minute|operator/reconcile/policy_recreate_backoff.c|s/BACKOFF_MAX_MS 60000/BACKOFF_MAX_MS 90000/|random
what ends at once is made again ever sooner|operator/reconcile/policy_recreate_backoff.c|s/(pod->created_ms - status->start_ms)/60000 - (pod->created_ms - status->start_ms)/|random
nobody looks when a job is over its deadline|operator/reconcile/reconcile.c|s/context_requeue(ctx, policy_deadline_ms(ctx->job, \&ctx->status));/(void)0;/|random
nobody looks when a pod may be made again|operator/reconcile/view.c|s/view->recheck_ms = at_ms;/(void)at_ms;/|random
a second worker goes for one absence of worker 0|operator/reconcile/policy_preempt.c|s/if (!history->preempted \&\& may_choose/if (may_choose/|random
who made room for worker 0 is not stored|operator/job/history_fields.c|/FIELD(history, preempted)/,+1d|random
who made room for worker 0 is never made again|operator/reconcile/policy_preempt.c|s/first \&\& restart_has_run(first->pod)/first \&\& !first/|random
who made room for worker 0 is forgotten before that has run|operator/reconcile/policy_preempt.c|s/restart_has_run(first->pod)/has_node(first->pod)/|random
who made room for worker 0 is made again at once|operator/reconcile/children.c|s/may_scale_up \&\& !policy_is_kept_out(view, history, type, i)/may_scale_up/|random
who is to make room for worker 0 stays|operator/reconcile/policy_preempt.c|s/ .. (child->index == history->preempted \&\& is_due)//|random
who is to make room goes though worker 0 has a node|operator/reconcile/policy_preempt.c|s/ == history->preempted \&\& is_due)/ == history->preempted)/|random
a worker makes room for a pod of worker 0 that has run since|operator/reconcile/policy_preempt.c|s/pod->created_ms <= ctx->status.history.worker_0_ms/!pod->created_ms/|random
a pod of the past ends an absence of worker 0|operator/reconcile/policy_preempt.c|s/ \&\& first->pod->created_ms > history->worker_0_ms//|random
which pod of worker 0 has run is not stored|operator/job/history_fields.c|/FIELD(history, worker_0_ms)/d|random
a worker makes room at once|operator/reconcile/policy_preempt.c|s/ + 1000 \* patience_s(ctx->job)//|random
a worker makes room though too few are left|operator/reconcile/policy_preempt.c|s/running < fewest(ctx)/running < 0/|random
another worker than the last makes room|operator/reconcile/policy_preempt.c|s/        last = \&ctx/        last = last ? last : \&ctx/|random
who waits for a node takes the room|operator/reconcile/policy_preempt.c|s/(waits_for_node(child->pod) \(..\) (/(!ctx \1 (/|random
nobody looks when worker 0 has waited long enough|operator/reconcile/policy_preempt.c|s/context_requeue(ctx, at_ms);/(void)0;/|random
a service that is gone is not made while its pod lives|operator/reconcile/children.c|s/bool service = !view_next(\&view->services, type, i, \&service_at);/bool service = !view_next(\&view->services, type, i, \&service_at) \&\& !there;/|random
'
check_choice
program=build/mutations/mutant
# What the histories say of a mutant: of one that they tell, or the assertion that fails. A program that crashes or does not
# start says nothing, and has found nothing.
said() {
    local told
    told=$(sed -n 's/^seed .*alone): //p' "$log" | head -n 1)
    [ -n "$told" ] || told=$(grep -a -B 1 -m 1 ': error: Failure!$' "$log" | head -n 1 | sed 's/.*--- //')
    [ -n "$told" ] || told=$(grep -a -m 1 ': Assertion .* failed' "$log")
    printf '%s' "$told"
}
look() { # ROW
    local arguments=() result
    case $1 in
    random) ;;
    ?*) arguments=(all "$1") ;;
    esac
    "$program" ${arguments[@]+"${arguments[@]}"} >"$log" 2>&1 && { echo "NOT FOUND"; return 1; }
    result=$?
    [ -n "$(said)" ] || { echo "NOT FOUND: exit code $result: $(tail -n 1 "$log")"; return 1; }
    said
}
place() { :; }

# each with the histories that it is for
all=$mutations missed=0
mutations=$(grep -v '|random$' <<<"$all")
break_each "$program" "$compile" "$link" "$small" "$@" || missed=1
mutations=$(grep '|random$' <<<"$all")
break_each "$program" "$compile" "$link" "$random" "$@" || missed=1
exit "$missed"
