/* The nodes of a simulation: pods come to them, and some have bad hardware. */
#include "tests/operator/reconcile/simulation.h"

#include "base/contract.h"
#include "base/mem.h"
#include "operator/job/resources.h"
#include "operator/manifest/pod.h"

#include <inttypes.h>
#include <string.h>

#define below  simulation_below
#define chance simulation_chance

const char *const simulation_nodes[SIMULATION_NODES] = {"a", "b", "c", "d"};

void simulation_draw_nodes(struct simulation *s)
{
    static const int64_t avoid_ms[] = {0, 20000, 3600000}, skews_ms[] = {0, -5000, 5000};
    s->truth->options.avoid_node_ms = avoid_ms[below(s, 3)];
    s->skew_ms = skews_ms[below(s, 3)];
    s->is_pinned = chance(s, 20);
    s->is_crowded = chance(s, s->truth->job->elastic.present ? 50 : 20);
    s->is_cursed = chance(s, 20);
    s->is_marked = chance(s, 40);
    s->pace_ms = s->is_cursed || chance(s, 10) ? 60000 : 1000;
    str_printf(&s->history,
               "nodes: avoided for %" PRId64 " ms; pods are %spinned, and dated %" PRId64
               " ms ahead\n",
               s->truth->options.avoid_node_ms, s->is_pinned ? "" : "not ", s->skew_ms);
}

/* Others mark a node as bad, or as well again. There is room for all, or for none. */
void simulation_move_signs(struct simulation *s)
{
    struct cluster *truth = s->truth;
    const char *node = simulation_nodes[below(s, SIMULATION_NODES)];
    size_t at = 0;
    if (!s->is_marked || !chance(s, 10))
        return;
    while (at < truth->bad_node_count && strcmp(truth->bad_nodes[at].name, node) != 0)
        at++;
    if (at < truth->bad_node_count) {
        truth->bad_nodes[at] = truth->bad_nodes[--truth->bad_node_count];
        str_printf(&s->history, "node %s is well\n", node);
    } else {
        truth->bad_nodes[truth->bad_node_count++] =
            (struct bad_node){.name = node, .sign = "taint", .spares = chance(s, 70) ? 99 : 0};
        str_printf(&s->history, "node %s is marked, %zu spare\n", node,
                   truth->bad_nodes[at].spares);
    }
}

static bool is_told_of(const struct pod *pod, const char *node)
{
    return pod->avoids && strstr(pod->avoids, node);
}

bool simulation_came_untold(const struct pod *pod)
{
    return pod->node && !is_told_of(pod, pod->node) && pod->phase != POD_SUCCEEDED;
}

static void schedule_pod(struct simulation *s, struct pod *pod)
{
    int first = s->is_pinned ? pod->index : below(s, SIMULATION_NODES);
    for (int i = 0; i < SIMULATION_NODES && !pod->node; i++) {
        const char *node = simulation_nodes[(first + i) % SIMULATION_NODES];
        if (s->is_pinned || !is_told_of(pod, node))
            pod->node = node;
    }
    pod->waiting_reason = pod->node ? NULL : "Unschedulable";
}

void simulation_move_waiting(struct simulation *s, struct pod *pod)
{
    /* worker 0 has the least luck, so that others may run without it */
    bool is_first = pod->type == REPLICA_WORKER && pod->index == 0;
    pod->waiting_reason = NULL;
    if (!s->is_crowded || chance(s, is_first ? 5 : 70))
        schedule_pod(s, pod);
    else if (chance(s, 80))
        pod->waiting_reason = "Unschedulable";
}

void simulation_schedule(struct simulation *s)
{
    for (size_t i = 0; i < s->truth->pod_count; i++)
        if (s->truth->pods[i].phase == POD_PENDING && !s->truth->pods[i].node &&
            !s->truth->pods[i].deleted_ms)
            schedule_pod(s, &s->truth->pods[i]);
}

int simulation_exit_code(struct simulation *s)
{
    static const int codes[] = {0, 0, 1, 127, 128, 137, 138, 143, EXIT_HARDWARE};
    return s->is_cursed && chance(s, 80) ? EXIT_HARDWARE
                                         : codes[below(s, (int)array_length(codes))];
}

struct pod_end simulation_pod_end(struct simulation *s, const char *container, int code)
{
    bool told = code == EXIT_HARDWARE && strcmp(container, API_CONTAINER_NAME) == 0;
    return (struct pod_end){
        .container = container,
        .code = code,
        .hardware = told && chance(s, 80) ? "GPU 3 reports Xid 79" : NULL,
    };
}

static const char *annotation(const struct pod_spec *pod, const char *key)
{
    for (size_t i = 0; i < pod->annotations.count; i++)
        if (strcmp(pod->annotations.items[i].key, key) == 0)
            return pod->annotations.items[i].value;
    return NULL;
}

static bool is_affine(const struct pod_spec *pod, const char *node)
{
    for (size_t i = 0; i < pod->avoided.count; i++)
        if (strcmp(pod->avoided.items[i], node) == 0)
            return false;
    return true;
}

void simulation_made_pod(struct simulation *s, const struct action *action,
                         const struct history *history)
{
    const struct pod_options options = {.gang = s->truth->options.gang};
    struct pod *pod = cluster_pod(s->truth, action->name);
    if (pod->created_ms)
        return; /* it was there */
    const struct pod_spec *spec =
        pod_build(s->truth->job, history, action->type, action->index, &options, s->truth->arena);
    int64_t created_ms = s->truth->now_ms + s->skew_ms;
    pod->created_ms = created_ms > 1000 ? created_ms : 1000;
    pod->avoids = annotation(spec, ANNOTATION_AVOIDED_NODES);
    for (size_t i = 0; i < history->avoided_count; i++) {
        const char *node = history->avoided[i].name;
        simulation_check(s, !is_affine(spec, node) && is_told_of(pod, node),
                         "%s is made and may come to node %s, which the job avoids", pod->name,
                         node);
    }
}
