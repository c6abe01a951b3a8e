#include "agent/comm/net.h"

#include "base/mem.h"

#include "tests/support.h"

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
        if (net_interface_is_meant(rows[i].pattern, rows[i].interface) != rows[i].is_meant)
            fail_msg("%s and %s", rows[i].pattern, rows[i].interface);
}

static void test_the_loopback_is_taken_only_by_name(void **state)
{
    (void)state;
    char name[64];
    net_interface_choose("lo", name, sizeof name);
    assert_string_equal(name, "lo");
    net_interface_choose("nosuch", name, sizeof name);
    assert_string_equal(name, "");
    net_interface_choose("^nosuch", name, sizeof name);
    assert_string_not_equal(name, "lo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interfaces_are_meant_as_nccl_means_them),
        cmocka_unit_test(test_the_loopback_is_taken_only_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
