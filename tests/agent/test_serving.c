#include "agent/telemetry/serving.h"

#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

static void who_serves_where(void **state)
{
    (void)state;
    static const struct {
        struct serving_rank rank;
        const char *asked, *host; /* NULL: does not serve */
    } rows[] = {
        /* nodes with an address each: the first rank of every one */
        {{.rank = 0, .local_rank = 0}, "", ""},
        {{.rank = 8, .local_rank = 0}, "", ""},
        {{.rank = 9, .local_rank = 1}, "", NULL},
        {{.rank = 8, .local_rank = 0, .in_pod = true}, "", ""},
        {{.rank = 8, .local_rank = 0}, "127.0.0.1", "127.0.0.1"},
        /* one machine, whatever there is called a node */
        {{.rank = 0, .local_rank = 0, .shares_machine = true}, "", "127.0.0.1"},
        {{.rank = 2, .local_rank = 0, .shares_machine = true}, "", NULL},
        {{.rank = 1, .local_rank = 1, .shares_machine = true}, "", NULL},
        {{.rank = 0, .local_rank = 0, .shares_machine = true}, "0.0.0.0", "0.0.0.0"},
        {{.rank = 2, .local_rank = 0, .shares_machine = true}, "0.0.0.0", NULL},
        /* a pod of its own, as torchrun --standalone has it: others ask the pod's address */
        {{.rank = 0, .local_rank = 0, .shares_machine = true, .in_pod = true}, "", ""},
        {{.rank = 1, .local_rank = 1, .shares_machine = true, .in_pod = true}, "", NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const char *host = serving_host(&rows[i].rank, rows[i].asked);
        if (!host != !rows[i].host || (host && strcmp(host, rows[i].host) != 0))
            fail_msg("row %zu: %s instead of %s", i, host ? host : "nowhere",
                     rows[i].host ? rows[i].host : "nowhere");
    }
}

static void where_people_see_it(void **state)
{
    (void)state;
    static const struct {
        const char *host, *url;
    } rows[] = {
        {"127.0.0.1", "http://127.0.0.1:9402/"}, {"", "http://127.0.0.1:9402/"},
        {"0.0.0.0", "http://127.0.0.1:9402/"},   {"::", "http://127.0.0.1:9402/"},
        {"fd00::7", "http://[fd00::7]:9402/"},   {"localhost", "http://localhost:9402/"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char url[64];
        serving_url(rows[i].host, 9402, url, sizeof url);
        assert_string_equal(url, rows[i].url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_serves_where),
        cmocka_unit_test(where_people_see_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
