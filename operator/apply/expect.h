/* What a job's last plan did and the caches have not shown yet. A pass on a view without our own
 * writes is harmless, as names are deterministic and deletes name UIDs, but it would create every
 * pod of a big job twice and be told so by as many refusals. So the job is not passed again until
 * the view shows what was done, for five seconds at most: by then an event was lost or somebody
 * else undid it, and a pass finds out which.
 *
 * Objects are known by UID, which the answer to a create tells if it is not lost; resourceVersions
 * are opaque and only compared with the one that was written over. Pure. */
#ifndef SHOAL_OPERATOR_APPLY_EXPECT_H
#define SHOAL_OPERATOR_APPLY_EXPECT_H

#include "operator/job/snapshot.h"
#include "operator/reconcile/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EXPECT_MAX_MS 5000

struct expect;

struct expect *expect_open(void);
void expect_close(struct expect *expect); /* NULL-safe */

/* This action was done. uid: of the object that a create made, NULL if nobody said: then it is
 * known by its name. Only pods, services and a new PodGroup are expected. */
void expect_done(struct expect *expect, const struct action *action, const char *uid);
/* The job was written, or found to be newer than this version. */
void expect_newer(struct expect *expect, const char *resource_version);

bool expect_is_empty(const struct expect *expect); /* nothing is expected */
/* Whether the view shows it all; forgets what it does show. resource_version: the job's in the
 * view. */
bool expect_is_met(struct expect *expect, const struct snapshot *snapshot,
                   const char *resource_version);

enum expect_kind { EXPECT_JOB, EXPECT_POD, EXPECT_SERVICE, EXPECT_POD_GROUP, EXPECT_KINDS };
/* Of which kinds something is missing that expect_is_met has just found missing. */
void expect_missing(const struct expect *expect, const struct snapshot *snapshot,
                    const char *resource_version, bool ret_missing[EXPECT_KINDS]);

#ifdef __cplusplus
}
#endif
#endif
