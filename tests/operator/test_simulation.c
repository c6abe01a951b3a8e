/* Random histories of a job. Whatever happens, the invariants hold after every step and the world
 * comes to rest at the end. A failing run prints its history and its seed: SIMULATION_SEED=n runs
 * that one alone. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/condition.h"
#include "operator/decode_status.h"
#include "operator/job_status.h"
#include "operator/manifest.h"
#include "tests/operator/simulation.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS     2000
#define STEPS     80
#define MAX_RESTS 60 /* passes until the world must be at rest */

/* ---- anything happens ---- */

/* Only waiting is left: until then, or for ever. Returns whether for ever. */
static bool rests(struct simulation *s)
{
    const struct plan *plan = s->seen.plan;
    if (plan->count == 0 || s->truth->job_deleted)
        return true;
    if (plan->actions[0].kind == ACTION_REQUEUE) {
        simulation_check(s, plan->actions[0].at_ms > s->truth->now_ms,
                         "a pass with nothing to do wants another one at once");
        s->truth->now_ms = plan->actions[0].at_ms;
    }
    return false;
}

static void come_to_rest(struct simulation *s)
{
    for (int i = 0; i < MAX_RESTS; i++) {
        simulation_end_deleted(s);
        simulation_look(s);
        simulation_pass(s, false);
        simulation_check_world(s);
        if (rests(s)) {
            if (!s->truth->job_deleted)
                simulation_check_rest(s);
            return;
        }
    }
    simulation_fail(s, "no rest after %d passes", MAX_RESTS);
}

static void run(uint64_t seed)
{
    struct simulation *s = simulation_open(seed);
    for (int i = 0; i < STEPS && !s->truth->job_deleted; i++) {
        simulation_move(s);
        if (simulation_chance(s, 40))
            simulation_look(s);
        else if (simulation_chance(s, 50))
            simulation_glance(s);
        if (simulation_chance(s, 70))
            simulation_pass(s, true);
        simulation_check_world(s);
    }
    if (!s->truth->job_deleted)
        come_to_rest(s);
    simulation_close(s);
}

static void invariants_hold_in_every_history(void **state)
{
    (void)state;
    int64_t seed;
    if (str_to_i64(getenv("SIMULATION_SEED"), 1, INT64_MAX, &seed)) {
        run((uint64_t)seed);
        return;
    }
    for (uint64_t i = 1; i <= SEEDS; i++)
        run(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invariants_hold_in_every_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
