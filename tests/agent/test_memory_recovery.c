/* The step that ranks go on from: the newest that all of them have in memory. */
#include "agent/trainer/memory_recovery.h"
#include "base/mem.h"
#include "tests/agent/ranks.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { PAYLOAD = 64, PAGE = 4096, SIZE = 3 };

/* What a rank's launcher kept: the steps it saved, in order, and the last it had done. */
struct kept {
    int64_t saved[3]; /* 0: none more */
    int64_t held[3];  /* of each other rank, where each is a pod; likewise */
    int local_size;   /* 0: all ranks are one pod */
    int64_t last_step;
    bool damaged, killed; /* the newest: a bit is flipped; the next save was cut off */
    const char *run;      /* that saved; NULL: this one */
    struct memory_found found;
    int64_t older; /* the step kept of rank 1, before what was found; -1: none */
};

static struct memory_snapshot_id id_of(int rank, const char *run)
{
    struct memory_snapshot_id id = {.program = "1", .world_size = SIZE, .rank = rank};
    strcpy(id.run, run ? run : "uid-1");
    return id;
}

static void save(struct memory_snapshots *s, const int64_t steps[3])
{
    int slot;
    for (size_t i = 0; i < 3 && steps[i]; i++) {
        memset(memory_snapshot_begin(s, &slot), 1, PAYLOAD);
        memory_snapshot_commit(s, steps[i], PAYLOAD);
    }
}

static int find(struct rank *r, struct comm *comm, struct stream *stream, struct error *err)
{
    struct kept *kept = r->arg;
    const int local = kept->local_size ? kept->local_size : r->size, nodes[SIZE] = {0};
    int groups[SIZE];
    memory_groups_assign(nodes, r->size / local, groups);
    struct memory_group group = memory_group_of(r->rank, local, nodes, groups, r->size / local);
    size_t bytes = (size_t)memory_snapshot_bytes(PAYLOAD);
    char *memory = aligned_alloc(PAGE, SIZE * bytes);
    struct memory_snapshots all[MEMORY_GROUP_MOST];
    int slot;
    memset(memory, 0, SIZE * bytes);
    for (int m = 0; m < group.count; m++) {
        struct memory_snapshot_id before = id_of(group.ranks[m], kept->run);
        memory_snapshot_open(memory + (size_t)m * bytes, PAYLOAD, &before, &all[m]);
        save(&all[m], m == group.me ? kept->saved : kept->held);
    }
    struct memory_snapshots *own = &all[group.me];
    memory_snapshot_set_last_step(own, kept->last_step);
    if (kept->killed)
        memory_snapshot_begin(own, &slot);
    if (kept->damaged)
        *(char *)memory_snapshot_payload(own, own->newest) ^= 1;
    for (int m = 0; m < group.count; m++)
        all[m].id = id_of(group.ranks[m], NULL);
    int result = memory_recovery_find(comm, stream, &group, all, &kept->found, err);
    for (int m = 0; m < group.count && result == 0 && kept->found.step >= 0; m++) {
        struct memory_snapshot it;
        if (kept->found.slots[m] >= 0 &&
            (memory_snapshot_read(&all[m], kept->found.slots[m], &it, err) ||
             it.step != kept->found.step))
            result = error_set(err, ERR_INPUT, "the slot has another step");
        if (group.ranks[m] == 1)
            kept->older = kept->found.older[m] < 0 ||
                                  memory_snapshot_read(&all[m], kept->found.older[m], &it, err)
                              ? -1
                              : it.step;
        if (m == group.me && (kept->found.slots[m] < 0) != (kept->found.from[m] >= 0))
            result = error_set(err, ERR_INPUT, "neither here nor sent");
    }
    free(memory);
    return result;
}

static const struct {
    const char *name;
    struct kept kept[SIZE];
    int64_t step, last_step;
    int refused_rank; /* -1: nobody */
    const char *why;
} meetings[] = {
    {"a first start", {{.last_step = -1}, {.last_step = -1}, {.last_step = -1}}, -1, -1, -1, ""},
    {"all the same",
     {{.saved = {8, 9}, .last_step = 9},
      {.saved = {8, 9}, .last_step = 9},
      {.saved = {8, 9}, .last_step = 9}},
     9,
     9,
     -1,
     ""},
    {"one rank is ahead",
     {{.saved = {8, 9}, .last_step = 9},
      {.saved = {8, 9, 10}, .last_step = 10},
      {.saved = {8, 9}, .last_step = 9}},
     9,
     10,
     -1,
     ""},
    {"one rank is behind",
     {{.saved = {8, 9, 10}, .last_step = 10},
      {.saved = {8, 9}, .last_step = 9},
      {.saved = {8, 9, 10}, .last_step = 10}},
     9,
     10,
     -1,
     ""},
    {"killed in the middle of a save",
     {{.saved = {8, 9, 10}, .last_step = 10},
      {.saved = {8, 9}, .last_step = 10, .killed = true},
      {.saved = {8, 9}, .last_step = 10}},
     9,
     10,
     -1,
     ""},
    {"all killed in their first save",
     {{.saved = {0}, .last_step = 1, .killed = true},
      {.saved = {0}, .last_step = 1, .killed = true},
      {.saved = {0}, .last_step = 1, .killed = true}},
     -1,
     1,
     -1,
     ""},
    {"every third step",
     {{.saved = {3, 6}, .last_step = 8},
      {.saved = {3, 6}, .last_step = 8},
      {.saved = {3, 6}, .last_step = 7}},
     6,
     8,
     -1,
     ""},
    {"a rank in another pod has lost all",
     {{.saved = {8, 9}, .last_step = 9},
      {.saved = {0}, .last_step = -1},
      {.saved = {8, 9}, .last_step = 9}},
     -1,
     9,
     -1,
     ""},
    {"damage leaves the one before",
     {{.saved = {8, 9}, .last_step = 9},
      {.saved = {8, 9}, .last_step = 9, .damaged = true},
      {.saved = {8, 9}, .last_step = 9}},
     8,
     9,
     -1,
     ""},
    {"damage of the only one",
     {{.saved = {9}, .last_step = 9},
      {.saved = {9}, .last_step = 9},
      {.saved = {9}, .last_step = 9, .damaged = true}},
     -1,
     9,
     2,
     "its payload is damaged"},
    {"another run's",
     {{.saved = {9}, .last_step = 9, .run = "uid-0"},
      {.saved = {9}, .last_step = 9, .run = "uid-0"},
      {.saved = {9}, .last_step = 9, .run = "uid-0"}},
     -1,
     9,
     0,
     "it is of run uid-0, and this is uid-1"},
    {"one rank's is another run's",
     {{.saved = {9}, .last_step = 9},
      {.saved = {9}, .last_step = 9, .run = "uid-0"},
      {.saved = {9}, .last_step = 9}},
     -1,
     9,
     1,
     "it is of run uid-0"},
    {"steps that never meet",
     {{.saved = {8, 9}, .last_step = 9},
      {.saved = {4, 5}, .last_step = 5},
      {.saved = {8, 9}, .last_step = 9}},
     -1,
     9,
     -1,
     ""},
};

