/* Batches of rows as T5 and BERT read them: no world size, batch size or resume changes which
 * samples there are, their order or which words are hidden. */
#include "tests/agent/source_rows.h"

#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

static const struct {
    enum model_task task;
    const char *flags;
    int64_t samples;
} tasks[] = {
    {MODEL_TRANSLATION, "--dataset rows", SOURCE_ROWS},
    {MODEL_CLASSES, "--dataset rows", SOURCE_ROWS},
    {MODEL_MASKED, "--dataset lines --packing none --mlm_probability 0.4", SOURCE_ROWS},
    {MODEL_PRETRAINING, "--dataset lines --mlm_probability 0.4", 8},
};

/* ---- the same whatever the layout ---- */

static void check_same(const struct source_rows_seen *one, const struct source_rows_seen *many,
                       int64_t first, int64_t samples)
{
    for (int64_t i = 0; i < many->count; i++) {
        assert_non_null(many->rows[i]); /* without a gap */
        assert_string_equal(many->rows[i], one->rows[(first + i) % samples]);
    }
}

static void test_worlds_see_the_same(void **state)
{
    source_rows_write(*state);
    for (size_t i = 0; i < array_length(tasks); i++) {
        for (int64_t epoch = 0; epoch < 2; epoch++) {
            auto_arena struct arena *arena = arena_open();
            const struct agent_config *one = source_rows_configure(
                arena, *state, arena_printf(arena, "--batch_size 4 %s", tasks[i].flags));
            const struct agent_config *other = source_rows_configure(
                arena, *state,
                arena_printf(arena, "--batch_size 3 --num_workers 0 %s", tasks[i].flags));
            struct source_rows_seen whole =
                source_rows_read(one, tasks[i].task, 1, epoch, 0, 100, false);
            assert_int_equal(whole.count, tasks[i].samples);
            for (int size = 1; size <= 4; size++) {
                struct source_rows_seen seen =
                    source_rows_read(other, tasks[i].task, size, epoch, 0, 100, false);
                /* DistributedSampler's rule: filled up with the beginning */
                assert_int_equal(seen.count, (tasks[i].samples + size - 1) / size * size);
                check_same(&whole, &seen, 0, tasks[i].samples);
                source_rows_free(&seen);
            }
            source_rows_free(&whole);
        }
    }
}

static void test_another_world_goes_on(void **state)
{
    source_rows_write(*state);
    for (size_t i = 0; i < array_length(tasks); i++) {
        auto_arena struct arena *arena = arena_open();
        const struct agent_config *config = source_rows_configure(
            arena, *state, arena_printf(arena, "--batch_size 2 %s", tasks[i].flags));
        struct source_rows_seen whole =
            source_rows_read(config, tasks[i].task, 1, 1, 0, 100, false);
        for (int before = 1; before <= 2; before++) {
            for (int after = 1; after <= 3; after++) {
                struct source_rows_seen begun =
                    source_rows_read(config, tasks[i].task, before, 1, 0, 1, false);
                struct source_rows_seen rest =
                    source_rows_read(config, tasks[i].task, after, 1, begun.count, 100, false);
                check_same(&whole, &begun, 0, tasks[i].samples);
                check_same(&whole, &rest, begun.count, tasks[i].samples);
                int64_t left = tasks[i].samples - begun.count;
                assert_int_equal(rest.count, (left + after - 1) / after * after);
                source_rows_free(&begun);
                source_rows_free(&rest);
            }
        }
        struct source_rows_seen over =
            source_rows_read(config, tasks[i].task, 2, 1, tasks[i].samples, 100, false);
        assert_int_equal(over.count, 0); /* the epoch is done */
        source_rows_free(&whole);
    }
}

/* An epoch has its own order and its own hidden words. */
static void test_epochs_differ(void **state)
{
    source_rows_write(*state);
    auto_arena struct arena *arena = arena_open();
    const struct agent_config *config = source_rows_configure(
        arena, *state, "--batch_size 4 --dataset lines --packing none --shuffle false");
    struct source_rows_seen one = source_rows_read(config, MODEL_MASKED, 1, 0, 0, 100, false);
    struct source_rows_seen two = source_rows_read(config, MODEL_MASKED, 1, 1, 0, 100, false);
    int same = 0;
    for (int64_t i = 0; i < SOURCE_ROWS; i++)
        same += strcmp(one.rows[i], two.rows[i]) == 0;
    assert_true(same < SOURCE_ROWS / 2);
    source_rows_free(&one);
    source_rows_free(&two);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_worlds_see_the_same),
        IN_DIR(test_another_world_goes_on),
        IN_DIR(test_epochs_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
