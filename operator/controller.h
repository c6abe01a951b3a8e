/* The controller: informers feed the cache, changed jobs enter the queue, each due job is
 * reconciled, and the executor carries its plan out. A job has one plan in progress at most. Never
 * blocks: its owner polls and calls controller_run_once. */
#ifndef SHOAL_OPERATOR_CONTROLLER_H
#define SHOAL_OPERATOR_CONTROLLER_H

#include "base/clock.h"
#include "operator/job/node.h"
#include "operator/job/snapshot.h"
#include "operator/kube/kube.h"
#include "operator/manifest/pod.h"
#include "operator/metrics.h"

struct controller;
struct board;
struct init_template;

struct controller_options {
    const char *namespace_; /* that is watched; NULL: all */
    int64_t default_backoff_limit;
    bool watch_nodes; /* for these signs of bad hardware: */
    struct node_signs signs;
    bool kueue; /* jobs with a queue name are Kueue's to admit */
    struct reconcile_options reconcile;
    struct pod_options pod;
    struct board *board;              /* shows the jobs; NULL: nobody looks */
    const struct init_template *init; /* NULL: workers get no init container */
    struct http *ask_by;              /* asks pods how they train; NULL: nobody is asked */
    int64_t ask_interval_ms;          /* between two asks of a job */
    int ask_timeout_ms;               /* of an ask */
    uint64_t seed;                    /* of all jitter */
    const struct clocks *clocks;
};

/* kube, clocks and options' texts are borrowed and must outlive it. Sends nothing yet. */
struct controller *controller_open(struct kube *kube, const struct controller_options *options);
void controller_close(struct controller *controller); /* NULL-safe; cancels requests */

/* Does what is due, without blocking. leading: jobs may be reconciled. Otherwise plans are dropped
 * and only the cache is kept up to date, so that this replica can take over at once. Returns in how
 * many milliseconds to call again without news; INT64_MAX: only when something is received. */
int64_t controller_run_once(struct controller *controller, bool leading);

/* Whether all informers have synced. */
bool controller_is_ready(const struct controller *controller);

/* Fills in the controller's part of the view. */
void controller_view(const struct controller *controller, struct metrics_view *view);
struct metrics *controller_metrics(const struct controller *controller);
#endif
