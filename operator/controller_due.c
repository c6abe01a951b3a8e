#include "operator/controller_internal.h"
#include "operator/job/condition.h"

enum {
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 60 * 1000,
    PASSES_PER_RUN_MAX = 100, /* of each lane; then what is heard meanwhile has its turn */
};

static enum queue_lane lane_of(bool finished)
{
    return finished ? QUEUE_PATIENT : QUEUE_URGENT;
}

void controller_due_restart(struct controller *c)
{
    queue_close(c->queue);
    c->queue = queue_open(BACKOFF_FIRST_MS, BACKOFF_MAX_MS);
}

void controller_due_now(struct controller *c, const char *key, bool finished)
{
    queue_add(c->queue, key, lane_of(finished), c->options.clocks->steady_ms());
}

void controller_due_in(struct controller *c, const char *key, const struct job_status *status,
                       int64_t delay_ms)
{
    queue_add(c->queue, key, lane_of(condition_finished(status)),
              c->options.clocks->steady_ms() + delay_ms);
}

void controller_due_at(struct controller *c, const char *key, const struct job_status *status,
                       int64_t wall_ms)
{
    if (wall_ms)
        controller_due_in(c, key, status, wall_ms - c->options.clocks->wall_ms());
}

static void run_lane(struct controller *c, enum queue_lane lane, int64_t now_ms)
{
    for (int i = 0; i < PASSES_PER_RUN_MAX && active_plans_have_room(&c->active, lane) &&
                    !informers_list_still(c->informers);
         i++) {
        const char *key = queue_pop(c->queue, lane, now_ms);
        if (!key)
            return;
        controller_pass_over(c, key, lane);
    }
}

void controller_due_run(struct controller *c, int64_t now_ms)
{
    for (enum queue_lane lane = QUEUE_URGENT; lane < QUEUE_LANES; lane++)
        run_lane(c, lane, now_ms);
}

int64_t controller_due_next_ms(const struct controller *c, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;
    for (enum queue_lane lane = QUEUE_URGENT; lane < QUEUE_LANES; lane++) {
        if (!active_plans_have_room(&c->active, lane)) /* the end of a plan comes first */
            continue;
        int64_t lane_ms = clock_until_ms(queue_due(c->queue, lane), now_ms);
        next_ms = lane_ms < next_ms ? lane_ms : next_ms;
    }
    return next_ms;
}
