/* What the job of this process is called, for those who look at it. Pure. */
#ifndef SHOAL_AGENT_LAUNCH_JOB_NAME_H
#define SHOAL_AGENT_LAUNCH_JOB_NAME_H

enum { JOB_NAMESPACE_BYTES = 64 }; /* a DNS label, as Kubernetes has namespaces */

struct job_name {
    const char *name;                     /* "": it has none; borrowed from the arguments */
    char namespace_[JOB_NAMESPACE_BYTES]; /* "": none */
};

/* job: the value of ENV_JOB, or NULL; it wins over the rendezvous' id, which may name one attempt.
 * pod_namespace: of POD_NAMESPACE, or NULL; it wins over the job's. A value that is not
 * "NAMESPACE/NAME" counts as none. */
struct job_name job_name_of(const char *job, const char *rendezvous_id, const char *pod_namespace);
#endif
