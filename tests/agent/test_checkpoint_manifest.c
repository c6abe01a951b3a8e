#include "agent/checkpoint/checkpoint_manifest.h"

#include "tests/support.h"

#include <string.h>
#include <xxhash.h>

static void test_print_and_parse(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct manifest_file files[] = {
        {"model/shard-00001-model-00001-of-00001.safetensors", INT64_MAX, UINT64_MAX, 1},
        {"state.json", 0, 0, 0x00f0000000000000},
    };
    const struct manifest before = {.step = 120, .files = files, .file_count = 2};
    auto_str struct str text;
    str_init(&text, 4096);
    manifest_print(&before, &text);
    const char *expected =
        "shoal-checkpoint 1\nstep 120\n"
        "file model/shard-00001-model-00001-of-00001.safetensors 9223372036854775807 "
        "ffffffffffffffff 0000000000000001\n"
        "file state.json 0 0000000000000000 00f0000000000000\nend ";
    assert_memory_equal(str_text(&text), expected, strlen(expected));

    struct manifest after;
    struct error err;
    assert_ok(manifest_parse(arena, "COMPLETE", str_text(&text), text.length, &after, &err), &err);
    assert_int_equal(after.step, 120);
    assert_int_equal(after.file_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(after.files[i].path, files[i].path);
        assert_true(after.files[i].bytes == files[i].bytes);
        assert_true(after.files[i].xxh64 == files[i].xxh64);
        assert_true(after.files[i].head_xxh64 == files[i].head_xxh64);
    }
    /* Cut off anywhere, or with a byte more. */
    for (size_t bytes = 0; bytes <= text.length + 1; bytes++)
        if (bytes != text.length)
            assert_fails(manifest_parse(arena, "COMPLETE", str_text(&text), bytes, &after, &err),
                         &err, ERR_INPUT, "COMPLETE: damaged");
}

/* Texts whose checksum is right, but not the rest. */
static void test_refuses(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    static const char *const rows[] = {
        "shoal-checkpoint 2\nstep 1\n",
        "shoal-checkpoint 1\n",
        "shoal-checkpoint 1\nstep one\n",
        "shoal-checkpoint 1\nstep 1 \n",
        "shoal-checkpoint 1\nstep 1\nfile a 1 1\n",
        "shoal-checkpoint 1\nstep 1\nfile a 1 1 1 1\n",
        "shoal-checkpoint 1\nstep 1\nfile a -1 1 1\n",
        "shoal-checkpoint 1\nstep 1\nfile /a 1 1 1\n",
        "shoal-checkpoint 1\nstep 1\nfile a/../../b 1 1 1\n",
        "shoal-checkpoint 1\nstep 1\nfolder a 1 1 1\n",
        "\n",
        "text\nshoal-checkpoint 1\nstep 1\n",
        " shoal-checkpoint 1\nstep 1\n",
        "shoal-checkpoint 1\nstep  1\n",
        "shoal-checkpoint 1\nstep +1\n",
        "shoal-checkpoint 1\n step 1\n",
        "shoal-checkpoint 1\nstep 1\nfile a 1 0000000000000001  0000000000000001\n",
        "shoal-checkpoint 1\nstep 1\nfile a 1 0000000000000001 1\n",
        "shoal-checkpoint 1\nstep 1\n\n",
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        size_t length = strlen(rows[i]);
        const char *text = arena_printf(arena, "%send %016llx\n", rows[i],
                                        (unsigned long long)XXH64(rows[i], length, 0));
        struct manifest m;
        struct error err;
        assert_fails(manifest_parse(arena, "COMPLETE", text, strlen(text), &m, &err), &err,
                     ERR_INPUT, "not a manifest that this version understands");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print_and_parse),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
