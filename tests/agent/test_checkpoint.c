/* Saving on several ranks (threads), loading on as many or others; finding the latest, and what is
 * removed. */
#include "agent/checkpoint/checkpoint.h"
#include "agent/checkpoint/checkpoint_files.h"

#include "base/mem.h"
#include "tests/agent/checkpoints.h"
#include "tests/support.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_any_world_to_any_world(void **state)
{
    for (int from = 1; from <= CHECKPOINTS_MAX_RANKS; from++) {
        auto_free char *dir = xasprintf("%s/%d", (char *)*state, from);
        auto_free char *path = xasprintf("%s/net-700steps", dir);
        struct error err;
        assert_ok(checkpoints_save(dir, from, 7, NULL, &err), &err);
        assert_int_equal(support_count_entries(dir), 1);
        for (int to = 1; to <= CHECKPOINTS_MAX_RANKS; to++)
            assert_int_equal(checkpoints_check(path, to), 7);
    }
}

/* What PyTorch, accelerate and Trainer save is told apart from what is not complete. */
static void test_those_of_others_are_named(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = *state;
    struct checkpoint_found found;
    struct checkpoint *opened;
    struct error err;
    const char *pickles = arena_printf(arena, "%s/pytorch_model_fsdp_0", dir);
    assert_int_equal(mkdir(pickles, 0755), 0);
    auto_fclose FILE *metadata = fopen(arena_printf(arena, "%s/.metadata", pickles), "we");
    assert_non_null(metadata);
    assert_fails(checkpoint_find_latest(dir, NULL, NULL, NULL, &found, &err), &err, ERR_NOT_FOUND,
                 "pytorch_model_fsdp_0/.metadata is PyTorch's, whose pickles are not read: ");
    assert_fails(checkpoint_find_latest(pickles, NULL, NULL, NULL, &found, &err), &err,
                 ERR_NOT_FOUND, "begin with them by --init_weights");
    assert_fails(checkpoint_open(dir, &opened, &err), &err, ERR_NOT_FOUND,
                 "pytorch_model_fsdp_0/.metadata is PyTorch's, whose pickles are not read: ");
    assert_int_equal(unlink(arena_printf(arena, "%s/.metadata", pickles)), 0);
    assert_int_equal(rmdir(pickles), 0);
    const char *below = arena_printf(arena, "%s/checkpoint-500", dir); /* Trainer's output_dir */
    assert_int_equal(mkdir(below, 0755), 0);
    auto_fclose FILE *optimizer = fopen(arena_printf(arena, "%s/optimizer.pt", below), "we");
    assert_non_null(optimizer);
    assert_fails(checkpoint_find_latest(dir, NULL, NULL, NULL, &found, &err), &err, ERR_NOT_FOUND,
                 "checkpoint-500/optimizer.pt is PyTorch's, whose pickles are not read: ");
}

