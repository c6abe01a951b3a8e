/* From text to jobs: the one place of the operator where manifests are read. A file may hold
 * several documents and Lists; PyTorchJobs are decoded, validated and given their defaults,
 * everything else is noted. Needs no cluster; does not know what will be done with a job. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_H
#define SHOAL_OPERATOR_DECODE_DECODE_H

#include "base/error.h"
#include "base/lines.h"
#include "operator/job/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct arena;
struct json_t;

/* What a file said. Close it only when nothing uses its jobs any more. */
struct manifest {
    struct arena *arena;
    struct json_t *documents; /* owned; the jobs' raw templates point into it */
    struct job **jobs; /* in the order of the file; those with `invalid` set have no defaults */
    size_t job_count;
    struct lines problems; /* all that is wrong: "FILE:LINE: document N (KIND NAME): PATH: what,
                              what is allowed" */
    struct lines notes;    /* what is ignored or understood but not enforced, in the same form */
};

/* Reads YAML or JSON (of which YAML is a superset). `source` names the text in messages: a path, or
 * "-". `default_backoff_limit` serves jobs that state none. Returns -1 if the text is no YAML
 * (message with line and column), holds no PyTorchJob, or if anything in it is wrong: the message
 * is then the first problem. *ret_manifest is set in any case. */
int decode_manifest(const char *text, size_t bytes, const char *source,
                    int64_t default_backoff_limit, struct manifest **ret_manifest,
                    struct error *err);
void decode_close(struct manifest *manifest); /* NULL-safe */

/* One PyTorchJob object, as an API server sends it or a file holds it: decoded, validated and given
 * its defaults. What is wrong is added to `problems`, each line starting with its field path;
 * job->invalid then holds all of it and there are no defaults. Fields that are dropped, or not
 * enforced outside a cluster, are added to `notes`. NULL: nobody wants to know, what came from an
 * API server was checked there. Otherwise a person wrote it: a field that is almost a known one is
 * wrong, too, and of a job in which something is wrong the unknown fields are among the problems,
 * since one of them may be what is missing elsewhere. `object` must outlive the job. */
struct job *decode_job(const struct json_t *object, int64_t default_backoff_limit,
                       struct arena *arena, struct lines *problems, struct lines *notes);

#ifdef __cplusplus
}
#endif
#endif
