#include "agent/comm/net.h"

#include "base/mem.h"

#include "tests/support.h"

#include <string.h>

static void test_interfaces_are_meant_as_nccl_means_them(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *interface;
        bool is_meant;
    } rows[] = {
        {"eth", "eth0", true},
        {"eth", "ens5", false},
        {"ens,eth", "eth1", true},
        {"=eth0", "eth0", true},
        {"=eth0", "eth01", false},
        {"=ib0,eth0", "eth0", true},
        {"^docker,lo,veth", "lo", false},
        {"^docker,lo,veth", "ens5", true},
        {"^docker,lo,veth,eth", "eth0", false},
        {"^=eth0", "eth01", true},
        {"^=eth0", "eth0", false},
        {"", "eth0", false},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        if (net_interface_matches(rows[i].pattern, rows[i].interface) != rows[i].is_meant)
            fail_msg("%s and %s", rows[i].pattern, rows[i].interface);
}

static void test_what_the_environment_asks_for(void **state)
{
    (void)state;
    static const struct {
        const char *master, *gloo, *nccl, *interface;
    } rows[] = {
        {"job-0", NULL, NULL, ""},
        {"job-0", NULL, "lo", "lo"},
        {"job-0", NULL, "=lo", "lo"},
        {"job-0", NULL, "=nosuch,lo", "lo"},
        {"job-0", NULL, "nosuch", ""},
        {"job-0", NULL, "=l", ""},
        {"job-0", "", "lo", "lo"},
        {"job-0", "eth7", "lo", "eth7"},      /* the ring says that there is none */
        {"job-0", "eth7,eth8", "lo", "eth7"}, /* PyTorch takes a list */
        {"127.0.0.1", NULL, "lo", ""},
        {"localhost", NULL, "lo", ""},
        {"::1", NULL, "lo", ""},
        {"127.0.0.1", "eth7", NULL, "eth7"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char name[NET_INTERFACE_BYTES];
        net_interface_choose(rows[i].master, rows[i].gloo, rows[i].nccl, name);
        if (strcmp(name, rows[i].interface) != 0)
            fail_msg("row %zu: \"%s\" instead of \"%s\"", i, name, rows[i].interface);
    }
    static const char *const others[] = {"^=lo", "^nosuch"}; /* any but the loopback */
    for (size_t i = 0; i < array_length(others); i++) {
        char name[NET_INTERFACE_BYTES];
        net_interface_choose("job-0", NULL, others[i], name);
        assert_string_not_equal(name, "lo");
    }
}

/* A first address that swallows all leaves a second one half of the time, and so on. */
static void test_each_address_has_its_share(void **state)
{
    (void)state;
    static const struct {
        int64_t now_ms, deadline_ms;
        int count;
        int64_t until_ms;
    } rows[] = {
        {1000, 4000, 1, 4000}, {1000, 4000, 2, 2500}, {2500, 4000, 1, 4000}, {1000, 4000, 3, 2000},
        {4000, 4000, 2, 4000}, {5000, 4000, 2, 4000}, /* over: no time is left, and none is added */
        {5000, 0, 1, 0},                              /* does not wait at all */
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_int_equal(net_share_ms(rows[i].now_ms, rows[i].deadline_ms, rows[i].count),
                         rows[i].until_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interfaces_are_meant_as_nccl_means_them),
        cmocka_unit_test(test_what_the_environment_asks_for),
        cmocka_unit_test(test_each_address_has_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
