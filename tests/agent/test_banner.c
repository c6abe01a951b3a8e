/* The first lines of a run. */
#include "agent/trainer/banner.h"

#include "base/mem.h"
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include <string.h>

static void it_tells_what_other_libraries_read(void **state)
{
    (void)state;
    static const struct {
        char *environment[5];
        const char *expected;
    } rows[] = {
        {{(char *)"HOME=/", (char *)"NCCLX=1", NULL}, ""},
        {{(char *)"NCCL_DEBUG=INFO", (char *)"PATH=/bin", (char *)"FI_PROVIDER=efa",
          (char *)"NCCL_ALGO=", NULL},
         "Environment of NCCL and libfabric: FI_PROVIDER=efa, NCCL_ALGO=, NCCL_DEBUG=INFO\n"},
    };
    const struct topology t = {.world_size = 4, .nodes = 2, .host = "master", .port = 23456};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        auto_str struct str text;
        struct config config;
        struct error err;
        str_init(&text, 4096);
        assert_ok(config_line_parse(arena, "--seed 3", "", &config, &err), &err);
        banner_print(&config, &t, rows[i].environment, i > 0, &text);
        assert_non_null(strstr(str_text(&text), ": 4 ranks on 2 nodes, master_addr=master, "
                                                "master_port=23456\n"));
        assert_non_null(strstr(str_text(&text), "Configuration: runtime.seed=3 (flag)\n"));
        assert_string_equal(strstr(str_text(&text), "(flag)\n") + 7, rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_tells_what_other_libraries_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
