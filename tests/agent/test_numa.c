#include "agent/launch/numa.h"

#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <sys/stat.h>

static void test_lists_of_cores(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int count, first, last; /* count -1: no such text */
    } rows[] = {
        {"0-1\n", 2, 0, 1}, {"0-3,8", 5, 0, 8}, {"7", 1, 7, 7},        {"2,4-5,9-9\n", 4, 2, 9},
        {"\n", -1, 0, 0},   {"3-1", -1, 0, 0},  {"0-99999", -1, 0, 0}, {"a", -1, 0, 0},
        {"1-", -1, 0, 0},   {"0,,1", -1, 0, 0}, {"-1", -1, 0, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        cpu_set_t cores;
        bool is_list = numa_parse_cores(rows[i].text, &cores);
        assert_int_equal(is_list, rows[i].count >= 0);
        if (!is_list)
            continue;
        assert_int_equal(CPU_COUNT(&cores), rows[i].count);
        assert_true(CPU_ISSET((size_t)rows[i].first, &cores));
        assert_true(CPU_ISSET((size_t)rows[i].last, &cores));
    }
}

static void test_ranks_are_spread_in_their_order(void **state)
{
    (void)state;
    static const struct {
        int nodes, rank, ranks, node, sharing;
    } rows[] = {
        {1, 0, 1, 0, 1}, {1, 3, 4, 0, 4}, {2, 0, 1, 0, 1}, {2, 0, 4, 0, 2}, {2, 1, 4, 0, 2},
        {2, 2, 4, 1, 2}, {2, 3, 4, 1, 2}, {2, 1, 3, 0, 2}, {2, 2, 3, 1, 1}, {4, 1, 2, 2, 1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int sharing;
        assert_int_equal(numa_choose(rows[i].nodes, rows[i].rank, rows[i].ranks, &sharing),
                         rows[i].node);
        assert_int_equal(sharing, rows[i].sharing);
    }
}

static void put_node(const char *root, int node, const char *cores)
{
    auto_free char *directory = xasprintf("%s/node%d", root, node);
    auto_free char *path = xasprintf("%s/cpulist", directory);
    assert_int_equal(mkdir(directory, 0700), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(cores, file);
    fclose(file);
}

static void test_nodes_that_may_be_used(void **state)
{
    cpu_set_t allowed;
    struct numa_nodes nodes;
    CPU_ZERO(&allowed);
    for (size_t core = 0; core < 12; core++)
        CPU_SET(core, &allowed);
    put_node(*state, 0, "0-3\n");
    put_node(*state, 1, "\n"); /* memory alone */
    put_node(*state, 2, "16-19\n");
    put_node(*state, 4, "8-15\n");
    numa_read(*state, &allowed, &nodes);
    assert_int_equal(nodes.count, 2);
    assert_int_equal(CPU_COUNT(&nodes.cores[0]), 4);
    assert_int_equal(CPU_COUNT(&nodes.cores[1]), 4);
    assert_true(CPU_ISSET(11, &nodes.cores[1]));
    numa_read("/nowhere", &allowed, &nodes);
    assert_int_equal(nodes.count, 0);
}

/* Whatever this machine has: no core may be used that could not before. */
static void test_staying(void **state)
{
    (void)state;
    cpu_set_t before, after, both;
    int sharing;
    struct error err;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (numa_stay(0, 2, &sharing, &err) < 0) {
        assert_int_equal(err.code, ERR_UNSUPPORTED);
        return;
    }
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    CPU_AND(&both, &before, &after);
    assert_true(CPU_EQUAL(&both, &after));
    assert_true(sharing == 1 || sharing == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_of_cores),
        cmocka_unit_test(test_ranks_are_spread_in_their_order),
        cmocka_unit_test_setup_teardown(test_nodes_that_may_be_used, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test(test_staying),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
