/* Ranks that are fewer or more than before, or other ones, go on from what they have in memory:
 * with reduction slots to the bits of the run that never changed. */
#include "agent/launch/rank_memory.h"
#include "base/file.h"
#include "tests/agent/runs.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 4, STARTS = 4, NEW = -1 };

/* A start: whose memory each rank has, of the start before; NEW: none. */
struct start {
    int size;
    int from[RUNS_MAX_RANKS];
    int step; /* that it goes on from; 0: the beginning */
};

struct change {
    const char *name, *flags;
    struct start starts[STARTS];
};

static const struct change changes[] = {
    {"4 to 2 and back",
     "--sharding_strategy=FULL_SHARD --memory_buddies",
     {{4, {NEW, NEW, NEW, NEW}, 0},
      {2, {0, 2}, 4}, /* each has its buddy's */
      {4, {0, 1, NEW, NEW}, 8},
      {4, {0, 1, 2, 3}, 12}}},
    {"3, 1, 3: one that is lost had the first number",
     "--sharding_strategy=SHARD_GRAD_OP --memory_buddies",
     {{3, {NEW, NEW, NEW}, 0}, {1, {2}, 4}, {3, {NEW, 0, NEW}, 8}, {2, {2, 0}, 12}}},
    {"as many, but others",
     "--sharding_strategy=FULL_SHARD",
     {{3, {NEW, NEW, NEW}, 0}, {3, {2, 0, 1}, 4}, {2, {1, 2}, 0}, {2, {0, 1}, 12}}},
    {"copies of one model",
     "--sharding_strategy=NO_SHARD",
     {{4, {NEW, NEW, NEW, NEW}, 0}, {1, {3}, 4}, {3, {NEW, NEW, 0}, 8}, {2, {0, 2}, 12}}},
    {"groups",
     "--sharding_strategy=HYBRID_SHARD --shard_group_size=2",
     {{4, {NEW, NEW, NEW, NEW}, 0},
      {2, {2, 1}, 4},
      {4, {NEW, 1, 0, NEW}, 8},
      {4, {3, 2, 1, 0}, 12}}},
    {"in bf16, accumulated",
     "--sharding_strategy=FULL_SHARD --mixed_precision=bf16-true --memory_buddies "
     "--gradient_accumulation_steps=1",
     {{4, {NEW, NEW, NEW, NEW}, 0}, {3, {0, 2, 3}, 4}, {2, {1, 2}, 8}, {1, {0}, 12}}},
};

/* The ranks of one start, each a pod of its own. */
static struct run *start(struct arena *arena, const char *data, const char *flags, int size,
                         const int fds[RUNS_MAX_RANKS], int stop_at)
{
    struct config *config = arena_new(arena, struct config);
    struct run *run = arena_new(arena, struct run);
    runs_configure_language(config, arena, data, SLOTS, flags);
    *run = (struct run){.config = &config->value, .size = size, .name = "uid-1", .min_ranks = 1};
    for (int rank = 0; rank < size; rank++) {
        run->memory_fds[rank] = fds[rank];
        run->local_sizes[rank] = 1;
        run->seen[rank].stop_at_step = stop_at;
    }
    runs_start(run);
    for (int rank = 0; rank < size; rank++)
        if (stop_at)
            assert_fails(run->result[rank], &run->err[rank], ERR_CANCELLED, "stopped");
        else
            assert_ok(run->result[rank], &run->err[rank]);
    return run;
}

static void hand_on(const struct start *start, int fds[RUNS_MAX_RANKS])
{
    int before[RUNS_MAX_RANKS];
    bool is_kept[RUNS_MAX_RANKS] = {false};
    struct error err;
    memcpy(before, fds, sizeof before);
    for (int rank = 0; rank < RUNS_MAX_RANKS; rank++) {
        bool is_old = rank < start->size && start->from[rank] != NEW;
        fds[rank] = 0;
        if (is_old) {
            fds[rank] = before[start->from[rank]];
            is_kept[start->from[rank]] = true;
        } else if (rank < start->size) {
            assert_ok(rank_memory_open(rank, &fds[rank], &err), &err);
        }
    }
    for (int rank = 0; rank < RUNS_MAX_RANKS; rank++)
        if (before[rank] > 0 && !is_kept[rank])
            close(before[rank]);
}