static void the_newest_that_all_have(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(meetings); i++) {
        struct rank ranks[SIZE] = {0};
        struct kept kept[SIZE];
        memcpy(kept, meetings[i].kept, sizeof kept);
        for (int r = 0; r < SIZE; r++)
            ranks[r].arg = &kept[r];
        ranks_run(ranks, SIZE, RANKS_TIMEOUT_MS, find);
        for (int r = 0; r < SIZE; r++) {
            const struct memory_found *found = &kept[r].found;
            assert_ok(ranks[r].result, &ranks[r].err);
            if (found->step != meetings[i].step || found->last_step != meetings[i].last_step ||
                found->refused.failed != (meetings[i].refused_rank >= 0) ||
                (found->refused.failed && found->refused_rank != meetings[i].refused_rank) ||
                !strstr(found->refused.msg, meetings[i].why))
                fail_msg("%s: rank %d has step %lld of %lld: %s (rank %d)", meetings[i].name, r,
                         (long long)found->step, (long long)found->last_step, found->refused.msg,
                         found->refused_rank);
        }
    }
}

static void another_pods_memory_counts(void **state)
{
    (void)state;
#define KEPT                                                                                       \
    {                                                                                              \
        .saved = {8, 9}, .held = {8, 9}, .last_step = 9                                            \
    }
#define NEW                                                                                        \
    {                                                                                              \
        .last_step = -1                                                                            \
    }
    static const struct {
        const char *name;
        struct kept kept[SIZE];
        int64_t step;
        int sent, from; /* from: whence rank 1 gets it, if it lacks it */
        int lacking;
        int64_t older; /* of rank 1, in rank 0's memory */
    } rows[] = {
        {"all have their own", {KEPT, KEPT, KEPT}, 9, 0, -1, 0, 8},
        {"a new pod", {KEPT, NEW, KEPT}, 9, 1, 0, 2, 8},
        {"two new pods", {NEW, NEW, KEPT}, 9, 2, 2, 4, -1},
        {"three new pods", {NEW, NEW, NEW}, -1, 0, -1, 6, -1},
        {"killed before the last exchange",
         {{.saved = {8, 9}, .held = {7, 8}, .last_step = 9},
          NEW,
          {.saved = {8, 9}, .held = {7, 8}, .last_step = 9}},
         8,
         1,
         0,
         2,
         7},
        {"one of two had it",
         {{.saved = {8, 9}, .held = {7, 8}, .last_step = 9}, NEW, KEPT},
         9,
         1,
         2,
         4,
         8},
        {"all from others", /* the ranks' own are too new for what is left of the second pod's */
         {{.saved = {8, 9}, .held = {6, 7}, .last_step = 9},
          NEW,
          {.saved = {8, 9}, .held = {6, 7}, .last_step = 9}},
         7,
         3,
         0,
         2,
         6},
        {"nobody keeps the new pod's",
         {{.saved = {8, 9}, .last_step = 9}, NEW, {.saved = {8, 9}, .last_step = 9}},
         -1,
         0,
         -1,
         6,
         -1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct rank ranks[SIZE] = {0};
        struct kept kept[SIZE];
        memcpy(kept, rows[i].kept, sizeof kept);
        for (int r = 0; r < SIZE; r++) {
            kept[r].local_size = 1;
            kept[r].older = -1;
            ranks[r].arg = &kept[r];
        }
        ranks_run(ranks, SIZE, RANKS_TIMEOUT_MS, find);
        for (int r = 0; r < SIZE; r++) {
            const struct memory_found *found = &kept[r].found;
            assert_ok(ranks[r].result, &ranks[r].err);
            if (found->step != rows[i].step || found->sent != rows[i].sent ||
                found->from[1] != rows[i].from || found->lacking != rows[i].lacking)
                fail_msg("%s: rank %d has step %lld, %d sent, from %d, %d lacking", rows[i].name, r,
                         (long long)found->step, found->sent, found->from[1], found->lacking);
        }
        assert_int_equal(kept[0].older, rows[i].older);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_that_all_have),
        cmocka_unit_test(another_pods_memory_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
