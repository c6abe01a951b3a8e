/* Where a run is, as text and back. */
#include "agent/checkpoint/checkpoint_state.h"

#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* No field is 0: one that is not stored would come back as that. */
static struct checkpoint_state full_state(void)
{
    return (struct checkpoint_state){
        .epoch = 3,
        .epoch_samples = 1920,
        .step = 100,
        .micro_batches = INT64_C(9007199254740993), /* not a double */
        .optimizer_steps = 42,
        .seed = UINT64_MAX - 1,
        .learning_rate = 0.1 + 0.2,
        .epoch_loss_sum = 1.0 / 3.0,
        .epoch_correct = 1500,
        .epoch_rows = 1920,
        .world_size = 3,
        .train_rows = 60000,
        .batch_rows = 64,
        .strategy = "FULL_SHARD",
        .schedule_type = "cosine",
        .peak_lr = 1e-4,
        .min_lr = 1e-5,
        .warmup_ratio = 0.0032,
        .warmup_steps = 16,
        .decay_steps = 5000,
        .optimizer = "adamw",
        .run = "0123456789abcdef",
        .data = "{\"file\": 7}",
    };
}

static void what_is_printed_is_read_back(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    static const double reals[] = {1.0 / 3.0, 0.0, -0.0, 1.0, 5e-324, 1.7e308, NAN, -INFINITY};
    struct checkpoint_state after = {0};
    struct error err;
    for (size_t i = 0; i < array_length(reals); i++) {
        struct checkpoint_state before = full_state();
        before.epoch_loss_sum = reals[i];
        auto_free char *printed = checkpoint_state_print(&before);
        assert_ok(
            checkpoint_state_parse(arena, "state.json", printed, strlen(printed), &after, &err),
            &err);
        assert_string_equal(before.data, after.data);
        assert_string_equal(before.optimizer, after.optimizer);
        assert_string_equal(before.run, after.run);
        before.data = after.data;
        before.optimizer = after.optimizer;
        before.run = after.run;
        assert_memory_equal(&before, &after, sizeof before);
    }
    const struct checkpoint_state state_1 = full_state();
    auto_free char *text = checkpoint_state_print(&state_1);
    static const struct {
        const char *from, *to, *fails;
    } rows[] = {
        {"\"epoch\": 3", "\"epoch\": -3", "state.json: epoch is not a whole number"},
        {"\"epoch\": 3", "\"epoch\": 3.5", "epoch is not a whole number"},
        {"\"epoch\": 3", "\"epoh\": 3.0", "epoch is missing"},
        {"\"world_size\": 3", "\"world_size\": \"3\"", "world_size is not a whole number"},
        {"\"epoch_rows\": 1920.0", "\"epoch_rows\": \"1920\"", "epoch_rows is not a number"},
        {"\"FULL_SHARD\"", "7", "strategy is not a short text"},
        {"\"seed\": -2", "\"seed\": []", "seed is not a whole number"},
        {"\"data\": \"{\\\"file\\\": 7}\"", "\"data\": 1", "data is not a text"},
        {"\"adamw\"", "[]", "optimizer is not a text"},
        {"{", "[", "line 2"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const char *at = strstr(text, rows[i].from);
        assert_non_null(at);
        auto_free char *changed =
            xasprintf("%.*s%s%s", (int)(at - text), text, rows[i].to, at + strlen(rows[i].from));
        assert_fails(
            checkpoint_state_parse(arena, "state.json", changed, strlen(changed), &after, &err),
            &err, ERR_INPUT, rows[i].fails);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_printed_is_read_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
