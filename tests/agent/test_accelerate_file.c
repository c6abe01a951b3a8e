/* Accelerate's configuration file: defaults, flags, answers, and that the
 * configuration reads it. */
#include "tests/support.h"

#include "agent/compat/accelerate_file.h"
#include "agent/config/config.h"

#include <stdio.h>
#include <string.h>

static const char *no_environment(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return NULL;
}

/* The text with these values and answers (NULL: nobody is asked). */
static int write_file(const char *const *values, const char *answers, struct str *text,
                      struct error *err)
{
    FILE *in = answers ? fmemopen((void *)(uintptr_t)answers, strlen(answers), "r") : NULL;
    FILE *out = fopen("/dev/null", "we");
    assert_non_null(out);
    int result = accelerate_write_file(values, in, out, text, err);
    fclose(out);
    if (in)
        fclose(in);
    return result;
}

static void values_come_from_flags_answers_and_defaults(void **state)
{
    (void)state;
    static const struct {
        const char *value, *answers, *expected, *missing;
    } rows[] = {
        {NULL, NULL, "  fsdp_sharding_strategy: FULL_SHARD\n", "main_process_ip"},
        {"--fsdp_sharding_strategy=2", NULL, "  fsdp_sharding_strategy: SHARD_GRAD_OP\n", "ask"},
        {"fsdp_sharding_strategy=no_shard", NULL, "  fsdp_sharding_strategy: NO_SHARD\n", "ask"},
        {"--mixed_precision=no", NULL, "mixed_precision: 'no'\n", "mixed_precision: bf16"},
        {"--num_processes=4", NULL, "num_processes: 4\n", "num_processes: 1"},
        {"distributed_type=MULTI_GPU", NULL, "distributed_type: MULTI_GPU\n", "fsdp_config"},
        {"main_process_ip=10.0.0.1", NULL, "main_process_ip: 10.0.0.1\n", "ask"},
        {NULL, "\n1\n3\n\n\n\n1\nBertLayer\n", "  fsdp_transformer_layer_cls_to_wrap: BertLayer\n",
         "ask"},
        {NULL, "\n1\n3\n", "  fsdp_auto_wrap_policy: NO_WRAP\n", "ask"},
        {NULL, "5\nno such\n3\n", "distributed_type: MULTI_CPU\n", "fsdp_config"},
        {NULL, "", "distributed_type: FSDP\n", "ask"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const char *values[] = {rows[i].value, NULL};
        auto_str struct str text;
        struct error err;
        str_init(&text, 8192);
        assert_ok(write_file(values, rows[i].answers, &text, &err), &err);
        if (!strstr(str_text(&text), rows[i].expected))
            print_error("%zu: %s\n", i, str_text(&text));
        assert_non_null(strstr(str_text(&text), rows[i].expected));
        assert_null(strstr(str_text(&text), rows[i].missing));
    }
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *value, *answers, *message;
    } rows[] = {
        {"--fsdp_sharding=1", NULL, "'--fsdp_sharding=1': give KEY=VALUE, with a key of the file"},
        {"--num_process=2", NULL,
         "'--num_process=2': give KEY=VALUE, with a key of the file (the nearest is "
         "num_processes)"},
        {"mixed_precision=bf61", NULL, "mixed_precision: 'bf61' (the nearest is bf16) is not one"},
        {"num_processes", NULL, "'num_processes': give KEY=VALUE"},
        {"num_processes=two", NULL, "num_processes: 'two' is not a whole number"},
        {"use_cpu=maybe", NULL, "use_cpu: 'maybe' is not one of: true false"},
        {NULL, "x\ny\nz\n", "distributed_type: 'z' is not one of: FSDP MULTI_GPU MULTI_CPU 'NO'"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const char *values[] = {rows[i].value, NULL};
        auto_str struct str text;
        struct error err;
        str_init(&text, 8192);
        assert_fails(write_file(values, rows[i].answers, &text, &err), &err, ERR_CONFIG,
                     rows[i].message);
    }
}

static void the_configuration_reads_what_is_written(void **state)
{
    (void)state;
    static const char *const values[] = {"num_processes=4", "num_machines=2",
                                         "fsdp_transformer_layer_cls_to_wrap=BertLayer", NULL};
    auto_free char *directory = support_temp_dir();
    auto_arena struct arena *arena = arena_open();
    auto_str struct str text;
    struct error err;
    struct config config;
    str_init(&text, 8192);
    assert_ok(write_file(values, NULL, &text, &err), &err);
    const char *path = arena_printf(arena, "%s/default_config.yaml", directory);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(str_text(&text), file) >= 0);
    assert_int_equal(fclose(file), 0);
    const char *words[] = {"--config_file", path, "--model_name", "m"};
    assert_ok(config_parse(4, words, no_environment, NULL, arena, &config, &err), &err);
    assert_string_equal(config.warning, "");
    assert_string_equal(config.value.runtime.nproc_per_node, "2");
    assert_string_equal(config.value.parallel.wrap_classes, "BertLayer");
    assert_int_equal(config.value.precision.mixed, PRECISION_BF16_MIXED);
    support_remove_tree(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_from_flags_answers_and_defaults),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(the_configuration_reads_what_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
