/* What is made of nodes as an API server sends them: read, and judged. */
#include "tests/support.h"

#include "base/json.h"
#include "base/lines.h"
#include "base/mem.h"
#include "operator/decode/decode_node.h"
#include "tests/operator/cache/objects.h"

#include <string.h>

#define READY      "{type: Ready, status: 'True', reason: KubeletReady}"
#define GPUS       "capacity: {cpu: '96', memory: 2Ti, nvidia.com/gpu: '8', rdma/ib: 1k}"
#define GPU_KIND   "nvidia.com/gpu=8 rdma/ib=1k"
#define CORDONED   "{key: node.kubernetes.io/unschedulable, effect: NoSchedule}"
#define NVSENTINEL "{key: nvidia.com/gpu-xid-error, value: 'true', effect: NoSchedule}"

static const struct {
    const char *spec, *status; /* insides of flow mappings */
    const char *sign;          /* NULL: none */
    bool takes_pods;
    const char *kind;
} nodes[] = {
    {"", "", NULL, false, ""},
    {"", "conditions: [" READY "], " GPUS, NULL, true, GPU_KIND},
    {"", "conditions: [{type: Ready, status: Unknown}]", NULL, false, ""},
    /* a drain is no sign, whoever is about to drain */
    {"unschedulable: true, taints: [" CORDONED "]", "conditions: [" READY "]", NULL, false, ""},
    {"unschedulable: true", "conditions: [" READY "]", NULL, false, ""},
    {"taints: [{key: node.kubernetes.io/disk-pressure, effect: NoSchedule}]",
     "conditions: [" READY "]", NULL, false, ""},
    {"taints: [{key: node.kubernetes.io/memory-pressure, effect: PreferNoSchedule}]",
     "conditions: [" READY "]", NULL, true, ""},
    /* nodes that are kept for some pods are of a kind, whatever the order */
    {"taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}, {key: team, value: a, "
     "effect: NoExecute}]",
     "conditions: [" READY "], " GPUS, NULL, true,
     "nvidia.com/gpu=8 nvidia.com/gpu=present:NoSchedule rdma/ib=1k team=a:NoExecute"},
    {"taints: [{key: team, value: a, effect: NoExecute}, {key: nvidia.com/gpu, value: present, "
     "effect: NoSchedule}]",
     "conditions: [" READY "], " GPUS, NULL, true,
     "nvidia.com/gpu=8 nvidia.com/gpu=present:NoSchedule rdma/ib=1k team=a:NoExecute"},
    /* the signs of others, which leave the kind as it was */
    {"taints: [" NVSENTINEL ", " CORDONED "]", "conditions: [" READY "], " GPUS,
     "taint nvidia.com/gpu-xid-error=true:NoSchedule", false, GPU_KIND},
    {"taints: [{key: nvlink.health/link-down, effect: NoExecute}]", "conditions: [" READY "]",
     "taint nvlink.health/link-down:NoExecute", true, ""},
    {"taints: [{key: nvidia.com/gpu-error, value: degraded, effect: PreferNoSchedule}]",
     "conditions: [" READY "]", NULL, true, ""},
    {"", "conditions: [" READY ", {type: GpuMemWatch, status: 'False'}]", NULL, true, ""},
    {"",
     "conditions: [" READY
     ", {type: GpuMemWatch, status: 'True', reason: HardwareFailure, message: "
     "'[DCGM_FR_FAULTY_MEMORY] GPU 0'}]",
     "condition GpuMemWatch is True (HardwareFailure: [DCGM_FR_FAULTY_MEMORY] GPU 0)", true, ""},
    {"", "conditions: [" READY ", {type: KernelDeadlock, status: 'True', reason: DockerHung}]",
     "condition KernelDeadlock is True (DockerHung)", true, ""},
    {"", "conditions: [" READY ", {type: AcceleratedHardwareReady, status: 'False'}]",
     "condition AcceleratedHardwareReady is False", true, ""},
    {"", "conditions: [" READY ", {type: AcceleratedHardwareReady, status: 'True'}]", NULL, true,
     ""},
    {"", "conditions: [" READY ", {type: KernelDeadlock, status: Unknown}]", NULL, true, ""},
};

