/* Pods that are lost with their memory, and made again: their ranks go on from what their buddies
 * keep, on another node wherever there is one. */
#include "agent/launch/rank_memory.h"
#include "tests/agent/run_memory.h"
#include "tests/agent/runs.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A start of the ranks by their launchers. */
struct start {
    const char *flags;
    int size, local_size; /* local_size 0: there is one pod */
    const char *nodes;    /* a letter for each rank's, an upper one where only the machine is known;
                             NULL: nobody has told */
    bool is_new[RUNS_MAX_RANKS]; /* the rank's pod is */
    int64_t last_left;           /* bytes, where the last rank is; 0: as many as are */
    int stop_at, die_after;      /* this step; 0: to the end */
};

static const struct run *start(const struct start *s, struct arena *arena, const char *data,
                               const int *fds)
{
    static const char names[] = "a\0b\0c";
    struct config *config = arena_new(arena, struct config);
    struct run *run = arena_new(arena, struct run);
    runs_configure_language(config, arena, data, s->size, s->flags);
    *run = (struct run){.config = &config->value, .size = s->size, .name = "uid-1"};
    for (int rank = 0; rank < s->size; rank++) {
        run->memory_fds[rank] = fds ? fds[rank] : 0;
        run->local_sizes[rank] = s->local_size;
        const char node = s->nodes ? s->nodes[rank] : '\0';
        bool has_name = node >= 'a';
        run->nodes[rank] = has_name ? &names[2 * (node - 'a')] : NULL;
        run->seen[rank].stop_at_step = s->stop_at;
        run->seen[rank].die_after_step = rank == 0 ? s->die_after : 0;
        struct memory_bound *left = run->memory_left[rank];
        left[MEMORY_OF_MACHINE] = (struct memory_bound){(uint64_t)node, node ? INT64_MAX / 4 : 0};
        left[MEMORY_OF_CONTAINER] = (struct memory_bound){0, INT64_MAX};
        if (rank == s->size - 1 && s->last_left > 0)
            left[MEMORY_OF_MACHINE].left = s->last_left;
        assert_int_equal(s->is_new[rank] ? ftruncate(fds[rank], 0) : 0, 0);
    }
    runs_start(run);
    for (int rank = 0; rank < s->size && !s->die_after; rank++)
        if (s->stop_at)
            assert_fails(run->result[rank], &run->err[rank], ERR_CANCELLED, "stopped");
        else
            assert_ok(run->result[rank], &run->err[rank]);
    return run;
}

/* A run that was made again at a step has the losses of the one that nobody disturbed. */
static void check(const char *name, const struct run *run, const struct run *calm, int step,
                  const char *notice)
{
    const struct seen *seen = &run->seen[0], *its = &calm->seen[0];
    const char *told =
        strncmp(notice, "0 ", 2) || strstr(notice, "share") ? seen->notice : seen->info;
    if (seen->resumed_step != step || (step && seen->steps_lost != 0) ||
        !strstr(notice[0] ? told : "", notice))
        fail_msg("%s: resumed at step %d, %d lost: %s; %s", name, seen->resumed_step,
                 seen->steps_lost, seen->notice, seen->info);
    for (int s = step; s < its->last_step; s++)
        if (seen->loss[s] != its->loss[s])
            fail_msg("%s: step %d has loss %.17g, not %.17g", name, s + 1, seen->loss[s],
                     its->loss[s]);
}

enum { STOP = 7 }; /* behind it the ranks stop, and the step that is under way then is done */

#define ALONE   "--epochs=3 --device=cpu --memory_every_steps=1 "
#define BUDDIES ALONE "--memory_buddies "
#define FULL    "--sharding_strategy=FULL_SHARD "
#define ANEW    "training starts from the beginning (8 steps lost)"