static void test_find_latest(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = *state;
    auto_free char *missing = xasprintf("%s/none", dir);
    struct checkpoint_found found;
    struct error err;
    assert_fails(checkpoint_find_latest(missing, NULL, NULL, NULL, &found, &err), &err,
                 ERR_NOT_FOUND, "none");
    assert_fails(checkpoint_find_latest(dir, NULL, NULL, NULL, &found, &err), &err, ERR_NOT_FOUND,
                 "no complete checkpoint in it");
    for (int generation = 9; generation <= 11; generation++) /* "900" > "1000" as text */
        assert_ok(checkpoints_save(dir, 1, generation, NULL, &err), &err);
    assert_int_equal(checkpoints_check_latest(dir), 11);
    const struct checkpoint_listed newest_of_all = {arena_printf(arena, "%s/net-1100steps", dir),
                                                    1100};
    const struct {
        const char *run;
        const struct checkpoint_listed *before;
        int64_t step;
    } runs[] = {{"odd", NULL, 1100}, {"even", NULL, 1000}, {"odd", &newest_of_all, 900}};
    for (size_t i = 0; i < array_length(runs); i++) {
        assert_ok(checkpoint_find_latest(dir, runs[i].run, runs[i].before, NULL, &found, &err),
                  &err);
        assert_int_equal(found.step, runs[i].step);
        free(found.path);
    }
    assert_fails(checkpoint_find_latest(dir, "other", NULL, NULL, &found, &err), &err,
                 ERR_NOT_FOUND, "that this run saved");

    auto_free char *newest = xasprintf("%s/net-1100steps", dir);
    auto_free char *manifest = xasprintf("%s/COMPLETE", newest);
    auto_free char *temp = xasprintf("%s/net-1200steps.tmp-0123456789abcdef", dir);
    unlink(manifest);
    assert_ok(durable_make_dir(&file_ops_system, temp, &err), &err);
    struct checkpoint_skipped skipped;
    lines_init(&skipped.paths, arena);
    lines_init(&skipped.reasons, arena);
    assert_ok(checkpoint_find_latest(dir, NULL, NULL, &skipped, &found, &err), &err);
    assert_non_null(strstr(found.path, "net-1000steps"));
    assert_int_equal(found.step, 1000);
    free(found.path);
    assert_int_equal(skipped.paths.count, 2);
    assert_string_equal(skipped.paths.items[0], newest);
    assert_non_null(strstr(skipped.reasons.items[0], "net-1100steps: not a complete checkpoint"));
    assert_non_null(strstr(skipped.reasons.items[1], "left over from a save"));

    struct checkpoint *c;
    assert_fails(checkpoint_open(newest, &c, &err), &err, ERR_NOT_FOUND,
                 "net-1100steps: not a complete checkpoint: it has no COMPLETE");
    assert_fails(checkpoint_open(missing, &c, &err), &err, ERR_NOT_FOUND,
                 "none: there is no such checkpoint");
}

static void test_prune(void **state)
{
    const char *dir = *state;
    struct error err;
    for (int generation = 1; generation <= 4; generation++)
        assert_ok(checkpoints_save(dir, 1, generation, NULL, &err), &err);
    assert_ok(checkpoint_prune(&file_ops_system, dir, 400, 5, &err), &err);
    assert_int_equal(support_count_entries(dir), 4);
    assert_ok(checkpoint_prune(&file_ops_system, dir, 150, 1, &err), &err); /* only one so old */
    assert_int_equal(support_count_entries(dir), 4);
    assert_ok(checkpoint_prune(&file_ops_system, dir, 400, 2, &err), &err);
    assert_int_equal(support_count_entries(dir), 2);
    assert_ok(checkpoint_prune(&file_ops_system, dir, 400, 1, &err), &err);
    assert_int_equal(support_count_entries(dir), 1);
    assert_int_equal(checkpoints_check_latest(dir), 4);
}

static void put(const char *dir, const char *below)
{
    auto_free char *path = xasprintf("%s/%s", dir, below);
    auto_free char *copy = xstrdup(path);
    struct durable_result result;
    struct error err;
    assert_ok(durable_make_dirs(&file_ops_system, dirname(copy), &err), &err);
    assert_ok(durable_write_file(&file_ops_system, path, "mine", 4, &result, &err), &err);
}

static bool is_there(const char *dir, const char *below)
{
    auto_free char *path = xasprintf("%s/%s", dir, below);
    return access(path, F_OK) == 0;
}

