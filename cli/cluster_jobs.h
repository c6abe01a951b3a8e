/* The jobs of a cluster, their pods and their events, as structs (job_facts.h) in an arena. Errors
 * are those of cluster_get. */
#ifndef SHOAL_CLI_CLUSTER_JOBS_H
#define SHOAL_CLI_CLUSTER_JOBS_H

#include "cli/cluster.h"
#include "cli/job_facts.h"

struct job_list {
    struct job_facts *items;
    size_t count;
};

struct pod_list {
    struct pod_facts *items; /* by type and index */
    size_t count;
};

struct event_list {
    struct event_facts *items; /* in the order of time */
    size_t count;
};

/* namespace_ NULL: of all; selector: of labels, "a=b,c"; NULL: all. */
int cluster_jobs(struct cluster *cluster, const char *namespace_, const char *selector,
                 struct arena *arena, struct job_list *ret_jobs, struct error *err);

/* Of cluster_namespace. ERR_INPUT: there is no such job; the error names the nearest that there
 * is. */
int cluster_job(struct cluster *cluster, const char *name, struct arena *arena,
                struct job_facts *ret_job, struct error *err);

int cluster_pods(struct cluster *cluster, const struct job_facts *job, struct arena *arena,
                 struct pod_list *ret_pods, struct error *err);
int cluster_events(struct cluster *cluster, const struct job_facts *job, struct arena *arena,
                   struct event_list *ret_events, struct error *err);
#endif