static const struct {
    const char *name, *flags;
    int size, local_size;
    bool is_new[RUNS_MAX_RANKS];     /* the rank's pod is, at the second start */
    const char *nodes, *nodes_again; /* at the first start, and at the second */
    int step;                        /* of the second start; 0: anew */
    const char *notice;
} new_pods[] = {
    {"the second of two pods", BUDDIES, 4, 2, {0, 0, 1, 1}, NULL, NULL, STOP + 1, ""},
    {"the first of two pods", BUDDIES, 4, 2, {1, 1}, NULL, NULL, STOP + 1, ""},
    {"two of three pods", BUDDIES, 3, 1, {1, 0, 1}, NULL, NULL, STOP + 1, ""},
    {"a pod of each pair", BUDDIES FULL, 4, 1, {0, 1, 1}, NULL, NULL, STOP + 1, ""},
    {"both of a pair", BUDDIES, 4, 1, {0, 0, 1, 1}, NULL, NULL, 0, ANEW},
    {"none is new", BUDDIES, 4, 2, {0}, NULL, NULL, STOP + 1, ""},
    {"without buddies", ALONE, 4, 2, {0, 0, 1, 1}, NULL, NULL, 0, ANEW},
    {"one pod",
     BUDDIES,
     2,
     0,
     {0},
     NULL,
     NULL,
     STOP + 1,
     "no rank keeps another's snapshots (checkpoint.memory_buddies): all ranks are in one pod"},
    /* on nodes */
    {"a node of two pods",
     BUDDIES,
     4,
     1,
     {0, 0, 1, 1},
     "aabb",
     "aacc",
     STOP + 1,
     "0 (node a) + 2 (node c), 1 (node a) + 3 (node c)"},
    {"its pods come where the others are",
     BUDDIES,
     4,
     1,
     {0, 0, 1, 1},
     "aabb",
     "aaaa",
     STOP + 1,
     "0 (node a) + 1 (node a), 2 (node a) + 3 (node a); 4 of 4 pods share a node with all that "
     "keep theirs"},
    {"two ranks each",
     BUDDIES FULL,
     8,
     2,
     {0, 0, 0, 0, 1, 1, 1, 1},
     "aaaabbbb",
     "aaaacccc",
     STOP + 1,
     ""},
    {"nodes without names",
     BUDDIES,
     4,
     1,
     {0, 0, 1, 1},
     "AABB",
     "AACC",
     STOP + 1,
     "0 + 2, 1 (where 0 is) + 3 (where 2 is)"},
    {"most are on a node",
     BUDDIES,
     5,
     1,
     {1, 1, 1, 1, 0},
     "aaaab",
     "aaaab",
     STOP + 1,
     "0 (node a) + 1 (node a) + 2 (node a) + 3 (node a) + 4 (node b)"},
    {"the one that is elsewhere", BUDDIES, 5, 1, {0, 0, 0, 0, 1}, "aaaab", "aaaac", STOP + 1, ""},
};

/* A pod that is made again has nothing: its ranks get their snapshots from their buddies, if these
 * keep any; else all go on from disk, here from the beginning. */
static void a_new_pod_goes_on_from_its_buddies(void **state)
{
    for (size_t i = 0; i < array_length(new_pods); i++) {
        auto_arena struct arena *arena = arena_open();
        int fds[RUNS_MAX_RANKS] = {0};
        struct start s = {.flags = new_pods[i].flags,
                          .size = new_pods[i].size,
                          .local_size = new_pods[i].local_size,
                          .nodes = new_pods[i].nodes,
                          .stop_at = STOP};
        run_memory_open(fds, s.size);
        start(&s, arena, *state, fds);
        s.stop_at = 0;
        s.nodes = new_pods[i].nodes_again;
        memcpy(s.is_new, new_pods[i].is_new, sizeof s.is_new);
        const struct run *run = start(&s, arena, *state, fds);
        run_memory_close(fds, s.size);
        memset(s.is_new, 0, sizeof s.is_new);
        s.flags = arena_printf(arena, "%s --memory_every_steps=0", s.flags);
        check(new_pods[i].name, run, start(&s, arena, *state, NULL), new_pods[i].step,
              new_pods[i].notice);
    }
}

/* Pods that were made again on other nodes have other buddies. These get their snapshots before the
 * first step: the next pods that are lost go on from there. */
static void other_buddies_have_theirs_at_once(void **state)
{
    enum { SIZE = 4 };
    static const struct {
        const char *nodes;
        bool is_new[SIZE];
        int die_after;
        int step;
        int64_t last_left;
    } starts[] = {
        {"aabb", {0}, 0, 0, 0},
        {"aaaa", {0, 0, 1, 1}, STOP + 2, STOP + 1, 0}, /* 0 had those of 2, and 1 those of 3 */
        {"aaaa", {0, 1, 0, 1}, 0, STOP + 1, 0},        /* 0 has those of 1, and 2 those of 3 */
        {"aaab", {0, 1}, 0, STOP + 3, 1}, /* 3 has no room for more, and the groups stay */
        {"aaab", {1, 0, 1}, 0, STOP + 5, 1},
    };
    auto_arena struct arena *arena = arena_open();
    int fds[RUNS_MAX_RANKS] = {0};
    run_memory_open(fds, SIZE);
    for (size_t i = 0; i < array_length(starts); i++) {
        struct start s = {.flags = "--epochs=5 --device=cpu --memory_every_steps=1000 "
                                   "--memory_buddies",
                          .size = SIZE,
                          .local_size = 1,
                          .nodes = starts[i].nodes,
                          .last_left = starts[i].last_left,
                          .stop_at = starts[i].die_after ? 0 : STOP,
                          .die_after = starts[i].die_after};
        memcpy(s.is_new, starts[i].is_new, sizeof starts[i].is_new);
        const struct run *run = start(&s, arena, *state, fds);
        if (run->result[0] == 0 || run->seen[0].resumed_step != starts[i].step)
            fail_msg("start %zu resumed at step %d: %s", i, run->seen[0].resumed_step,
                     run->seen[0].notice);
    }
    run_memory_close(fds, SIZE);
}

