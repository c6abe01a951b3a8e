/* The changes of a job's last plan that the cache does not show yet, as client-go's expectations.
 * Reconciling an old snapshot does no harm: names are deterministic and deletes have UID
 * preconditions. But it would try to create every pod of a big job a second time, and the API
 * server would refuse each. So a job is not reconciled again until the cache shows the changes, for
 * five seconds at most. By then a watch event was lost or somebody else undid the change, and
 * reconciling finds out which.
 *
 * Objects are identified by UID, taken from the answer to a create if there was one. A
 * resourceVersion is opaque: it is only compared with the one that was overwritten. Pure. */
#ifndef SHOAL_OPERATOR_APPLY_EXPECT_H
#define SHOAL_OPERATOR_APPLY_EXPECT_H

#include "operator/job/snapshot.h"
#include "operator/reconcile/plan.h"

#define EXPECT_MAX_MS 5000

struct expect;

struct expect *expect_open(void);
void expect_close(struct expect *expect); /* NULL-safe */

/* The action succeeded. uid: of the created object; NULL: the answer was lost, and the object is
 * identified by its name. Only pods, services and new PodGroups are expected. */
void expect_done(struct expect *expect, const struct action *action, const char *uid);
/* The job was written, or a conflict showed that it is newer than this version. */
void expect_newer(struct expect *expect, const char *resource_version);

bool expect_is_empty(const struct expect *expect); /* nothing is expected */
/* Whether the snapshot shows all expected changes; forgets those that it shows. resource_version:
 * of the job in the snapshot. */
bool expect_is_met(struct expect *expect, const struct snapshot *snapshot,
                   const char *resource_version);

enum expect_kind { EXPECT_JOB, EXPECT_POD, EXPECT_SERVICE, EXPECT_POD_GROUP, EXPECT_KINDS };
/* Which kinds expect_is_met, called just before, found changes of missing. */
void expect_missing(const struct expect *expect, const struct snapshot *snapshot,
                    const char *resource_version, bool ret_missing[EXPECT_KINDS]);
#endif
