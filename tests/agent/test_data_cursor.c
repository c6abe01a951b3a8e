/* How long a run is, and where it ends. */
#include "agent/trainer/data_cursor.h"

#include "base/mem.h"
#include "tests/agent/config_line.h"
#include "tests/support.h"

static void parse(struct arena *arena, const char *line, struct config *config)
{
    struct error err;
    assert_ok(config_line_parse(arena, line, "", config, &err), &err);
}

/* Parts of an epoch and of a step round up, as in Transformers' Trainer. */
static void the_steps_of_a_run_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t batches, epoch_steps, steps; /* batches: of an epoch, -1: not known */
    } rows[] = {
        {"--epochs 3", 10, 30, 30},
        {"--epochs 3 --max_steps 25", 10, 30, 25},
        {"--epochs 3 --max_steps 99", 10, 30, 30},
        {"--epochs 2.5", 5, 13, 13},
        {"--epochs 2 --gradient_accumulation_steps 4", 10, 6, 6},
        {"--epochs 2 --gradient_accumulation_steps 4 --drop_incomplete_accumulation", 10, 4, 4},
        {"--epochs 2 --max_steps 7", -1, 0, 7},
        {"--epochs 2", -1, 0, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct batch_source train = {.batches = rows[i].batches};
        parse(arena, rows[i].line, &config);
        const struct data_cursor cursor = {.config = &config.value, .train = &train};
        assert_int_equal(data_cursor_epoch_steps(&cursor), rows[i].epoch_steps);
        assert_int_equal(data_cursor_steps(&cursor), rows[i].steps);
    }
}

static void epochs_and_runs_end(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t samples; /* of an epoch of 10 batches of 2 on 2 ranks; -1: not known */
        struct data_position position;
        bool epoch_is_over, goes_on, run_is_over;
        double epochs;
    } rows[] = {
        {"--epochs 2", 40, {0, 20, 5, 0, false}, false, true, false, 0.5},
        {"--epochs 2", 40, {0, 40, 10, 0, false}, true, false, false, 1},
        {"--epochs 2", 39, {1, 40, 20, 0, false}, true, false, false, 2}, /* filled up to whole
                                                                             batches */
        {"--epochs 2", 40, {2, 0, 20, 0, false}, false, true, true, 2},
        {"--epochs 2 --max_steps 5", 40, {0, 20, 5, 0, false}, false, false, true, 0.5},
        {"--epochs 1.5", 40, {1, 16, 14, 0, false}, false, true, false, 1.4},
        {"--epochs 1.5", 40, {1, 20, 15, 0, false}, false, false, true, 1.5},
        {"--epochs 2", -1, {0, 4000, 1000, 0, false}, false, true, false, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct batch_source train = {
            .batches = rows[i].samples < 0 ? -1 : 10, .samples = rows[i].samples, .batch_rows = 2};
        parse(arena, rows[i].line, &config);
        const struct data_cursor cursor = {
            .config = &config.value, .shares = 2, .train = &train, .position = rows[i].position};
        assert_int_equal(data_cursor_epoch_done(&cursor), rows[i].epoch_is_over);
        assert_int_equal(data_cursor_has_next_step(&cursor, cursor.position.step), rows[i].goes_on);
        assert_int_equal(data_cursor_run_done(&cursor), rows[i].run_is_over);
        assert_true(data_cursor_epochs(&cursor) == rows[i].epochs);
    }
}

/* Too few micro-batches for a step: the end of an epoch, or an epoch that never trains. */
static void too_few_micro_batches_end_an_epoch(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t batches, epoch_samples;
        bool ends;
        const char *error; /* NULL: none */
    } rows[] = {
        {"--gradient_accumulation_steps 4", 4, 0, false, NULL},
        {"--gradient_accumulation_steps 4", 3, 0, false, NULL},
        {"--gradient_accumulation_steps 4", 0, 8, true, NULL},
        {"--gradient_accumulation_steps 4", 0, 0, true, "too few samples for one batch"},
        {"--gradient_accumulation_steps 4 --drop_incomplete_accumulation", 3, 8, true, NULL},
        {"--gradient_accumulation_steps 4 --drop_incomplete_accumulation", 3, 0, true,
         "4 micro-batches make a step, but an epoch has only 3"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct batch_source train = {.what = "the data", .batch_rows = 2};
        struct error err;
        parse(arena, rows[i].line, &config);
        struct data_cursor cursor = {.config = &config.value,
                                     .train = &train,
                                     .position = {.epoch_samples = rows[i].epoch_samples}};
        if (rows[i].error)
            assert_fails(data_cursor_fetched(&cursor, rows[i].batches, &err), &err, ERR_CONFIG,
                         rows[i].error);
        else
            assert_ok(data_cursor_fetched(&cursor, rows[i].batches, &err), &err);
        assert_int_equal(cursor.epoch_ended, rows[i].ends);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_steps_of_a_run_are_known),
        cmocka_unit_test(epochs_and_runs_end),
        cmocka_unit_test(too_few_micro_batches_end_an_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
