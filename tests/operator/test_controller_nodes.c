/* The operator on real sockets, which watches nodes. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/controller_fixture.h"

#define NODE(name, spec)                                                                           \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec "},\"status\":{\"conditions\":[{"      \
    "\"type\":\"Ready\",\"status\":\"True\"}]}}"

/* The pod leaves a node that others have marked, with its grace period, as another is like it. */
static void a_marked_node_is_left(void **state)
{
    (void)state;
    static const char nodes[] = LIST_OF(NODE(
        "a",
        "\"taints\":[{\"key\":\"nvidia.com/gpu-error\",\"effect\":\"NoSchedule\"}]") "," NODE("b",
                                                                                              ""));
    auto_free char *pods = xasprintf(LIST_OF(POD), 1);
    const struct fake_answer answers[] = {
        KEPT("GET " PODS "limit", pods),
        KEPT("GET /api/v1/nodes?limit", nodes),
        SILENT("GET /api/v1/nodes?watch"),
        CLUSTER,
        KEPT(STATUS, MADE),
        KEPT("DELETE " IN_NS "pods/j-worker-0", MADE),
    };
    struct fixture f;
    open_with(&f, answers, array_length(answers),
              (struct controller_options){.watch_nodes = true,
                                          .signs = {NODE_TAINTS, NODE_CONDITIONS},
                                          .reconcile = {.avoid_node_ms = 60000}});
    settle(&f);
    assert_int_equal(asked(&f, "DELETE " IN_NS "pods/j-worker-0"), 1);
    assert_int_equal(count_requests(&f, "DELETE ", "gracePeriodSeconds"), 0);
    assert_int_equal(count_requests(&f, STATUS, "\"avoidedNodes\":{\"a\":"), 1);
    assert_int_equal(count_requests(&f, STATUS, "\"failures\""), 0);
    assert_int_equal(count_requests(&f, "POST " IN_NS "events ",
                                    "made again elsewhere: taint nvidia.com/gpu-error:NoSchedule"),
                     1);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_marked_node_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
