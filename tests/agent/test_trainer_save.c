/* Checkpoints of a run: written beside the training, and what happens when they cannot be. */
#include "tests/agent/runs.h"
#include "tests/support.h"

#include "agent/checkpoint/directory_lock.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define FLAGS "--checkpoint_dir %s/%s --save_steps 1 --max_steps 4 --eval_strategy no "

static const char *model_bytes(struct arena *arena, const char *path, size_t *ret_size)
{
    auto_free char *bytes = NULL;
    struct error err;
    assert_ok(file_read(path, 16 << 20, &bytes, ret_size, &err), &err);
    return arena_strndup(arena, bytes, *ret_size);
}

/* The same checkpoints as saving between the steps: each leads to the same model. */
static void a_save_beside_the_training_saves_its_step(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state, *models[2];
    size_t sizes[2];
    for (int async = 0; async < 2; async++) {
        const char *dir = async ? "beside" : "between";
        const char *path = arena_printf(arena, "%s/%s.safetensors", data, dir);
        const char *flags = arena_printf(arena, FLAGS "--checkpoint.async=%d", data, dir, async);
        struct run saving = {0}, resumed = {0};
        runs_do(&saving, arena, data, 2, flags);
        assert_int_equal(saving.seen[0].saves, 4);
        const char *text =
            arena_printf(arena, "%s/%s/mnist_cnn-2steps/agent_config.yaml", data, dir);
        assert_string_equal(model_bytes(arena, text, &sizes[async]), "seed: 1\n");
        flags = arena_printf(
            arena,
            "--resume %s/%s/mnist_cnn-2steps --save_model %s --max_steps 4 --eval_strategy no",
            data, dir, path);
        runs_do(&resumed, arena, data, 2, flags);
        assert_int_equal(resumed.seen[0].resumed_step, 2);
        models[async] = model_bytes(arena, path, &sizes[async]);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(models[0], models[1], sizes[0]);
}

/* FULL_STATE_DICT puts the whole weights into the checkpoint, which is removed in its turn. */
static void a_full_state_dict_lies_in_its_checkpoint(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    const char *path = arena_printf(arena, "%s/whole.safetensors", data);
    struct run run = {0};
    runs_do(&run, arena, data, 2,
            arena_printf(arena, FLAGS "--state_dict_type full --keep_last 1 --save_model %s", data,
                         "full", path));
    assert_int_equal(run.seen[0].saves, 4);
    size_t sizes[2];
    const char *full = arena_printf(arena, "%s/full/mnist_cnn-4steps/full.safetensors", data);
    const char *bytes[2] = {model_bytes(arena, full, &sizes[0]),
                            model_bytes(arena, path, &sizes[1])};
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    assert_int_equal(access(arena_printf(arena, "%s/full/mnist_cnn-3steps", data), F_OK), -1);
}

/* Puts a file where the checkpoints were, after the first one. */
static void lose_the_directory(struct seen *seen, int64_t step)
{
    if (step != 1)
        return;
    auto_free char *dir = xasprintf("%s/lost", seen->data),
                   *away = xasprintf("%s/away", seen->data);
    assert_int_equal(rename(dir, away), 0);
    FILE *file = fopen(dir, "we");
    assert_non_null(file);
    fclose(file);
}

static void a_failed_save_is_told_and_the_second_ends_the_run(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    for (int async = 0; async < 2; async++) {
        struct config *config = arena_new(arena, struct config);
        const char *flags = arena_printf(arena, FLAGS "--checkpoint.async=%d", data, "lost", async);
        runs_configure(config, arena, data, 2, flags);
        struct run run = {.config = &config->value, .size = 2};
        run.seen[0].after_save = lose_the_directory;
        run.seen[0].data = data;
        runs_start(&run);
        for (int rank = 0; rank < 2; rank++) {
            struct error err = run.err[rank];
            assert_int_equal(run.result[rank], -1);
            assert_non_null(strstr(err.msg, "lost"));
            assert_non_null(strstr(run.seen[rank].save_failed, "checkpoint at step"));
            assert_int_equal(run.seen[rank].saves, 1);
        }
        auto_free char *kept = xasprintf("%s/away/mnist_cnn-1steps/COMPLETE", data);
        auto_free char *bytes = NULL;
        size_t size;
        struct error err;
        assert_ok(file_read(kept, 1 << 20, &bytes, &size, &err), &err);
        auto_free char *away = xasprintf("%s/away", data), *file = xasprintf("%s/lost", data);
        support_remove_tree(away);
        assert_int_equal(remove(file), 0);
    }
}

/* Neither is refused for ever: a restart of the one that waits may find the directory free. */
static void a_directory_that_another_run_writes_to_is_refused(void **state)
{
    static const struct {
        const char *name;
        bool restarted;
        enum error_code code;
    } rows[] = {
        {"uid-2", false, ERR_EXISTS},  /* another run: permanent */
        {"", false, ERR_EXISTS},       /* perhaps another one */
        {"uid-1", false, ERR_TIMEOUT}, /* the holder's successor, after a restart of the pod */
        {"", true, ERR_TIMEOUT},       /* likewise, of the process */
    };
    auto_arena struct arena *arena = arena_open();
    const struct directory_owner owner = {.host = "pod-a", .pid = 42, .run = "uid-1"};
    const char *data = *state, *dir = arena_printf(arena, "%s/held", data);
    const char *flags = arena_printf(arena, FLAGS "--runtime.timeout 0.1", data, "held");
    struct directory_owner unused;
    struct run whole = {0};
    struct error err;
    int fd;
    runs_do(&whole, arena, data, 2, flags);
    assert_int_equal(directory_lock(dir, &owner, flock, &fd, &unused, &err), DIRECTORY_LOCKED);
    for (size_t i = 0; i < array_length(rows); i++) {
        struct config *config = arena_new(arena, struct config);
        runs_configure(config, arena, data, 2, flags);
        struct run run = {.config = &config->value,
                          .size = 2,
                          .name = rows[i].name,
                          .restarted = rows[i].restarted};
        runs_start(&run);
        for (int rank = 0; rank < 2; rank++) {
            assert_int_equal(run.result[rank], -1);
            assert_int_equal(run.err[rank].code, rows[i].code);
            assert_non_null(strstr(run.err[rank].msg, "process 42 on host pod-a writes"));
            assert_non_null(strstr(run.err[rank].msg, dir));
        }
        assert_non_null(strstr(run.seen[0].notice, "waiting 0.05 s for its end"));
        assert_int_equal(run.seen[0].steps, 0);
    }
    close(fd);
    runs_do(&whole, arena, data, 2, flags);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_save_beside_the_training_saves_its_step),
        cmocka_unit_test(a_full_state_dict_lies_in_its_checkpoint),
        cmocka_unit_test(a_directory_that_another_run_writes_to_is_refused),
        cmocka_unit_test(a_failed_save_is_told_and_the_second_ends_the_run),
    };
    return cmocka_run_group_tests(tests, runs_make_images, runs_remove);
}
