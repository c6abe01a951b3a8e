/* Reads manifests: text to jobs. A file may hold several documents and Lists. PyTorchJobs are
 * decoded, validated and defaulted; a note names everything else. Needs no cluster. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_H
#define SHOAL_OPERATOR_DECODE_DECODE_H

#include "base/error.h"
#include "base/lines.h"
#include "operator/job/types.h"

struct arena;
struct json;

/* The contents of a file. Close it when nothing uses its jobs any more. */
struct manifest {
    struct arena *arena;
    struct json *documents; /* owned; the jobs' raw templates point into it */
    struct job **jobs; /* in the order of the file; those with `invalid` set have no defaults */
    size_t job_count;
    /* errors: "FILE:LINE: document N (KIND NAME): PATH: what, what is allowed" */
    struct lines problems;
    /* fields that are ignored, or understood but not enforced, in the same form */
    struct lines notes;
};

/* Reads YAML or JSON, a subset of it. Messages name the text by `source`: a path, or "-". Jobs
 * without backoffLimit get `default_backoff_limit`. Returns -1 with the first problem if the text
 * is not YAML (with line and column), contains no PyTorchJob, or has any problem. Always sets
 * *ret_manifest. */
int decode_manifest(const char *text, size_t bytes, const char *source,
                    int64_t default_backoff_limit, struct manifest **ret_manifest,
                    struct error *err);
void decode_close(struct manifest *manifest); /* NULL-safe */

/* Decodes, validates and defaults one PyTorchJob object of an API server or of a file. Errors are
 * added to `problems`, each line beginning with the path of its field. job->invalid then holds all
 * of them and the job has no defaults. `object` must outlive the job.
 *
 * notes: gets the fields that are dropped, or not enforced outside a cluster. NULL for an object of
 * an API server, which has checked it. If it is given, a person wrote the manifest: a field whose
 * name is nearly a known one is an error. In a job with errors each unknown field is one, as it may
 * be a misspelt one that is missing elsewhere. */
struct job *decode_job(const struct json *object, int64_t default_backoff_limit,
                       struct arena *arena, struct lines *problems, struct lines *notes);
#endif
