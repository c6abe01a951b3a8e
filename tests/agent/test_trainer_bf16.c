/* Runs that keep bf16 alone (bf16-true): what they save is bf16, and it leads to the same bits,
 * also where it was saved as fp32, as runs of version 0.1.0 did. */
#include "agent/checkpoint/inspect.h"
#include "tests/agent/checkpoints.h"
#include "tests/agent/runs.h"
#include "tests/support.h"

#include <string.h>

#define BF16_TRUE "--mixed_precision=bf16-true "
#define LARGE     "--vocab_size=2200 " /* embeddings that are not converted at once */

enum { MAX_SIZE = 3, SAVED_STEP = 5, LAST_STEP = 8 }; /* in mid-epoch; at the end */

/* The bytes of all tensors, each of which is of this dtype. */
static int64_t count_bytes(const char *path, enum safetensors_dtype dtype)
{
    auto_arena struct arena *arena = arena_open();
    struct inspection in;
    struct error err;
    int64_t bytes = 0;
    assert_ok(inspect_read(arena, path, true, &in, &err), &err);
    assert_int_equal(in.problems.count, 0);
    for (int i = 0; i < in.tensor_count; i++) {
        if (in.tensors[i].dtype != dtype)
            fail_msg("%s: %s/%s is %s", path, in.tensors[i].part, in.tensors[i].name,
                     safetensors_dtype_name(in.tensors[i].dtype));
        bytes += in.tensors[i].count * safetensors_dtype_bytes(dtype);
    }
    return bytes;
}

/* Weights and optimizer state are saved in what the run keeps them in. */
static void the_dtype_is_the_runs(void **state)
{
    static const struct {
        const char *precision, *optimizer;
        enum safetensors_dtype dtype;
        int64_t bytes; /* of an element: its weight and its states */
    } rows[] = {
        {"no", "adamw", SAFETENSORS_F32, 12},        {"bf16", "adamw", SAFETENSORS_F32, 12},
        {"bf16-true", "adamw", SAFETENSORS_BF16, 6}, {"bf16-true", "adadelta", SAFETENSORS_BF16, 6},
        {"bf16-true", "sgd", SAFETENSORS_BF16, 4},
    };
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(rows); i++) {
        const char *dir = arena_printf(arena, "%s/dtype%zu", (char *)*state, i);
        struct run run = {0};
        runs_do_language(&run, arena, *state, 2,
                         arena_printf(arena,
                                      "--mixed_precision=%s --optim=%s --momentum=0.9 "
                                      "--max_steps=1 --checkpoint_dir=%s",
                                      rows[i].precision, rows[i].optimizer, dir));
        assert_int_equal(count_bytes(arena_printf(arena, "%s/llama-1steps", dir), rows[i].dtype),
                         run.seen[0].facts.parameters * rows[i].bytes);
    }
}

/* On as many ranks, from what was saved and from the same as fp32; and on others, from either. */
static void a_resumed_run_ends_with_the_same_bits(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *data = *state;
    for (int size = 1; size <= MAX_SIZE; size++) {
        const char *dir = arena_printf(arena, "%s/whole%d", data, size);
        const char *saved = arena_printf(arena, "%s/llama-%dsteps", dir, SAVED_STEP);
        const char *wide = arena_printf(arena, "%s/wide%d/llama", data, size);
        struct run whole = {0};
        runs_do_language(&whole, arena, data, size,
                         arena_printf(arena, BF16_TRUE "--save_steps=1 --checkpoint_dir=%s", dir));
        assert_int_equal(whole.seen[0].last_step, LAST_STEP);
        checkpoints_copy(saved, arena_printf(arena, "%s/wide%d", data, size), "llama", DTYPE_F32);
        assert_int_equal(count_bytes(wide, SAFETENSORS_F32),
                         2 * count_bytes(saved, SAFETENSORS_BF16));
        for (int rest_size = 1; rest_size <= MAX_SIZE; rest_size++) {
            const char *ends[2];
            for (int i = 0; i < 2; i++) {
                struct run rest = {0};
                const char *rest_dir =
                    arena_printf(arena, "%s/rest%d-%d-%d", data, size, rest_size, i);
                runs_do_language(
                    &rest, arena, data, rest_size,
                    arena_printf(arena, BF16_TRUE "--checkpoint_dir=%s --resume_from_checkpoint=%s",
                                 rest_dir, i ? wide : saved));
                assert_int_equal(rest.seen[0].resumed_step, SAVED_STEP);
                ends[i] = arena_printf(arena, "%s/llama-%dsteps", rest_dir, LAST_STEP);
            }
            checkpoints_assert_same(ends[0], ends[1]);
            if (rest_size == size)
                checkpoints_assert_same(arena_printf(arena, "%s/llama-%dsteps", dir, LAST_STEP),
                                        ends[0]);
        }
    }
}

/* Another precision goes on from the same weights: widened exactly, or rounded to nearest. */
static void another_precision_goes_on(void **state)
{
    static const struct {
        const char *saves, *goes_on;
        enum dtype dtype; /* of what goes on */
    } rows[] = {
        {"bf16-true", "no", DTYPE_F32},
        {"bf16-true", "bf16", DTYPE_F32},
        {"bf16", "bf16-true", DTYPE_BF16},
    };
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(rows); i++) {
        const char *dir = arena_printf(arena, "%s/other%zu", (char *)*state, i);
        const char *saved = arena_printf(arena, "%s/llama-2steps", dir);
        struct run first = {0}, second = {0}, third = {0};
        runs_do_language(
            &first, arena, *state, 2,
            arena_printf(arena, LARGE "--mixed_precision=%s --max_steps=2 --checkpoint_dir=%s",
                         rows[i].saves, dir));
        const char *go_on = arena_printf(
            arena,
            LARGE "--mixed_precision=%s --max_steps=4 --resume_from_checkpoint=", rows[i].goes_on);
        runs_do_language(&second, arena, *state, 3,
                         arena_printf(arena, "%s%s --checkpoint_dir=%s/second", go_on, saved, dir));
        assert_int_equal(second.seen[0].resumed_step, 2);
        assert_int_equal(second.seen[0].last_step, 4);
        count_bytes(arena_printf(arena, "%s/second/llama-4steps", dir),
                    rows[i].dtype == DTYPE_F32 ? SAFETENSORS_F32 : SAFETENSORS_BF16);
        /* The same from what was converted before. */
        checkpoints_copy(saved, dir, "converted", rows[i].dtype);
        runs_do_language(
            &third, arena, *state, 3,
            arena_printf(arena, "%s%s/converted --checkpoint_dir=%s/third", go_on, dir, dir));
        checkpoints_assert_same(arena_printf(arena, "%s/second/llama-4steps", dir),
                                arena_printf(arena, "%s/third/llama-4steps", dir));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dtype_is_the_runs),
        cmocka_unit_test(a_resumed_run_ends_with_the_same_bits),
        cmocka_unit_test(another_precision_goes_on),
    };
    return cmocka_run_group_tests(tests, runs_make_tokens, runs_remove);
}