static void same_weights(const char *name, const char *a, const char *b)
{
    char *bytes[2];
    size_t sizes[2];
    struct error err;
    assert_ok(file_read(a, 64 << 20, &bytes[0], &sizes[0], &err), &err);
    assert_ok(file_read(b, 64 << 20, &bytes[1], &sizes[1], &err), &err);
    if (sizes[0] != sizes[1] || memcmp(bytes[0], bytes[1], sizes[0]) != 0)
        fail_msg("%s: not the weights of the run that never changed", name);
    free(bytes[0]), free(bytes[1]);
}

static void play(const struct change *change, const char *data)
{
    auto_arena struct arena *arena = arena_open();
    const char *paths[2], *flags[2];
    int fds[RUNS_MAX_RANKS] = {0};
    const int none[RUNS_MAX_RANKS] = {0};
    for (int n = 0; n < 2; n++) {
        paths[n] = arena_printf(arena, "%s/recut-%d", data, n);
        flags[n] = arena_printf(arena,
                                "--device=cpu --epochs=4 --eval_strategy=no --lr=0.001 "
                                "--parallel.reduction_slots=4 %s --save_model=%s "
                                "--memory_every_steps=%d",
                                change->flags, paths[n], n ? 1000 : 0);
    }
    start(arena, data, flags[0], change->starts[0].size, none, 0);
    for (int i = 0; i < STARTS; i++) {
        const struct start *s = &change->starts[i];
        hand_on(s, fds);
        const struct run *run =
            start(arena, data, flags[1], s->size, fds, i + 1 < STARTS ? 4 * i + 3 : 0);
        const struct seen *seen = &run->seen[0];
        if (seen->resumed_step != s->step || seen->from_memory != (s->step > 0) ||
            (s->step > 0 && seen->steps_lost != 0))
            fail_msg("%s: start %d resumed at step %d, %d lost: %s", change->name, i,
                     seen->resumed_step, seen->steps_lost, seen->notice);
    }
    hand_on(&(struct start){0}, fds);
    same_weights(change->name, arena_printf(arena, "%s/model.safetensors", paths[0]),
                 arena_printf(arena, "%s/model.safetensors", paths[1]));
}

static void other_ranks_go_on(void **state)
{
    for (size_t i = 0; i < array_length(changes); i++)
        play(&changes[i], *state);
}

/* ---- a rank dies while they take over ---- */

/* The first two ranks go on from what four have left, until the second dies or both do, else until
 * they are asked to stop. */
static struct run *take_over(struct arena *arena, const char *data, const char *flags,
                             const int fds[RUNS_MAX_RANKS], const struct doom *doom, bool both)
{
    struct config *config = arena_new(arena, struct config);
    struct run *run = arena_new(arena, struct run);
    runs_configure_language(config, arena, data, SLOTS, flags);
    *run = (struct run){.config = &config->value, .size = 2, .name = "uid-1", .min_ranks = 1};
    for (int rank = 0; rank < 2; rank++) {
        run->memory_fds[rank] = fds[rank];
        run->local_sizes[rank] = 1;
        run->seen[rank].stop_at_step = 5;
    }
    run->dooms[1] = *doom;
    run->dooms[0].nth = both ? doom->nth : 0;
    run->dooms[0].phase = doom->phase;
    runs_start(run);
    return run;
}

