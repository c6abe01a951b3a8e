/* One pass of reconcile under way: what its parts share. Only for reconcile and what it is made of.
 */
#ifndef SHOAL_OPERATOR_RECONCILE_PASS_H
#define SHOAL_OPERATOR_RECONCILE_PASS_H

#include "base/mem.h"
#include "operator/job/world.h"
#include "operator/reconcile/plan.h"
#include "operator/reconcile/view.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pass {
    const struct world *world;
    const struct job *job;
    struct arena *arena;
    struct plan *plan;
    struct view view;
    struct job_status status; /* what it will be */
    int64_t requeue_ms;       /* the earliest that was asked for; POLICY_NEVER */
};

#define pass_text(pass, ...) arena_printf((pass)->arena, __VA_ARGS__)

struct pass pass_open(const struct world *world, struct arena *arena);

void pass_event(struct pass *pass, enum event_type type, const char *reason, const char *message);
/* condition_set on the status to be. */
bool pass_condition(struct pass *pass, enum condition_type type, bool value, const char *reason,
                    const char *message);
/* Another pass is due then; the earliest counts. */
void pass_requeue(struct pass *pass, int64_t at_ms);
/* Adds the status if it changes, and the requeue. Once, at the end. */
void pass_publish(struct pass *pass);

#ifdef __cplusplus
}
#endif
#endif
