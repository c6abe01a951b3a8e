/* The configuration as text: --help, the page of it, and the resolved one that reads back. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void the_printed_configuration_reads_back_to_itself(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    struct config config, again;
    struct error err;
    assert_ok(config_line_parse(
                  arena,
                  "--preset hyperpod --data.root it's --lr 0.1234567891 --sharding_strategy hybrid "
                  "--model_type llama_v3 --eval_steps 7 --max_shard_size 3MiB",
                  "", &config, &err),
              &err);
    auto_str struct str text, text_again;
    str_init(&text, 65536);
    str_init(&text_again, 65536);
    config_yaml(&config, &text);
    const char *path = arena_printf(arena, "%s/file", directory);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(str_text(&text), file);
    fclose(file);
    assert_ok(config_line_parse(arena, arena_printf(arena, "--config %s", path), "", &again, &err),
              &err);
    assert_null(strstr(again.warning, "data.")); /* nobody asked for what are defaults */
    memcpy(again.source, config.source, sizeof again.source);
    config_yaml(&again, &text_again);
    assert_string_equal(str_text(&text), str_text(&text_again));
    support_remove_tree(directory);
}

static void help_names_every_key(void **state)
{
    (void)state;
    auto_str struct str text;
    str_init(&text, 65536);
    config_help(&text);
    assert_false(text.truncated);
    assert_non_null(strstr(str_text(&text), "--parallel.sharding_strategy (default: FULL_SHARD)"));
    assert_non_null(strstr(str_text(&text), "  mnist "));
    assert_non_null(strstr(str_text(&text), "\n  SHARD_GRAD_OP       1B to 10B      parameters "));
}

static void the_page_in_the_tree_is_what_the_table_makes(void **state)
{
    (void)state;
    auto_free char *page = NULL;
    size_t bytes;
    struct error err;
    assert_ok(file_read("docs/configuration.md", 1 << 20, &page, &bytes, &err), &err);
    auto_str struct str made;
    str_init(&made, 1 << 20);
    config_markdown(&made);
    if (bytes != made.length || memcmp(page, str_text(&made), bytes) != 0)
        print_error("make it anew: shoal-agent --help=markdown > docs/configuration.md\n");
    assert_int_equal(bytes, made.length);
    assert_memory_equal(page, str_text(&made), bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_printed_configuration_reads_back_to_itself),
        cmocka_unit_test(help_names_every_key),
        cmocka_unit_test(the_page_in_the_tree_is_what_the_table_makes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
