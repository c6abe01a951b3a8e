#include "agent/config_consistency.h"

#include "base/contract.h"
#include "base/mem.h"
#include "tests/agent/config_line.h"
#include "tests/agent/ranks.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 3 };

static int compare(struct rank *r, struct comm *comm, struct stream *stream, struct error *err)
{
    (void)comm, (void)stream;
    auto_arena struct arena *arena = arena_open();
    struct config config;
    if (config_line_parse(arena, r->arg, "", &config, err) < 0)
        return -1;
    struct store *store = comm_local_store(r->group);
    int result = config_consistency_check(&config, store, r->rank, r->size, r->timeout_ms, err);
    /* by now the store may end with rank 0: the others have said that they have the verdict */
    for (int other = 1; result < 0 && r->rank == 0 && other < r->size; other++) {
        char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
        snprintf(key, sizeof key, "alike/heard/%d", other);
        struct error missing;
        assert_ok(store->fn->get(store, key, 1, value, &missing), &missing);
    }
    return result;
}

/* Rank 0 and 1 have one line; what rank 2 has besides; what all ranks then hear. */
static void ranks_are_told_what_differs(void **state)
{
    (void)state;
    char long_a[] =
        "--preset mnist --decay_exclude aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    char long_b[] =
        "--preset mnist --decay_exclude aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    const struct {
        char *first, *last;
        const char *error; /* NULL: they may differ so */
    } rows[] = {
        {"--preset mnist", "--preset mnist", NULL},
        {"--preset mnist", "--preset mnist --lr 1", NULL}, /* that is its own */
        {"--preset mnist", "--preset mnist --node_rank 1 --jsonl x --device cpu", NULL},
        {"--preset mnist", "--preset mnist --num_workers 5", NULL},
        {"--preset mnist --data.root /a", "--preset mnist --data.root /b", NULL},
        {"--preset mnist", "--preset mnist --lr 0.5",
         "optimizer.lr: rank 2 has '0.5', rank 0 has '1'; give all ranks the same"},
        {"--preset mnist", "--preset mnist --seed 7",
         "runtime.seed: rank 2 has '7', rank 0 has '1'"},
        {"--preset mnist", "--preset mnist --profiler.enable",
         "profiler.enable: rank 2 has 'true', rank 0 has 'false'"},
        {"--preset mnist", "--preset mnist --checkpoint_dir /c",
         "checkpoint.dir: rank 2 has 'given', rank 0 has 'not given'"},
        {long_a, long_b, "optimizer.decay_exclude: rank 2 has 'aaaaaaaaaaaaaaaa... (xxh64 "},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct rank ranks[RANKS] = {
            {.arg = rows[i].first}, {.arg = rows[i].first}, {.arg = rows[i].last}};
        ranks_run(ranks, RANKS, RANKS_TIMEOUT_MS, compare);
        for (int r = 0; r < RANKS; r++) {
            if (!rows[i].error) {
                assert_ok(ranks[r].result, &ranks[r].err);
                continue;
            }
            assert_fails(ranks[r].result, &ranks[r].err, ERR_CONFIG, rows[i].error);
            assert_true(ranks[r].err.shared);
        }
    }
}

/* Rank 0 names the first that differs, whoever else does. */
static void one_difference_is_told_to_all(void **state)
{
    (void)state;
    struct rank ranks[RANKS] = {{.arg = "--preset mnist"},
                                {.arg = "--preset mnist --epochs 3"},
                                {.arg = "--preset mnist --lr 2"}};
    ranks_run(ranks, RANKS, RANKS_TIMEOUT_MS, compare);
    for (int r = 0; r < RANKS; r++)
        assert_fails(ranks[r].result, &ranks[r].err, ERR_CONFIG,
                     "schedule.num_train_epochs: rank 1 has '3', rank 0 has '");
}

/* Rank 0 as 0.1.0 plays it, or as a later version: what it says and hears is what agents in the
 * field do. */
static const char *digest, *difference;

static int play_another_version(struct rank *r, struct comm *comm, struct stream *stream,
                                struct error *err)
{
    if (r->rank != 0)
        return compare(r, comm, stream, err);
    struct store *store = comm_local_store(r->group);
    char value[STORE_VALUE_MAX];
    if (store->fn->set(store, "alike/digest/0", digest, err) ||
        store->fn->get(store, "alike/rank/1", r->timeout_ms, value, err))
        return -1;
    assert_string_equal(value, difference);
    return store->fn->set(store, "alike/verdict/0", value, err) ||
                   store->fn->get(store, "alike/heard/1", r->timeout_ms, value, err)
               ? -1
               : 0;
}

static void another_version_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *digest, *difference;
    } rows[] = {
        {"1 keys 0123456789abcdef",
         "rank 1 is of version " SHOAL_VERSION ", rank 0 of an older one"},
        {"1 keys 0123456789abcdef 77.1.0-rc2",
         "rank 1 is of version " SHOAL_VERSION ", rank 0 of 77.1.0-rc2"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char line[] = "--preset mnist";
        struct rank ranks[2] = {{.arg = line}, {.arg = line}};
        digest = rows[i].digest;
        difference = rows[i].difference;
        ranks_run(ranks, 2, RANKS_TIMEOUT_MS, play_another_version);
        assert_ok(ranks[0].result, &ranks[0].err);
        assert_fails(ranks[1].result, &ranks[1].err, ERR_CONFIG, difference);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_told_what_differs),
        cmocka_unit_test(one_difference_is_told_to_all),
        cmocka_unit_test(another_version_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
