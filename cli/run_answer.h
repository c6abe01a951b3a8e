/* What `shoal run` answers to who asks for its job (inbox.h), and what `shoal get --local` reads of
 * that: the job (job_answer.h), its replicas, what happened and where it is served. Pure. */
#ifndef SHOAL_CLI_RUN_ANSWER_H
#define SHOAL_CLI_RUN_ANSWER_H

#include "cli/story.h"
#include "operator/local/local_events.h"

struct json;

struct run_answer {
    const struct job *job;
    const struct job_status *status;
    const struct pod_facts *pods;
    size_t pod_count;
    const struct local_events *events;
    const char *page; /* its address; "": not known */
};

/* The caller owns it. */
struct json *run_answer_make(const struct run_answer *answer);

/* When the run began. The job's creationTimestamp has no parts of a second. */
int64_t run_answer_began_ms(const struct json *answer);

/* The story, and its job in *ret_job; all of it lives in the arena. Without replicas, as they were
 * too many for an answer, the story says so. */
void run_answer_read(const struct json *answer, int64_t now_ms, struct arena *arena,
                     struct job_facts *ret_job, struct story *ret_story);
#endif
