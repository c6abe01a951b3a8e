/* When a job is suspended: while its user, or Kueue, wants it, and after that until the last pod of
 * the time before is gone. A resumed job thus starts from nothing, with the templates as they are
 * then (Kueue edits them while the job is suspended), and no pod of before is taken for one of
 * after. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_SUSPEND_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_SUSPEND_H

#include "operator/reconcile/view.h"

bool policy_suspended(const struct job *job, const struct job_status *status,
                      const struct view *view);
#endif