/* Pods that stay lack copies, as does a new one: of who was lost, and of what was on its way. They
 * get them before the first step, and the next pod is lost behind it. */
static void a_start_sends_what_buddies_lack(void **state)
{
    enum { SIZE = 4 };
    static const bool is_new[][SIZE] = {{0, 0, 1, 1}, {1, 1, 0, 0}, {0, 0, 1, 1}};
    auto_arena struct arena *arena = arena_open();
    int fds[RUNS_MAX_RANKS] = {0};
    struct start s = {.flags = "--epochs=5 --device=cpu --memory_every_steps=1000 --memory_buddies",
                      .size = SIZE,
                      .local_size = 2,
                      .stop_at = STOP};
    run_memory_open(fds, SIZE);
    start(&s, arena, *state, fds);
    s.stop_at = 0;
    s.die_after = STOP + 2;
    for (size_t i = 0; i < array_length(is_new); i++) {
        memcpy(s.is_new, is_new[i], sizeof is_new[i]);
        const struct run *run = start(&s, arena, *state, fds);
        if (run->seen[0].resumed_step != STOP + 1)
            fail_msg("start %zu resumed at step %d: %s", i, run->seen[0].resumed_step,
                     run->seen[0].notice);
    }
    run_memory_close(fds, SIZE);
}

/* What the last of five ranks keeps, which is alone on its node, with so many bytes left there. */
static int64_t kept_by_the_last(const char *data, int64_t left, char notice[1024])
{
    enum { SIZE = 5 };
    auto_arena struct arena *arena = arena_open();
    int fds[RUNS_MAX_RANKS] = {0};
    const struct start s = {.flags = "--device=cpu --max_steps=1 --memory_buddies",
                            .size = SIZE,
                            .local_size = 1,
                            .nodes = "aaaab",
                            .last_left = left};
    run_memory_open(fds, SIZE);
    const struct run *run = start(&s, arena, data, fds);
    const int64_t used = rank_memory_used(fds[SIZE - 1]);
    run_memory_close(fds, SIZE);
    snprintf(notice, sizeof run->seen[0].notice, "%.512s; %.500s", run->seen[0].notice,
             run->seen[0].info);
    return used;
}

/* Where most pods share a node, and the one elsewhere has no room for the snapshots of all of them,
 * pods are paired as if there were no nodes; where it has none for that, nobody keeps another's. */
static void who_has_no_room_keeps_less(void **state)
{
    static const struct {
        int parts; /* of its memory: own snapshots are one */
        const char *notice;
    } stages[] = {
        {5, "pods that keep each other's snapshots (checkpoint.memory_buddies): 0 (node a) + 1 "},
        {3, "with no regard to nodes (checkpoint.memory_buddies): rank 4: memory checkpoints of"},
        {1, "no rank keeps another's snapshots (checkpoint.memory_buddies): rank 4: memory"},
        {0, "there will be no checkpoints in memory"},
    };
    char notice[1024];
    int64_t short_of = 0, enough = 1 << 28;
    const int64_t all = kept_by_the_last(*state, enough, notice), part = all / stages[0].parts;
    while (enough - short_of > part / 2) {
        int64_t middle = short_of + (enough - short_of) / 2;
        *(kept_by_the_last(*state, middle, notice) == all ? &enough : &short_of) = middle;
    }
    for (size_t i = 0; i < array_length(stages); i++) {
        /* A tenth stays free. */
        int64_t left = enough - (stages[0].parts - stages[i].parts) * part * 10 / 9;
        int64_t used = kept_by_the_last(*state, left, notice);
        if (used != stages[i].parts * part || !strstr(notice, stages[i].notice))
            fail_msg("%d parts: %lld bytes of %lld: %s", stages[i].parts, (long long)used,
                     (long long)part, notice);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_pod_goes_on_from_its_buddies),
        cmocka_unit_test(other_buddies_have_theirs_at_once),
        cmocka_unit_test(a_start_sends_what_buddies_lack),
        cmocka_unit_test(who_has_no_room_keeps_less),
    };
    return cmocka_run_group_tests(tests, runs_make_tokens, runs_remove);
}
