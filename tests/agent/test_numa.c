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

static void test_nodes_of_ranks(void **state)
{
    (void)state;
    static const struct {
        int nodes, wanted, rank, ranks, node, sharing;
    } rows[] = {
        /* spread in their order */
        {1, -1, 0, 1, 0, 1},
        {1, -1, 3, 4, 0, 4},
        {2, -1, 0, 1, 0, 1},
        {2, -1, 0, 4, 0, 2},
        {2, -1, 1, 4, 0, 2},
        {2, -1, 2, 4, 1, 2},
        {2, -1, 3, 4, 1, 2},
        {2, -1, 1, 3, 0, 2},
        {2, -1, 2, 3, 1, 1},
        {4, -1, 1, 2, 2, 1},
        /* where the GPU is: the nodes are number 0, 2, 4, ... */
        {2, 2, 0, 1, 1, 1},
        {2, 2, 0, 4, 1, 2},
        {2, 0, 3, 4, 0, 2},
        {2, 1, 3, 4, 1, 2}, /* none of its cores are ours */
        {4, 6, 0, 8, 3, 2},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct numa_nodes nodes = {.count = rows[i].nodes};
        int sharing;
        for (int n = 0; n < nodes.count; n++)
            nodes.numbers[n] = 2 * n;
        assert_int_equal(numa_choose(&nodes, rows[i].wanted, rows[i].rank, rows[i].ranks, &sharing),
                         rows[i].node);
        assert_int_equal(sharing, rows[i].sharing);
    }
}

static void put_file(const char *root, const char *directory, const char *name, const char *text)
{
    auto_free char *folder = xasprintf("%s/%s", root, directory);
    auto_free char *path = xasprintf("%s/%s", folder, name);
    assert_int_equal(mkdir(folder, 0700), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_nodes_of_devices(void **state)
{
    put_file(*state, "0000:1b:00.0", "numa_node", "1\n");
    put_file(*state, "0000:1c:00.0", "numa_node", "-1\n"); /* as virtual machines say */
    assert_int_equal(numa_of_device(*state, "0000:1b:00.0"), 1);
    assert_int_equal(numa_of_device(*state, "0000:1c:00.0"), -1);
    assert_int_equal(numa_of_device(*state, "0000:1d:00.0"), -1);
    assert_int_equal(numa_of_device(*state, NULL), -1);
}

static void test_nodes_that_may_be_used(void **state)
{
    cpu_set_t allowed;
    struct numa_nodes nodes;
    CPU_ZERO(&allowed);
    for (size_t core = 0; core < 12; core++)
        CPU_SET(core, &allowed);
    put_file(*state, "node0", "cpulist", "0-3\n");
    put_file(*state, "node1", "cpulist", "\n"); /* memory alone */
    put_file(*state, "node2", "cpulist", "16-19\n");
    put_file(*state, "node4", "cpulist", "8-15\n");
    numa_read(*state, &allowed, &nodes);
    assert_int_equal(nodes.count, 2);
    assert_true(nodes.numbers[0] == 0 && nodes.numbers[1] == 4);
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
    if (numa_bind(NULL, 0, 2, &sharing, &err) < 0) {
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
        cmocka_unit_test(test_nodes_of_ranks),
        cmocka_unit_test_setup_teardown(test_nodes_of_devices, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(test_nodes_that_may_be_used, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test(test_staying),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
