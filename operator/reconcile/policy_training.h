/* What the job's training says of itself, in its status, and the story that follows from it: the
 * first step, checkpoints, ranks that hang or started again. */
#ifndef SHOAL_OPERATOR_RECONCILE_POLICY_TRAINING_H
#define SHOAL_OPERATOR_RECONCILE_POLICY_TRAINING_H

struct reconcile_context;

/* Takes over what was told since the last status, with an event for what is news. While no pod of
 * rank 0 runs, nothing is known of how the training goes. */
void policy_training_follow(struct reconcile_context *ctx);

/* The job is suspended: it keeps its last numbers. */
void policy_training_suspend(struct reconcile_context *ctx);
/* It is resumed. */
void policy_training_resume(struct reconcile_context *ctx);
/* It is over, and keeps them, too. */
void policy_training_finish(struct reconcile_context *ctx);
#endif
