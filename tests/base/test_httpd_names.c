#include "tests/support.h"

#include "base/httpd_names.h"
#include "base/mem.h"

#include <string.h>

static void addresses_and_localhost_are_local(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool local;
    } rows[] = {
        {"localhost", true},
        {"localhost:9401", true},
        {"LocalHost:9401", true},
        {"run.localhost:9401", true},
        {"127.0.0.1:9401", true},
        {"127.0.0.1", true},
        {"10.88.0.7:9401", true},
        {"[::1]:9401", true},
        {"[::1]", true},
        {"[fe80::1]:9401", true},
        {"", false},
        {":9401", false},
        {"evil.example", false},
        {"evil.example:9401", false},
        {"localhost.evil.example", false},
        {"evillocalhost", false},
        {"127.0.0.1.evil.example", false},
        {"127.0.0.1.nip.io:9401", false},
        {"2130706433", false},
        {"[::1", false},
        {"[127.0.0.1]", false},
        {"[evil.example]", false},
        {"::1", false},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        if (httpd_names_local(rows[i].host) != rows[i].local)
            fail_msg("row %zu: %s", i, rows[i].host);
    char many[4096];
    memset(many, 'a', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    assert_false(httpd_names_local(many));
}

static void an_origin_is_the_same_by_scheme_and_all_of_its_authority(void **state)
{
    (void)state;
    static const struct {
        const char *origin, *host;
        bool same;
    } rows[] = {
        {"http://localhost:9401", "localhost:9401", true},
        {"HTTP://LOCALHOST:9401", "localhost:9401", true},
        {"http://runs.example.com", "runs.example.com", true},
        {"https://runs.example.com", "runs.example.com", false}, /* we speak no TLS */
        {"https://127.0.0.1:9401", "127.0.0.1:9401", false},
        {"xhttp://localhost:9401", "localhost:9401", false},
        {"ws://localhost:9401", "localhost:9401", false},
        {"://localhost:9401", "localhost:9401", false},
        {"http:/localhost:9401", "localhost:9401", false},
        {"http://[::1]:9401", "[::1]:9401", true},
        {"http://localhost:3000", "localhost:9401", false},
        {"http://evil.example", "localhost:9401", false},
        {"http://evil.example/localhost:9401", "localhost:9401", false},
        {"http://localhost:9401.evil.example", "localhost:9401", false},
        {"null", "localhost:9401", false},
        {"", "", false},
        {"file://", "localhost:9401", false},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        if (httpd_names_same(rows[i].origin, rows[i].host) != rows[i].same)
            fail_msg("row %zu: %s at %s", i, rows[i].origin, rows[i].host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_and_localhost_are_local),
        cmocka_unit_test(an_origin_is_the_same_by_scheme_and_all_of_its_authority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