static void nothing_is_lost_until_all_have_saved(void **state)
{
    static const struct {
        enum rank_phase phase;
        int most;  /* collectives before which it dies, one start after the other */
        bool both; /* else the other has gone on, as far as it can */
    } rows[] = {
        {RANK_START, 1000, true}, {RANK_SNAPSHOT, 1000, false}, {RANK_FIRST_STEP, 1, false}};
    /* Nothing is on disk, and the next snapshot would come behind the end. */
    const char *flags = "--device=cpu --epochs=4 --sharding_strategy=FULL_SHARD --memory_buddies "
                        "--parallel.reduction_slots=4 --memory_every_steps=1000";
    const char *data = *state;
    for (size_t i = 0; i < array_length(rows); i++) {
        int fds[RUNS_MAX_RANKS] = {0}, nth = 0;
        bool has_died = true;
        auto_arena struct arena *arena = arena_open();
        hand_on(&(struct start){4, {NEW, NEW, NEW, NEW}, 0}, fds);
        start(arena, data, flags, 4, fds, 3);
        hand_on(&(struct start){2, {0, 2}, 4}, fds);
        while (has_died) {
            const struct doom doom = {rows[i].phase, ++nth <= rows[i].most ? nth : 0};
            const struct run *run = take_over(arena, data, flags, fds, &doom, rows[i].both);
            const struct seen *seen = &run->seen[0];
            has_died = run->seen[1].has_died;
            if (run->err[0].code != (has_died ? ERR_PEER : ERR_CANCELLED))
                fail_msg("row %zu, collective %d: %s", i, nth, run->err[0].msg);
            if (!has_died && (!seen->from_memory || seen->steps_lost != 0))
                fail_msg("row %zu: after %d deaths they go on at step %d, %d lost: %s", i, nth - 1,
                         seen->resumed_step, seen->steps_lost, seen->notice);
        }
        assert_in_range(nth, 2, 200);
        hand_on(&(struct start){0}, fds);
    }
}

/* ---- whose ends are counted ---- */

/* Ranks that stop as they were asked to, or are others than before, have not ended in a step: of
 * two deaths in the next one the second is the first to be told. */
static void a_change_of_size_is_no_end(void **state)
{
    static const struct start starts[] = {{2, {0, 1}, 4}, {2, {0, 2}, 4}};
    const char *flags = "--device=cpu --epochs=4 --sharding_strategy=FULL_SHARD --memory_buddies "
                        "--parallel.reduction_slots=4 --memory_every_steps=1000";
    const struct doom doom = {RANK_FIRST_STEP, 1}, none = {0};
    for (size_t i = 0; i < array_length(starts); i++) {
        int fds[RUNS_MAX_RANKS] = {0}, size = i == 0 ? 2 : 4;
        auto_arena struct arena *arena = arena_open();
        hand_on(&(struct start){size, {NEW, NEW, NEW, NEW}, 0}, fds);
        start(arena, *state, flags, size, fds, 3);
        hand_on(&starts[i], fds);
        for (int deaths = 0; deaths <= 2; deaths++) {
            const struct run *run =
                take_over(arena, *state, flags, fds, deaths < 2 ? &doom : &none, false);
            const char *told = run->seen[0].fatal;
            assert_int_equal(run->seen[0].resumed_step, 4);
            if ((deaths == 2) != (strstr(told, "has ended 2 times in a row in step 5") != NULL) ||
                (deaths < 2 && told[0]))
                fail_msg("%d ranks, after %d deaths: %s", size, deaths, told);
        }
        hand_on(&(struct start){0}, fds);
    }
}

/* ---- room for the fewest ---- */

struct room {
    int min_ranks;
    const char *flags;
    int64_t left; /* bytes, on each rank's machine */
};

