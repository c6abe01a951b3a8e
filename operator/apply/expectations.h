/* The changes of a job's last plan that the cache does not show yet, as client-go's expectations.
 * Reconciling an old snapshot does no harm: names are deterministic and deletes have UID
 * preconditions. But it would try to create every pod of a big job a second time, and the API
 * server would refuse each. So a job is not reconciled again until the cache shows the changes, for
 * five seconds at most. By then a watch event was lost or somebody else undid the change, and
 * reconciling finds out which.
 *
 * Objects are identified by UID, taken from the answer to a create if there was one. A
 * resourceVersion is opaque: it is only compared with the one that was overwritten. Pure. */
#ifndef SHOAL_OPERATOR_APPLY_EXPECTATIONS_H
#define SHOAL_OPERATOR_APPLY_EXPECTATIONS_H

#include "operator/job/snapshot.h"
#include "operator/reconcile/plan.h"

#define EXPECT_MAX_MS 5000

struct expectations;

struct expectations *expectations_open(void);
void expectations_close(struct expectations *expect); /* NULL-safe */

/* The action succeeded. uid: of the created object; NULL: the answer was lost, and the object is
 * identified by its name. Only pods, services, Workloads, new PodGroups and new autoscalers are
 * expected. */
void expectations_done(struct expectations *expect, const struct action *action, const char *uid);
/* The action, a delete of a pod as it was seen, met another version of it (or another pod). */
void expectations_changed(struct expectations *expect, const struct action *action);
/* The job was written, or a conflict showed that it is newer than this version. */
void expectations_newer(struct expectations *expect, const char *resource_version);

bool expectations_is_empty(const struct expectations *expect); /* nothing is expected */
/* Whether the snapshot shows all expected changes; forgets those that it shows. resource_version:
 * of the job in the snapshot. */
bool expectations_is_met(struct expectations *expect, const struct snapshot *snapshot,
                         const char *resource_version);

enum expectation_kind {
    EXPECTATION_JOB,
    EXPECTATION_POD,
    EXPECTATION_SERVICE,
    EXPECTATION_POD_GROUP,
    EXPECTATION_AUTOSCALER,
    EXPECTATION_WORKLOAD,
    EXPECTATION_KINDS
};
/* What the snapshot shows of the changes to objects of one kind; the last that holds. */
enum expectation_view {
    VIEW_IS_MET,
    VIEW_LACKS,  /* what was made is not there: somebody may have undone it */
    VIEW_IS_OLD, /* what was deleted or has changed is there as before: nobody can undo that */
};
/* The view of each kind, as expectations_is_met, called just before, found it. */
void expectations_view(const struct expectations *expect, const struct snapshot *snapshot,
                       const char *resource_version,
                       enum expectation_view ret_views[EXPECTATION_KINDS]);
#endif
