/* The configuration as text: --help, the page of it, and the resolved one that reads back. */
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include "agent/config/config.h"
#include "agent/shard/optim_kind.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The resolved configuration of a line in a file. */
static const char *write_resolved(struct arena *arena, const char *directory, const char *line,
                                  struct config *ret_config, struct str *ret_text)
{
    struct error err;
    assert_ok(config_line_parse(arena, line, "", ret_config, &err), &err);
    str_clear(ret_text);
    config_yaml(ret_config, ret_text);
    const char *path = arena_printf(arena, "%s/file", directory);
    auto_fclose FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(str_text(ret_text), file);
    return path;
}

/* ... and tells of nothing that it ignores: nobody asked for what presets and defaults say. */
static void the_printed_configuration_reads_back_to_itself(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "--preset hyperpod --data.root it's --lr 0.1234567891 --sharding_strategy hybrid "
        "--model_type llama_v3 --eval_steps 7 --max_shard_size 3MiB",
        "--preset mnist",
        "--preset mnist-ddp-adam",
        "--preset hyperpod",
        "--preset fabric --min_lr 1e-6",
        "--preset t5-fsdp",
        "--preset accelerate,bert-base",
        "--optim sgd --eval_strategy no",
    };
    auto_free char *directory = support_temp_dir();
    auto_str struct str text, text_again;
    str_init(&text, 65536);
    str_init(&text_again, 65536);
    for (size_t i = 0; i < array_length(lines); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config, again;
        struct error err;
        const char *path = write_resolved(arena, directory, lines[i], &config, &text);
        assert_ok(
            config_line_parse(arena, arena_printf(arena, "--config %s", path), "", &again, &err),
            &err);
        assert_string_equal(again.warning, "");
        memcpy(again.source, config.source, sizeof again.source);
        str_clear(&text_again);
        config_yaml(&again, &text_again);
        assert_string_equal(str_text(&text), str_text(&text_again));
    }
    support_remove_tree(directory);
}

/* What is given beside it is asked for. */
static void what_is_beside_a_resolved_configuration_is_told(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *directory = support_temp_dir();
    auto_str struct str text;
    str_init(&text, 65536);
    struct config config;
    struct error err;
    const char *path = write_resolved(arena, directory, "--preset mnist", &config, &text);
    assert_ok(config_line_parse(arena, arena_printf(arena, "--config %s --cooldown_steps 3", path),
                                "AGENT_PARALLEL_MIN_NUM_PARAMS=5", &config, &err),
              &err);
    assert_string_equal(config.warning,
                        "schedule.cooldown_steps is ignored: it needs schedule.type=wsd; "
                        "parallel.min_num_params is ignored: it needs "
                        "auto_wrap_policy=SIZE_BASED_WRAP");
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

/* A new optimizer's weight decay is in the help by its row alone. */
static void help_has_the_weight_decay_of_every_optimizer(void **state)
{
    (void)state;
    auto_str struct str text, decay;
    str_init(&text, 65536);
    str_init(&decay, 512);
    config_help(&text);
    for (int i = 0; optim_kind(i); i++) {
        const struct optim_kind *kind = optim_kind(i);
        str_clear(&decay);
        str_printf(&decay, "%g with %s, ", kind->weight_decay, kind->name);
        assert_int_equal(strstr(str_text(&text), str_text(&decay)) != NULL, kind->weight_decay > 0);
    }
    str_clear(&decay);
    optim_describe_weight_decay(&decay);
    assert_non_null(strstr(str_text(&text), str_text(&decay)));
    assert_non_null(strstr(str_text(&decay), "decoupled with adamw"));
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
        cmocka_unit_test(what_is_beside_a_resolved_configuration_is_told),
        cmocka_unit_test(help_names_every_key),
        cmocka_unit_test(help_has_the_weight_decay_of_every_optimizer),
        cmocka_unit_test(the_page_in_the_tree_is_what_the_table_makes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