/* Only what certainly is a checkpoint's own debris is removed, and nothing else is replaced. */
static void test_others_stay(void **state)
{
    const char *dir = *state;
    struct error err;
    static const char *const others[] = {
        "notes.tmp-old/file",
        "net-100steps.tmp-mine/file",
        "net-100steps.tmp-0123456789abcdef/file",
        "net-100steps.tmp-0123456789abcde0/model/notes",
        "net-100steps.tmp-0123456789abcde1",
        "net-200steps/notes",
    };
    for (size_t i = 0; i < array_length(others); i++)
        put(dir, others[i]);
    put(dir, "net-300steps/model/shard-1.safetensors");
    put(dir, "net-100steps.tmp-0123456789abcde2/model/shard-1.safetensors"); /* debris */
    put(dir, "net-100steps.tmp-0123456789abcde2/full.safetensors.tmp-0123456789abcdef");
    put(dir, "net-100steps.tmp-0123456789abcde3/model/shard-1.safetensors"); /* being written */
    auto_free char *living = xasprintf("%s/net-100steps.tmp-0123456789abcde3", dir);
    int lock = checkpoint_lock_temp(living);
    assert_true(lock >= 0);
    assert_ok(checkpoints_save(dir, 1, 1, NULL, &err), &err);
    assert_false(is_there(dir, "net-100steps.tmp-0123456789abcde2"));
    assert_true(is_there(dir, "net-100steps.tmp-0123456789abcde3"));
    close(lock);
    assert_fails(checkpoints_save(dir, 1, 2, NULL, &err), &err, ERR_EXISTS,
                 "net-200steps is in the way");
    assert_ok(checkpoints_save(dir, 1, 3, NULL, &err), &err); /* the incomplete one goes aside */
    assert_true(is_there(dir, "net-300steps.incomplete/model/shard-1.safetensors"));
    assert_false(is_there(dir, "net-100steps.tmp-0123456789abcde3"));
    put(dir, "net-400steps/model/shard-1.safetensors");
    put(dir, "net-400steps.incomplete/file");
    assert_fails(checkpoints_save(dir, 1, 4, NULL, &err), &err, ERR_EXISTS,
                 "net-400steps is in the way: it is no complete checkpoint, and there is a");
    put(dir, "net-100steps/notes");
    assert_fails(checkpoints_save(dir, 1, 1, NULL, &err), &err, ERR_EXISTS,
                 "holds other files too");
    assert_ok(checkpoints_save(dir, 1, 5, NULL, &err), &err);
    assert_ok(checkpoint_prune(&file_ops_system, dir, 500, 1, &err), &err);
    assert_true(is_there(dir, "net-100steps/COMPLETE"));
    for (size_t i = 0; i < array_length(others); i++)
        assert_true(is_there(dir, others[i]));
}

/* A save on another node, which looks at each new directory once before it can be locked: as long
 * as it holds its lock, or until it has removed it. */
struct rival {
    int lock; /* of the directory that it looks at; -1: none yet */
    bool removes;
};

static int mkdir_before_rival(void *ctx, const char *path)
{
    struct rival *rival = ctx;
    int result = file_ops_system.mkdir(NULL, path);
    if (result < 0 || rival->lock >= 0 || !strstr(path, ".tmp-"))
        return result;
    rival->lock = checkpoint_lock_temp(path);
    return rival->removes ? file_ops_system.remove(NULL, path) : 0;
}

static void test_another_save_looks_at_the_new_directory(void **state)
{
    for (int removes = 0; removes < 2; removes++) {
        struct rival rival = {.lock = -1, .removes = removes};
        struct faulty_files files = {.ops = file_ops_system};
        files.ops.ctx = &rival;
        files.ops.mkdir = mkdir_before_rival;
        struct error err;
        assert_ok(checkpoints_save(*state, 1, 1 + removes, &files, &err), &err);
        assert_true(rival.lock >= 0);
        close(rival.lock);
        assert_int_equal(checkpoints_check_latest(*state), 1 + removes);
    }
}

