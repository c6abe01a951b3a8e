/* When a job is suspended: while its user or Kueue asks for it, and then until its last pod is
 * gone. A resumed job thus starts without pods, and with the templates as they are then: Kueue
 * edits them while the job is suspended. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_SUSPEND_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_SUSPEND_H

#include "operator/reconcile/view.h"

bool policy_suspended(const struct job *job, const struct job_status *status,
                      const struct view *view);
#endif
