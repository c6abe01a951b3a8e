/* What is told of containers that ended: one by one, or together. */
#include "operator/reconcile/exits.h"

#include "base/mem.h"
#include "base/str.h"
#include "tests/support.h"

#include <string.h>

static const struct job job = {.name = "j", .namespace_ = "ns"};

enum { MANY = 12 };

struct row {
    const char *name;
    int count; /* pods j-worker-0 ... */
    struct pod_end ends[MANY];
    const char *told;
};

#define OK                                                                                         \
    {                                                                                              \
        .container = "pytorch"                                                                     \
    }
#define PEER                                                                                       \
    {                                                                                              \
        .container = "pytorch", .code = 138                                                        \
    }
#define OOM                                                                                        \
    {                                                                                              \
        .container = "pytorch", .code = 137, .reason = "OOMKilled"                                 \
    }
#define SIDE                                                                                       \
    {                                                                                              \
        .container = "side", .code = 2                                                             \
    }

static const struct row rows[] = {
    {"none", 0, {OK}, ""},
    {"one", 1, {OK}, "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 0\n"},
    {"one of another container, killed",
     1,
     {{.container = "side", .code = 137, .reason = "OOMKilled"}},
     "event Normal ExitedWithCode: Pod: ns.j-worker-0, container side exited with code 137: "
     "OOMKilled\n"},
    {"four",
     4,
     {PEER, PEER, PEER, PEER},
     "event Normal ExitedWithCode: Pod: ns.j-worker-0 exited with code 138\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-1 exited with code 138\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-2 exited with code 138\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-3 exited with code 138\n"},
    {"five",
     5,
     {OK, OK, OK, OK, OK},
     "event Normal ExitedWithCode: 5 pods exited with code 0: j-worker-0, j-worker-1, j-worker-2, "
     "j-worker-3, j-worker-4\n"},
    {"the cause and those that lost it",
     6,
     {PEER, PEER, OOM, PEER, PEER, PEER},
     "event Normal ExitedWithCode: 5 pods exited with code 138: j-worker-0, j-worker-1, j-worker-3, "
     "j-worker-4, j-worker-5\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-2 exited with code 137: OOMKilled\n"},
    {"alike but for one thing",
     5,
     {SIDE,
      {.container = "pytorch", .code = 2},
      {.container = "side", .code = 2, .reason = "Error"},
      SIDE,
      {.container = "side", .code = 3}},
     "event Normal ExitedWithCode: Pod: ns.j-worker-0, container side exited with code 2\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-3, container side exited with code 2\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-1 exited with code 2\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-2, container side exited with code 2: Error\n"
     "event Normal ExitedWithCode: Pod: ns.j-worker-4, container side exited with code 3\n"},
    {"more than are named, killed",
     10,
     {OOM, OOM, OOM, OOM, OOM, OOM, OOM, OOM, OOM, OOM},
     "event Normal ExitedWithCode: 10 pods exited with code 137 (OOMKilled): j-worker-0, "
     "j-worker-1, j-worker-2, j-worker-3, j-worker-4, j-worker-5, j-worker-6, j-worker-7 and 2 "
     "more\n"},
    {"more than four of another container",
     5,
     {SIDE, SIDE, SIDE, SIDE, SIDE},
     "event Normal ExitedWithCode: 5 pods, container side exited with code 2: j-worker-0, "
     "j-worker-1, j-worker-2, j-worker-3, j-worker-4\n"},
};

static void what_ended_alike_is_told_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct plan *plan = plan_open(arena);
        struct exits exits = {.count = 0};
        struct pod pods[MANY];
        for (int k = 0; k < rows[i].count; k++) {
            pods[k] = (struct pod){.name = arena_printf(arena, "j-worker-%d", k)};
            exits_add(&exits, &pods[k], &rows[i].ends[k], arena);
        }
        exits_tell(&exits, &job, plan);
        exits_tell(&exits, &job, plan); /* they are told once */
        auto_str struct str told;
        str_init(&told, 1 << 16);
        plan_print(plan, &told);
        if (strcmp(str_text(&told), rows[i].told) != 0)
            fail_msg("%s:\n%s", rows[i].name, str_text(&told));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ended_alike_is_told_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
