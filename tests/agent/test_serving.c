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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_serves_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
