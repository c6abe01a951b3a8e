/* Which nodes the job avoids, by rules of its own. */
#include "tests/operator/reconcile/simulation.h"

#include <string.h>

#define LEAVES_UNCOUNTED 4
#define LEAVE_MS         60000

static int64_t *avoided_ms(struct simulation *s, const char *node)
{
    for (int i = 0; node && i < SIMULATION_NODES; i++)
        if (strcmp(simulation_nodes[i], node) == 0)
            return &s->oracle.avoided_ms[i];
    return NULL;
}

bool simulation_leaves_node(struct simulation *s, const struct pod *pod)
{
    const int64_t *since_ms = avoided_ms(s, pod->node);
    return since_ms && *since_ms && simulation_came_untold(pod);
}

bool simulation_blames_node(struct simulation *s, const struct pod *pod)
{
    bool hardware = pod->end.hardware && s->oracle.hardware_leaves <= LEAVES_UNCOUNTED;
    return simulation_leaves_node(s, pod) && (hardware || simulation_lost_peer(pod));
}

/* A pod ended by bad hardware, which was not looked at yet, and its node is not avoided. */
static void look_at_hardware(struct simulation *s, const struct pod *pod)
{
    struct oracle *oracle = &s->oracle;
    int64_t *since_ms = avoided_ms(s, pod->node), now_ms = s->seen.now_ms;
    if (!since_ms || *since_ms || !pod->end.hardware || pod->deleted_ms ||
        pod->phase == POD_SUCCEEDED || !simulation_has_open_place(s, pod) ||
        simulation_failures_of(pod) <= *simulation_counted(s, pod))
        return;
    *since_ms = now_ms;
    if (!oracle->hardware_ms || now_ms - oracle->hardware_ms >= LEAVE_MS) {
        oracle->hardware_leaves++;
        oracle->hardware_ms = now_ms;
    }
}

/* Others have marked its node, and it is there by chance. */
static void look_at_sign(struct simulation *s, const struct pod *pod)
{
    int64_t *since_ms = avoided_ms(s, pod->node);
    bool is_bad = false;
    for (size_t i = 0; since_ms && i < s->seen.bad_node_count; i++)
        is_bad |=
            strcmp(s->seen.bad_nodes[i].name, pod->node) == 0 && s->seen.bad_nodes[i].spares > 0;
    if (is_bad && !*since_ms && !pod->deleted_ms && simulation_came_untold(pod) &&
        simulation_has_open_place(s, pod))
        *since_ms = s->seen.now_ms;
}

void simulation_judge_nodes(struct simulation *s)
{
    int64_t lasts_ms = s->seen.options.avoid_node_ms;
    for (int i = 0; i < SIMULATION_NODES; i++)
        if (s->oracle.avoided_ms[i] <= s->seen.now_ms - lasts_ms)
            s->oracle.avoided_ms[i] = 0;
    for (size_t i = 0; i < s->seen.pod_count && lasts_ms > 0; i++)
        look_at_hardware(s, &s->seen.pods[i]);
    for (size_t i = 0; i < s->seen.pod_count && lasts_ms > 0; i++)
        look_at_sign(s, &s->seen.pods[i]);
}

void simulation_check_nodes(struct simulation *s)
{
    const struct history *history = &s->truth->status.history;
    size_t avoided = 0;
    for (int i = 0; i < SIMULATION_NODES; i++)
        avoided += s->oracle.avoided_ms[i] != 0;
    simulation_check(s, history->avoided_count == avoided, "%zu nodes are avoided, %zu are bad",
                     history->avoided_count, avoided);
    for (size_t i = 0; i < history->avoided_count; i++)
        simulation_check(s, *avoided_ms(s, history->avoided[i].name), "node %s is avoided and good",
                         history->avoided[i].name);
    simulation_check(s, history->hardware_leaves == s->oracle.hardware_leaves,
                     "%d times bad hardware was left, %d are counted", s->oracle.hardware_leaves,
                     history->hardware_leaves);
}