/* One before the other, down to the first: of those of one step by their names. */
static void test_find_each_before_the_last(void **state)
{
    static const char *const names[] = {"net-1000steps", "other-900steps", "net-900steps"};
    auto_arena struct arena *arena = arena_open();
    const char *dir = *state;
    struct checkpoint_listed last;
    struct checkpoint_found found;
    struct error err;
    assert_ok(checkpoints_save(dir, 1, 9, NULL, &err), &err);
    assert_int_equal(rename(arena_printf(arena, "%s/net-900steps", dir),
                            arena_printf(arena, "%s/other-900steps", dir)),
                     0);
    for (int generation = 9; generation <= 10; generation++)
        assert_ok(checkpoints_save(dir, 1, generation, NULL, &err), &err);
    for (size_t i = 0; i < array_length(names); i++) {
        assert_ok(checkpoint_find_latest(dir, NULL, i ? &last : NULL, NULL, &found, &err), &err);
        last = (struct checkpoint_listed){arena_strdup(arena, found.path), found.step};
        free(found.path);
        assert_string_equal(last.path, arena_printf(arena, "%s/%s", dir, names[i]));
    }
    assert_fails(checkpoint_find_latest(dir, NULL, &last, NULL, &found, &err), &err, ERR_NOT_FOUND,
                 dir);
}

/* Tensors that the checkpoint does not have as asked for. */
static void test_other_model(void **state)
{
    const char *dir = *state;
    auto_free char *path = xasprintf("%s/net-100steps", dir);
    struct error err;
    assert_ok(checkpoints_save(dir, 2, 1, NULL, &err), &err);
    struct checkpoint *c;
    assert_ok(checkpoint_open(path, &c, &err), &err);
    float data[128];
    static const struct {
        struct tensor_range range;
        enum error_code code;
        const char *fails;
    } rows[] = {
        {{"fc.bias", 1, {7}, 0, 7, DTYPE_F32, NULL},
         ERR_CONFIG,
         "there is no tensor fc.bias in it"},
        {{"fc.weight", 2, {7, 12}, 0, 84, DTYPE_F32, NULL},
         ERR_SHAPE,
         "fc.weight was saved with shape [7, 11], the model has [7, 12]"},
        {{"fc.weight", 1, {77}, 0, 77, DTYPE_F32, NULL}, ERR_SHAPE, "[7, 11], the model has [77]"},
        {{"scale", 1, {1}, 0, 1, DTYPE_F32, NULL},
         ERR_SHAPE,
         "saved with shape [], the model has [1]"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct tensor_range range = rows[i].range;
        range.data = data;
        const struct tensor_ranges ranges = {&range, 1};
        assert_fails(checkpoint_load(c, CHECKPOINT_MODEL, &ranges, false, &err), &err, rows[i].code,
                     rows[i].fails);
        assert_non_null(strstr(err.msg, path));
    }
    checkpoint_close(c);
}

/* Runs in bf16 of version 0.1.0 saved fp32: no bit of theirs is lost in bf16. */
static void test_bf16_saved_as_fp32(void **state)
{
    static const char old[] = "tests/data/checkpoints/llama_bf16_0.1";
    auto_free char *copy = xasprintf("%s/copy", (char *)*state);
    struct checkpoint *c;
    struct error err;
    checkpoints_copy(old, *state, "copy", DTYPE_BF16);
    checkpoints_assert_same(old, copy);
    const char *const paths[] = {old, copy};
    for (int i = 0; i < 2; i++) {
        assert_ok(checkpoint_open(paths[i], &c, &err), &err);
        for (int part = 0; part < CHECKPOINT_PARTS; part++) {
            enum dtype dtype;
            assert_ok(checkpoint_read_dtype(c, (enum checkpoint_part)part, &dtype, &err), &err);
            assert_int_equal(dtype, i == 0 ? DTYPE_F32 : DTYPE_BF16);
        }
        checkpoint_close(c);
    }
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_any_world_to_any_world),
        IN_DIR(test_those_of_others_are_named),
        IN_DIR(test_find_latest),
        IN_DIR(test_find_each_before_the_last),
        IN_DIR(test_others_stay),
        IN_DIR(test_another_save_looks_at_the_new_directory),
        IN_DIR(test_prune),
        IN_DIR(test_other_model),
        IN_DIR(test_bf16_saved_as_fp32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
