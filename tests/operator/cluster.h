/* A cluster in memory with one job in it: it keeps pods and services, runs passes and carries their
 * plans out. Tests move its pods by hand or by script. */
#ifndef SHOAL_TESTS_OPERATOR_CLUSTER_H
#define SHOAL_TESTS_OPERATOR_CLUSTER_H

#include "operator/decode/decode.h"
#include "operator/reconcile/reconcile.h"

#define CLUSTER_MAX_OBJECTS   64
#define CLUSTER_MAX_BAD_NODES 8

struct cluster {
    struct arena *arena;
    struct manifest *manifest; /* holds the job */
    struct job *job;
    struct job_status status;
    struct pod pods[CLUSTER_MAX_OBJECTS];
    size_t pod_count;
    struct service services[CLUSTER_MAX_OBJECTS];
    size_t service_count;
    struct pod_group pod_group; /* no name: there is none */
    struct autoscaler autoscaler;
    struct workload workload;                         /* no name: there is none */
    struct queue_view queue;                          /* of struct snapshot, but for the Workload */
    struct reconcile_options options;                 /* all zero at first */
    struct bad_node bad_nodes[CLUSTER_MAX_BAD_NODES]; /* of struct snapshot */
    size_t bad_node_count, spares;                    /* of each of them */
    const char *list_forbidden, *refused;             /* likewise */
    bool unproven;                                    /* likewise */
    size_t job_bytes;                                 /* likewise */
    bool unaccounted;                                 /* of the snapshot */
    bool quiet;                                       /* likewise */
    const struct history *unwritten;                  /* likewise */
    struct training told;                             /* likewise; not known: nothing was told */
    int64_t now_ms;                                   /* 1000 at first */
    int uids;
    bool job_deleted;
    struct plan *plan; /* of the last pass */
};

/* The job `j` in namespace `ns` with UID `job`: a master if `masters` is 1, `workers` workers, all
 * with `restart_policy`; the last two are the inside of flow mappings, e.g. "backoffLimit: 2,
 * cleanPodPolicy: All" and "nprocPerNode: '4'". */
struct cluster *cluster_open(int masters, int workers, const char *restart_policy,
                             const char *run_policy, const char *spec);
void cluster_close(struct cluster *cluster);

/* One pass on what there is; nothing is carried out yet. */
void cluster_plan(struct cluster *cluster);
void cluster_carry_out(struct cluster *cluster, const struct action *action);
/* Of a Workload, as Kueue's API server does; and what people and Kueue do to it. */
void cluster_change_workload(struct cluster *cluster, const struct action *action);
bool cluster_kueue(struct cluster *cluster, const char *verb, const char *value);
/* Carries out the first `count` actions of the last plan. Deleted pods stay, being deleted, unless
 * by force. */
void cluster_apply(struct cluster *cluster, size_t count);

struct pod *cluster_pod(struct cluster *cluster, const char *name); /* NULL: none */
struct service *cluster_service(struct cluster *cluster, const char *name);
void cluster_remove_pod(struct cluster *cluster, struct pod *pod);

/* Commands, separated by ';':
 *   pass                   plan and carry out
 *   hold                   plan; its status, which is first, is to be written later
 *   settle                 passes, removing what is being deleted, until a plan only waits
 *   run POD                phase Running (POD: master-0, worker-1, or * for all)
 *   exit POD END           ends so; phase Succeeded or Failed accordingly
 *   restart POD [END]      its container was restarted in place (after it had ended so); END is
 *                          CODE[:REASON][@CONTAINER]; of an end with 144 the reason is hardware's
 *   fail POD               phase Failed without an exit code
 *   evict POD              phase Failed, by the system
 *   abort POD              ... before its container began, which "has ended", nobody knows when
 *   starve POD             ... because the operator's own init container gave up waiting
 *   reject POD REASON      so, too, and at once: it was made in this moment
 *   delete POD             someone asks for its deletion
 *   gone POD               its object vanishes
 *   lose POD, find POD     its node is lost from now on; is back
 *   stuck POD REASON       it says that it waits for this
 *   unfit POD              it was made in this moment, and no node has room for it
 *   bind POD NODE          it was made in this moment, and came to this node
 *   sign NODE WORD, heal NODE  it bears this sign of bad hardware; it bears none any more
 *   spare N                so many nodes are as those with signs, well, and not the job's
 *   foreign POD            a pod and a service of that name appear that are not ours
 *   foreign group          ... a PodGroup of the job's name; foreign autoscaler: likewise
 *   orphan POD|group|autoscaler  ... that have no owner
 *   double POD             a second pod of ours in the same place appears
 *   wait MS                time passes
 *   suspend, resume        the user edits the job
 *   scale N                ... the number of workers
 *   limit N                ... backoffLimit
 *   member N               ... schedulingPolicy.minAvailable
 *   unmetered              ... no metrics any more
 *   spoil, mend            ... so that it is invalid; so that it is valid again
 *   group PHASE            the gang scheduler sets the PodGroup's phase
 *   refuse WORD            ... and says why it waits
 *   gang volcano|NAME      the operator's options: who schedules gangs,
 *   autoscale              ... autoscalers are made,
 *   shun MS                ... nodes are avoided this long
 *   patience MS            ... lost nodes and overdue pods are given this long
 *   adopt                  the status is another operator's, which keeps no history
 *   bytes N                the job's object has so many as text
 *   forbid WORD, permit    pods and services cannot be seen from now on, for this reason; can
 *   told NAME VALUE        this of its training is told from now on; a time in seconds of 2000;
 *                          hangPod, hangPhase, hangUnit (with an op): words of its last hang
 *   untold                 ... nothing is
 *   deny WORD, allow       the last create was refused, for this reason; it was not
 *   queue [NAME]           Kueue is there, and the job is for this queue; for none
 *   admit [N], reserve     Kueue admits its Workload (N workers of it); only reserves its quota
 *   preempt REASON, say WORD, deactivate, conclude  ... evicts it; says why it waits; ...
 *   unmake, other NAME     somebody deletes it; one that is not ours is there, too
 *   unseen                 no Workloads can be seen
 *   obstruct [WORD], place JSON  the admission cannot be followed; says this of workers
 *   class NAME, classless T|F    the job's WorkloadPriorityClass; it is not known
 *   template WORD          the hash of the job's templates
 *   state                  the last plan becomes one that sets the status as it is:
 * to look at it */
void cluster_do(struct cluster *cluster, const char *script);

/* A job, what happens to it, and the last plan as plan_print prints it. */
struct story {
    const char *name;
    int masters, workers;
    const char *restart_policy, *run_policy; /* as for cluster_open */
    const char *script;
    const char *plan;
};

/* Tells the stories; fails the test if one ends differently. */
void cluster_tell(const struct story *stories, size_t count);
/* The same, with more in the specification of each job, as for cluster_open. */
void cluster_tell_of(const char *spec, const struct story *stories, size_t count);
#endif