static const struct run *begin(const struct room *room, struct arena *arena, const char *data,
                               bool *ret_saves)
{
    enum { SIZE = 4 };
    struct config *config = arena_new(arena, struct config);
    struct run *run = arena_new(arena, struct run);
    struct error err;
    runs_configure_language(config, arena, data, SLOTS,
                            arena_printf(arena,
                                         "--device=cpu --max_steps=1 --auto_wrap_policy=NO_WRAP %s",
                                         room->flags));
    *run = (struct run){.config = &config->value, .size = SIZE, .min_ranks = room->min_ranks};
    for (int rank = 0; rank < SIZE; rank++) {
        assert_ok(rank_memory_open(rank, &run->memory_fds[rank], &err), &err);
        run->local_sizes[rank] = 1;
        struct memory_bound *bounds = run->memory_left[rank];
        bounds[MEMORY_OF_MACHINE] = (struct memory_bound){(uint64_t)rank + 1, room->left};
        bounds[MEMORY_OF_CONTAINER] = (struct memory_bound){0, INT64_MAX};
    }
    runs_start(run);
    *ret_saves = rank_memory_used(run->memory_fds[0]) > 0;
    for (int rank = 0; rank < SIZE; rank++)
        close(run->memory_fds[rank]);
    return run;
}

/* The least that is enough to save now, or if it is asked for by number, at all times. */
static int64_t least_room(const struct room *room, const char *data)
{
    enum { NEAR = 1 << 12 };
    int64_t short_of = 0, enough = 1 << 27;
    while (enough - short_of > NEAR) {
        auto_arena struct arena *arena = arena_open();
        struct room it = *room;
        bool saves;
        it.left = short_of + (enough - short_of) / 2;
        begin(&it, arena, data, &saves);
        *(saves ? &enough : &short_of) = it.left;
    }
    return enough;
}

/* A run that may shrink says at its start what it will have no room for then. */
static void the_fewest_ranks_have_room_or_it_is_told(void **state)
{
#define BY_NUMBER "--sharding_strategy=FULL_SHARD --memory_every_steps=1 "
    const char *data = *state;
    const int64_t now = least_room(&(struct room){0, BY_NUMBER, 0}, data);
    const int64_t alone = least_room(&(struct room){1, BY_NUMBER, 0}, data);
    const int64_t two = least_room(&(struct room){2, BY_NUMBER "--memory_buddies", 0}, data);
    const struct {
        struct room room;
        bool fails; /* if it is asked for by number */
        const char *notice;
    } rows[] = {
        {{0, BY_NUMBER, now}, false, ""},
        {{4, BY_NUMBER, now}, false, ""},
        {{1, BY_NUMBER, now},
         true,
         "checkpoint.memory_every_steps (0 saves none): once the run has shrunk to 1 rank: rank 0: "
         "memory checkpoints of 1 rank need "},
        {{1, "--sharding_strategy=FULL_SHARD", now},
         false,
         "there will be no checkpoints in memory (checkpoint.memory_every_steps): once the run has "
         "shrunk to 1 rank: rank 0: memory checkpoints of 1 rank need "},
        {{1, BY_NUMBER, alone}, false, ""},
        {{2, BY_NUMBER "--memory_buddies", two},
         false,
         "no rank keeps another's snapshots (checkpoint.memory_buddies): once the run has shrunk to "
         "2 ranks: rank 0: memory checkpoints of 1 rank need "},
        {{1, BY_NUMBER "--init_weights=none", alone}, true, "shrunk to 1 rank: "},
    };
    assert_true(alone > two && two > now);
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        bool saves;
        const struct run *run = begin(&rows[i].room, arena, data, &saves);
        const char *told = rows[i].fails ? run->err[0].msg : run->seen[0].notice;
        if ((run->result[0] != 0) != rows[i].fails || saves == rows[i].fails ||
            (rows[i].notice[0] == 0) != (told[0] == 0) || !strstr(told, rows[i].notice))
            fail_msg("row %zu: %s; %s", i, run->err[0].msg, run->seen[0].notice);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(other_ranks_go_on, runs_make_tokens, runs_remove),
        cmocka_unit_test_setup_teardown(nothing_is_lost_until_all_have_saved, runs_make_tokens,
                                        runs_remove),
        cmocka_unit_test_setup_teardown(a_change_of_size_is_no_end, runs_make_tokens, runs_remove),
        cmocka_unit_test_setup_teardown(the_fewest_ranks_have_room_or_it_is_told, runs_make_tokens,
                                        runs_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
