/* Which units, which strategy and which groups a run has, and what it says of them. */
#include "tests/agent/runs.h"
#include "tests/support.h"

#include <string.h>

static const struct {
    int size;
    const char *flags;
    int local_sizes[RUNS_MAX_RANKS];
    const char *strategy, *notice; /* the last; "": any */
    const char *error;             /* NULL: it runs */
} rows[] = {
    {1, "--sharding_strategy auto", {0}, "NO_SHARD", "auto: NO_SHARD, for below 1B", NULL},
    {2, "--sharding_strategy FULL_SHARD", {0}, "FULL_SHARD", "units of", NULL},
    {4, "--sharding_strategy hybrid", {2, 2, 2, 2}, "HYBRID_SHARD", "units of", NULL},
    /* one of a node of three and one of a node of one: groups of one */
    {4, "--sharding_strategy hybrid", {3, 3, 3, 1}, "HYBRID_SHARD", "", NULL},
    {3, "--sharding_strategy hybrid --shard_group_size 2", {0}, "", "", "groups of 2 ranks do not"},
    {2,
     "--auto_wrap_policy GPT2Block",
     {0},
     "",
     "",
     "rank 0: Could not find the transformer layer class GPT2Block in the model. LlamaForCausalLM"},
    {1,
     "--sharding_strategy NO_SHARD --style fabric --max_steps 5",
     {0},
     "NO_SHARD",
     "schedule.max_steps=5 ends the run before schedule.num_train_epochs=2 does, at step 8",
     NULL},
    {1, "--sharding_strategy NO_SHARD --style fabric --max_steps 8", {0}, "NO_SHARD", "", NULL},
    {1,
     "--sharding_strategy NO_SHARD --style fabric --max_steps 9",
     {0},
     "NO_SHARD",
     "schedule.max_steps=9 is beyond the run's end: schedule.num_train_epochs=2 ends it, and the "
     "schedule, at step 8",
     NULL},
    {1,
     "--sharding_strategy NO_SHARD --eval_strategy steps --eval_split eval --eval_steps 9",
     {0},
     "NO_SHARD",
     "eval.eval_steps=9 is beyond the run's last step, 8: it is never evaluated",
     NULL},
    {1,
     "--sharding_strategy NO_SHARD --warmup_steps 8",
     {0},
     "NO_SHARD",
     "schedule.warmup_steps=8 is not below the run's last step, 8: the rate never reaches "
     "optimizer.lr",
     NULL},
    {1,
     "--sharding_strategy NO_SHARD --eval_strategy steps --eval_split eval --eval_steps 8 --runtime.debug detail",
     {0},
     "NO_SHARD",
     "runtime.debug is ignored",
     NULL},
    {1,
     "--sharding_strategy NO_SHARD --runtime.debug detail",
     {0},
     "NO_SHARD",
     "runtime.debug is ignored",
     NULL},
};

static void start(struct run *run, struct arena *arena, const char *data, size_t i)
{
    struct config *config = arena_new(arena, struct config);
    bool evaluates = strstr(rows[i].flags, "--eval_split");
    const char *flags =
        evaluates ? arena_printf(arena, "%s --dataset %s", rows[i].flags, data) : rows[i].flags;
    runs_configure_language(config, arena, data, rows[i].size, flags);
    run->config = &config->value;
    run->size = rows[i].size;
    memcpy(run->local_sizes, rows[i].local_sizes, sizeof run->local_sizes);
    runs_start(run);
}

static void units_and_groups_are_alike_on_all_ranks(void **state)
{
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct run *run = arena_new(arena, struct run);
        start(run, arena, *state, i);
        for (int rank = 0; rank < rows[i].size; rank++) {
            const struct seen *seen = &run->seen[rank];
            if (rows[i].error) {
                assert_fails(run->result[rank], &run->err[rank], ERR_CONFIG, rows[i].error);
                assert_true(run->err[rank].shared);
                continue;
            }
            assert_ok(run->result[rank], &run->err[rank]);
            assert_string_equal(seen->facts.strategy, rows[i].strategy);
            assert_non_null(strstr(seen->notice, rows[i].notice));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(units_and_groups_are_alike_on_all_ranks)};
    return cmocka_run_group_tests(tests, runs_make_tokens, runs_remove);
}