static struct node read(const char *spec, const char *status, struct arena *arena)
{
    struct lines problems;
    struct json *object =
        object_from("metadata: {name: m}\nspec: {%s}\nstatus: {%s}\n", spec, status);
    lines_init(&problems, arena);
    struct node node = decode_node(object, arena, &problems);
    assert_string_equal(lines_join(&problems), "");
    assert_string_equal(node.name, "m");
    json_free(object);
    return node;
}

static void assert_text(const char *text, const char *expected)
{
    if (!expected || !text)
        assert_ptr_equal(text, expected);
    else
        assert_string_equal(text, expected);
}

static void nodes_are_judged(void **state)
{
    (void)state;
    static const struct node_signs usual = {NODE_TAINTS, NODE_CONDITIONS};
    for (size_t i = 0; i < array_length(nodes); i++) {
        auto_arena struct arena *arena = arena_open();
        struct node node = read(nodes[i].spec, nodes[i].status, arena);
        assert_text(node_sign(&node, &usual, arena), nodes[i].sign);
        assert_int_equal(node_takes_pods(&node), nodes[i].takes_pods);
        assert_string_equal(node_kind(&node, &usual, arena), nodes[i].kind);
    }
}

/* By lists of the user's own, of a node with taint a/b=c:NoSchedule and condition D=True. */
static void lists_say_what_is_a_sign(void **state)
{
    (void)state;
    static const struct {
        const char *taints, *conditions;
        bool is_bad;
    } rows[] = {
        {"", "", false},
        {"a/b", "", true},
        {" x , a/b ", "", true},
        {"a/b=c", "", true},
        {"a/b=x", "", false},
        {"a/b:NoSchedule", "", true},
        {"a/b:NoExecute", "", false},
        {"a/b=c:NoSchedule,x", "", true},
        {"a/*", "", true},
        {"a*:NoExecute", "", false},
        {"a", "", false},
        {"a/b/", "", false},
        {"", "D", true},
        {"", "X, D=True", true},
        {"", "D=False,D=Unknown", false},
        {"", "d", false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct node node = read("taints: [{key: a/b, value: c, effect: NoSchedule}]",
                                "conditions: [{type: D, status: 'True'}]", arena);
        const struct node_signs signs = {rows[i].taints, rows[i].conditions};
        assert_null(node_taints_problem(signs.taints, arena));
        assert_null(node_conditions_problem(signs.conditions, arena));
        if ((node_sign(&node, &signs, arena) != NULL) != rows[i].is_bad)
            fail_msg("taints %s, conditions %s", rows[i].taints, rows[i].conditions);
    }
}

static void lists_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *list, *problem;
        const char *(*check)(const char *list, struct arena *arena);
    } rows[] = {
        {NODE_TAINTS, NULL, node_taints_problem},
        {"a,=b", "=b: must be KEY[=VALUE][:EFFECT]", node_taints_problem},
        {"*", "*: must be KEY[=VALUE][:EFFECT]", node_taints_problem},
        {"a:Never", "a:Never: the effect must be NoSchedule, NoExecute or PreferNoSchedule",
         node_taints_problem},
        {"node.kubernetes.io/unschedulable",
         "node.kubernetes.io/unschedulable: that is a drain, not bad hardware",
         node_taints_problem},
        {"node.*:NoSchedule", "node.*:NoSchedule: that is a drain, not bad hardware",
         node_taints_problem},
        {NODE_CONDITIONS, NULL, node_conditions_problem},
        {"A=Yes", "A=Yes: must be TYPE[=True|False|Unknown]", node_conditions_problem},
        {"=True", "=True: must be TYPE[=True|False|Unknown]", node_conditions_problem},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        assert_text(rows[i].check(rows[i].list, arena), rows[i].problem);
    }
}

/* A message is the detector's, and may be long; an event's is not. */
static void long_messages_are_cut(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    char message[5000];
    memset(message, 'x', sizeof message - 1);
    message[sizeof message - 1] = '\0';
    struct node_condition condition = {"KernelDeadlock", "True", "Hung", message};
    const struct node node = {.conditions = &condition, .condition_count = 1};
    const struct node_signs signs = {"", NODE_CONDITIONS};
    assert_true(strlen(node_sign(&node, &signs, arena)) < 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_judged),
        cmocka_unit_test(lists_say_what_is_a_sign),
        cmocka_unit_test(lists_that_make_no_sense_are_refused),
        cmocka_unit_test(long_messages_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
