/* The first lines of a run. */
#include "agent/report/banner.h"

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

/* A line per group, cut where it is wide; `grep Configuration:` finds all of them. */
static void the_configuration_is_readable(void **state)
{
    (void)state;
    static const struct {
        const char *line, *expected;
    } rows[] = {
        {"", "Configuration: all defaults\n"},
        {"--model_type llama --hidden_size 64 --vocab_size 100 --num_hidden_layers 2 "
         "--num_attention_heads 4 --dataset /d --lr 0.1 --epochs 3",
         "Configuration: model.type=llama (flag), model.config_overrides.vocab_size=100 (flag)\n"
         "Configuration: model.config_overrides.hidden_size=64 (flag), "
         "model.config_overrides.num_hidden_layers=2 (flag)\n"
         "Configuration: model.config_overrides.num_attention_heads=4 (flag)\n"
         "Configuration: data.dataset=/d (flag)\n"
         "Configuration: optimizer.lr=0.1 (flag)\n"
         "Configuration: schedule.num_train_epochs=3 (flag)\n"},
    };
    const struct topology t = {.world_size = 1, .nodes = 1, .host = "127.0.0.1", .port = 1};
    char *none[] = {NULL};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        auto_str struct str text;
        struct config config;
        struct error err;
        str_init(&text, 4096);
        assert_ok(config_line_parse(arena, rows[i].line, "", &config, &err), &err);
        banner_print(&config, &t, none, false, &text);
        assert_string_equal(strchr(str_text(&text), '\n') + 1, rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_tells_what_other_libraries_read),
                                       cmocka_unit_test(the_configuration_is_readable)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
