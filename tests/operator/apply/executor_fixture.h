/* An executor, a cluster with one job, and an API server that answers when the test says so. */
#ifndef SHOAL_TESTS_OPERATOR_APPLY_EXECUTOR_FIXTURE_H
#define SHOAL_TESTS_OPERATOR_APPLY_EXECUTOR_FIXTURE_H

#include "base/str.h"
#include "operator/apply/executor.h"
#include "tests/operator/apply/late_api.h"
#include "tests/operator/cluster.h"

struct executor_fixture {
    struct kube kube;
    struct executor *executor;
    struct cluster *cluster;
    struct json *object;
    int overs;
    struct error failure; /* of the last one that was over, like the rest */
    bool is_new, written, job_deleted;
    int64_t accounted_ms; /* of what was written, its goodput */
    int64_t requeue_ms;
    bool rereads;     /* what to say when something is unseen */
    struct str asked; /* then */
};

extern int64_t executor_fixture_now_ms; /* of all its clocks; 1000 at first */

/* A master and so many workers. */
struct executor_fixture *executor_fixture_open(int workers);
void executor_fixture_close(struct executor_fixture *f);

/* Starts a plan of the job under this key; that of a first pass. */
void executor_fixture_start_plan(struct executor_fixture *f, const char *key,
                                 const struct plan *plan);
void executor_fixture_start(struct executor_fixture *f, const char *key);

/* executor_wait_ms of job "ns/j", with what is in the cluster as the view. */
int64_t executor_fixture_early_ms(struct executor_fixture *f);
#endif
