#include "operator/active_plans.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const size_t most[QUEUE_LANES] = {
    [QUEUE_URGENT] = ACTIVE_PLANS_URGENT_MAX, [QUEUE_PATIENT] = ACTIVE_PLANS_PATIENT_MAX};

bool active_plans_have_room(const struct active_plans *active, enum queue_lane lane)
{
    return active->of_lane[lane] < most[lane] && active->held_bytes < ACTIVE_PLANS_BYTES_MAX;
}

static bool only_tells(const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->actions[i].kind != ACTION_SET_STATUS && plan->actions[i].kind != ACTION_EVENT)
            return false;
    return true;
}

const struct active_plan *active_plans_add(struct active_plans *active, const char *key,
                                           enum queue_lane lane, struct cached_job *job,
                                           const struct job_status *status, const struct plan *plan)
{
    assert(active->count < ACTIVE_PLANS_MAX);
    struct active_plan *added = &active->plans[active->count++];
    *added = (struct active_plan){.job = job,
                                  .status = status,
                                  .key = xstrdup(key),
                                  .lane = lane,
                                  .only_tells = only_tells(plan)};
    active->of_lane[lane]++;
    active->held_bytes += job->bytes;
    active->telling += added->only_tells;
    return added;
}

static size_t place_of(const struct active_plans *active, const char *key)
{
    size_t i = 0;
    while (i < active->count && strcmp(active->plans[i].key, key) != 0)
        i++;
    return i;
}

const struct active_plan *active_plans_find(const struct active_plans *active, const char *key)
{
    size_t i = place_of(active, key);
    return i < active->count ? &active->plans[i] : NULL;
}

void active_plans_remove(struct active_plans *active, const char *key)
{
    size_t i = place_of(active, key);
    if (i == active->count)
        return;
    struct active_plan *plan = &active->plans[i];
    active->held_bytes -= plan->job->bytes;
    cache_release_job(plan->job);
    free(plan->key);
    active->of_lane[plan->lane]--;
    active->telling -= plan->only_tells;
    *plan = active->plans[--active->count];
}
