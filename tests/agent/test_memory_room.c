/* Room in host memory for the snapshots of all ranks. */
#include "agent/trainer/memory_room.h"
#include "tests/support.h"

#include <string.h>

enum { MOST_RANKS = 4 };
#define NO_LIMIT                                                                                   \
    {                                                                                              \
        0, INT64_MAX                                                                               \
    }
#define CLAIM(machine, machine_left, takes)                                                        \
    {                                                                                              \
        .bounds = {{machine, machine_left}, NO_LIMIT}, .snapshots = (takes), .training = 100       \
    }
#define LIMITED(group, group_left, takes)                                                          \
    {                                                                                              \
        .bounds = {{1, 1 << 20}, {group, group_left}}, .snapshots = (takes), .training = 100       \
    }

static void what_is_shared_is_counted_once(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct memory_claim ranks[MOST_RANKS];
        int count;
        const char *why[MOST_RANKS]; /* NULL: there is room */
    } rows[] = {
        {"a tenth stays free", {CLAIM(1, 1000, 800)}, 1, {NULL}},
        {"... of what is left",
         {CLAIM(1, 998, 800)},
         1,
         {"memory checkpoints of 1 rank need 0.00 GB, beside 0.00 GB for training, but the machine "
          "has 0.00 GB left, of which a tenth stays free"}},
        {"ranks of one machine",
         {CLAIM(1, 2000, 800), CLAIM(1, 2000, 801)},
         2,
         {"memory checkpoints of 2 ranks", "memory checkpoints of 2 ranks"}},
        {"... that fit", {CLAIM(1, 2000, 800), CLAIM(1, 2000, 800)}, 2, {NULL}},
        {"ranks of two machines", {CLAIM(1, 1000, 800), CLAIM(2, 1000, 800)}, 2, {NULL}},
        {"another machine's are not counted",
         {CLAIM(1, 1000, 800), CLAIM(2, 1000, 900), CLAIM(1, 2000, 0)},
         3,
         {"memory checkpoints of 2 ranks", "memory checkpoints of 1 rank ",
          "memory checkpoints of 2 ranks"}},
        {"a rank that looked later", {CLAIM(1, 2000, 800), CLAIM(1, 1900, 800)}, 2, {"2 ", "2 "}},
        {"started again, all of it is there", {CLAIM(1, 0, 0), CLAIM(1, 0, 0)}, 2, {NULL}},
        {"a container's limit",
         {LIMITED(7, 1000, 801), LIMITED(8, 1000, 800)},
         2,
         {"but the container's memory limit has", NULL}},
        {"two launchers in a container",
         {LIMITED(7, 1500, 800), LIMITED(7, 1500, 800)},
         2,
         {"of 2 ranks", "of 2 ranks"}},
        {"nobody tells",
         {{.bounds = {NO_LIMIT, NO_LIMIT}, .snapshots = INT64_C(1) << 50}},
         1,
         {NULL}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int r = 0; r < rows[i].count; r++) {
            struct error err = {0};
            int result = memory_room_check(rows[i].ranks, rows[i].count, r, MOST_RANKS, &err);
            const char *why = rows[i].why[r];
            if ((result != 0) != (why != NULL) || (why && !strstr(err.msg, why)) ||
                (why && err.code != ERR_MEMORY))
                fail_msg("%s: rank %d: %s", rows[i].name, r, err.msg);
        }
}

/* Of those that share a machine only so many stay; the others give back what they have. */
static void fewer_ranks_share_what_is_left(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t left, held;
        int most;
        const char *why; /* NULL: there is room */
    } rows[] = {
        {"all stay, and there is room", 2000, 500, 2, NULL},
        {"all stay", 1998, 500, 2, "of 2 ranks need"},
        {"one stays", 1000, 0, 1, NULL},
        {"one stays, and is too large", 998, 0, 1, "of 1 rank need"},
        {"the other's is free then", 498, 450, 1, "of 1 rank need"},
        {"... and enough", 500, 450, 1, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct memory_claim ranks[2] = {CLAIM(1, 0, 800), CLAIM(1, 0, 800)};
        struct error err = {0};
        for (int r = 0; r < 2; r++) {
            ranks[r].held = rows[i].held;
            ranks[r].bounds[MEMORY_OF_MACHINE].left = rows[i].left;
        }
        for (int r = 0; r < 2; r++) {
            int result = memory_room_check(ranks, 2, r, rows[i].most, &err);
            if ((result != 0) != (rows[i].why != NULL) ||
                (rows[i].why && !strstr(err.msg, rows[i].why)))
                fail_msg("%s: %s", rows[i].name, err.msg);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shared_is_counted_once),
        cmocka_unit_test(fewer_ranks_share_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
