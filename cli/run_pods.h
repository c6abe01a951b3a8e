/* The replicas of a `shoal run` as a cluster's pods are shown: by phase, with what keeps one from
 * going on, and the file of its log. */
#ifndef SHOAL_CLI_RUN_PODS_H
#define SHOAL_CLI_RUN_PODS_H

#include "cli/job_facts.h"
#include "operator/local/local.h"

/* Those that have a pod now, into the arena, in the order of their creation. `node`: the machine's
 * name. Calls local_snapshot and local_replicas. */
size_t run_pods(struct local *local, int64_t now_ms, const char *node, struct arena *arena,
                struct pod_facts **ret_pods);
#endif
