#!/bin/bash
# Breaks the operator on purpose, one line at a time, and looks whether the sieve finds it.
#   tests/sieve/mutations.sh "COMPILER AND FLAGS" "LINKER AND FLAGS" OBJECTS-AND-LIBRARIES...
# make sieve-mutations calls it (T=WORDS: only those with these words). Prints a row a mutation for docs/operator-proofs.md; exit code 1
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

# what is broken | file | sed | scenario | kind that finds it
mutations='
a job of the past is acted on|operator/pass.c|s/snapshot->unproven = .*/snapshot->unproven = false;/|life of a job of 3 pods|stale
a failed plan waits for minutes|operator/controller_due.c|s/BACKOFF_FIRST_MS = 200,/BACKOFF_FIRST_MS = 200000,/;s/BACKOFF_MAX_MS = 60 \* 1000/BACKOFF_MAX_MS = 200000/|a deadline and a TTL|409
a status that was refused counts as written|operator/apply/steps.c|s/(effect == DELETES \&\& code == ERR_NOT_FOUND)/(effect != CREATES \&\& code != ERR_FORBIDDEN)/|a failure and its restart|409
a watch that has ended with 410 goes on where it was|operator/kube/watch.c|s/bool lost = err->code == ERR_GONE/bool lost = err->code == ERR_LIMIT/|a group restarts|drop
an error on a watch is passed over|operator/kube/watch.c|s/    if (strcmp(type, "ERROR") == 0) {/    if (!strcmp(type, "ERROR")) return 0;\n    if (!type) {/|a group restarts|drop
a list keeps what is gone|operator/cache/cache.c|/^void cache_end_list/,/^}/s/if (kind == CACHE_JOBS)/if (kind == CACHE_PODS) return;\n    if (kind == CACHE_JOBS)/|suspended and resumed|drop
a watch that was cut is not opened again|operator/kube/watch.c|/^void watch_feed_end/,/^}/s/stream_failed(watch, err, asked_ms, now_ms);/plan(watch, STREAM, INT64_MAX);/|life of a job of 3 pods|cut
what is counted of a pod is not stored|operator/job/history_fields.c|/replica_history, counted/d|a failure and its restart|kill
a pod is deleted whatever it is by now|operator/reconcile/children.c|/^void children_delete_as_seen/,/^}/s/pod->pod->version/NULL/|a failure and its restart|drop
an expired lease is never taken|operator/leader/lease.c|s/now_ms - lease->observed_ms >= duration_ms;/now_ms * duration_ms < 0;/|the leader hands over|kill
an operator that begins does not wait for pods|operator/pass.c|s/is_others \&\& options->pods_behind/false/|suspended and resumed|behind
an operator whose first write is refused lists nothing again|operator/apply/job_record.c|s/    return differs;/    return differs \&\& !seen;/|a group restarts|behind
a status is merged into what is there by now|operator/apply/request.c|/^static struct request set_status/,/^}/s/"PUT",/"PATCH", .content_type = "application\/merge-patch+json",/;s/    set_path(\&request, \&resource_job, source, source->job->name, "status");/    json_free(json_take(json_get(request.body, "metadata"), "resourceVersion"));\n&/|life of a job of 3 pods|stale
a request is to blame for a 429|operator/kube/kube_answer.c|s/status != 429/status != 42/;s/status == 429/status == 42/|a failure and its restart|429
a Retry-After is passed over|operator/kube/kube_answer.c|s/    return asked_ms < RETRY_AFTER_MAX_MS.*/    return asked_ms * 0;/|a gang|429
a list that was refused with 410 counts as listed|operator/kube/watch.c|s/plan(watch, LIST, retry_ms(/plan(watch, err->code == ERR_GONE ? STREAM : LIST, retry_ms(/|life of a job of 3 pods|410
a watch that was cut goes on from now|operator/kube/watch.c|s/    add_parameter(&watch->path, "resourceVersion", watch->version);//|suspended and resumed|cut
what is there before an operator begins is not seen|operator/kube/watch.c|s/    if (json_is_object(item))/    if (json_is_object(item) \&\& watch->synced)/|a deadline and a TTL|kill
a create whose answer was lost is tried again under another name|operator/kube/kube.c|s/    request->tries++;/    char *name = request->maybe_done ? strstr(request->body, "-worker-1") : NULL;\n    if (name) name[8] = 55;\n&/|life of a job of 3 pods|torn
an answer that ends in the middle ends the operator|base/http_request.c|s/    if (code != CURLE_OK) {/    if (code == CURLE_PARTIAL_FILE) __builtin_trap();\n&/|scaled up and down|torn
a leader goes on when its Lease has run out|operator/leader/lease.c|s/now_ms < lease->held_until_ms;/is_ours(lease);/|the leader hands over|deposed
'

folder=build/sieve-mutations
look() { # SCENARIO|KIND
    local scenario=${1%|*} kind=${1##*|} found
    BUILD=$PWD/$folder tests/sieve/sieve.py --first --only "$scenario" "$kind" </dev/null >"$log" 2>&1
    found=$(sed -n "/^DIVERGED: .* $kind /{s/.* $kind '\(.*\)'\$/\`\1\`/p;n;s/^ */: /p;q}" "$log" | tr -d '\n')
    [[ $found == '`'* ]] && echo "$found"
}
place() { echo "${1%|*}, \`${1##*|}\` | "; }

check_choice
operator_world podgc
pod_groups scheduling.volcano.sh v1beta1 >/dev/null
export WORLD_PATIENCE_S=25
break_each "$folder/shoal-operator" "$compile" "$link" "$@"
