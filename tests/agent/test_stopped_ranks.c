/* Ranks that are stopped with nobody in their pod to see it. The launcher starts this very program
 * as its ranks: `test_stopped_ranks HOW FILE`. Each leaves a word, and stops in the first round. */
#include "agent/launch/stopped_ranks.h"
#include "base/contract.h"
#include "base/mem.h"
#include "tests/agent/launched.h"
#include "tests/support.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- when: pure ---- */

static void time_counts_while_the_launcher_is_awake(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct {
            int64_t at_ms;
            bool are_stopped;
        } looks[8];
        int ends_at; /* the look; -1: none */
    } rows[] = {
        {"they stand still",
         {{0, true}, {1000, true}, {2000, true}, {3000, true}, {3001, true}},
         4},
        {"from the first look on", {{9000, true}, {10000, true}, {12000, true}, {12001, true}}, 3},
        {"they go on", {{0, true}, {2000, true}, {2500, false}, {3000, true}, {5000, true}}, -1},
        {"the launcher was away", {{0, true}, {60000, true}, {60001, true}, {60002, false}}, -1},
        {"... and they stay", {{0, true}, {60000, true}, {61000, true}, {61001, true}}, 3},
        {"none is stopped", {{0, false}, {9000, false}, {99000, false}}, -1},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct stopped_ranks s = {0};
        int ends_at = -1;
        for (int k = 0; k < (int)array_length(rows[i].looks); k++) {
            bool is_told = k == 0 || rows[i].looks[k].at_ms > 0;
            if (is_told && ends_at < 0 &&
                stopped_ranks_look(&s, rows[i].looks[k].are_stopped, rows[i].looks[k].at_ms, 3000))
                ends_at = k;
        }
        if (ends_at != rows[i].ends_at)
            fail_msg("%s: at %d, not %d", rows[i].what, ends_at, rows[i].ends_at);
    }
}

static void launchers_end_ranks_that_would_start_again(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct stopped_ranks_view view;
        bool may_end;
    } rows[] = {
        {"all of the pod", {2, 2, 2, 1, false, true}, true},
        {"one of two", {2, 1, 2, 1, false, true}, false},
        {"the one that is left", {1, 1, 1, 3, false, true}, true},
        {"none is left", {0, 0, 2, 1, false, true}, false},
        {"nobody waits for them", {2, 2, 0, 1, false, true}, false},
        {"no restart is left", {2, 2, 2, 0, false, true}, false},
        {"the round ends", {2, 2, 2, 1, true, true}, false},
        {"runtime.hang_action=report", {2, 2, 2, 1, false, false}, false},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        if (stopped_ranks_may_end(&rows[i].view) != rows[i].may_end)
            fail_msg("%s: %d", rows[i].what, !rows[i].may_end);
}

/* ---- who: by a launcher ---- */

static bool is_stopped(pid_t pid)
{
    char path[32], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    auto_fclose FILE *file = fopen(path, "re");
    return file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state == 'T';
}

static void ask_launcher_to_end_when_stopped(void)
{
    pid_t rank = getpid(), launcher = getppid();
    if (fork() != 0)
        return;
    while (getppid() == rank && !is_stopped(rank))
        usleep(2000);
    if (getppid() == rank)
        kill(launcher, SIGTERM);
    _exit(0);
}

static int asked_rank_main(const char *file)
{
    signal(SIGTERM, launched_on_signal);
    ask_launcher_to_end_when_stopped();
    raise(SIGSTOP);
    launched_pause_until_signal();
    launched_leave_word(file, "asked");
    return EXIT_TERMINATED;
}

static int rank_main(const char *file)
{
    bool is_first = launched_number(ENV_RESTART_COUNT) == 0;
    launched_leave_word(file, is_first ? "." : "!");
    if (is_first)
        raise(SIGSTOP);
    return EXIT_DONE;
}

/* The launcher of half of them. What its ranks have left: words. Its exit code. */
static int launch_half(int ranks, int most_ms, const char *how, char words[8])
{
    struct error err;
    int exit_code = -1;
    struct launched_place place = launched_place_open();
    const struct topology t = {
        .world_size = ranks, .local_size = ranks / 2, .nodes = 2, .host = "h", .port = 1};
    char *argv[] = {(char *)"test_stopped_ranks", (char *)how, place.file, NULL};
    const struct launch_options options = {
        .topology = &t, .argv = argv, .max_restarts = 1, .stopped_most_ms = most_ms};
    assert_ok(launch_local_ranks(&options, &exit_code, &err), &err);
    auto_fclose FILE *file = fopen(place.file, "re");
    assert_non_null(file);
    words[fread(words, 1, 7, file)] = '\0';
    launched_place_close(&place);
    return exit_code;
}

static void their_launcher_ends_ranks_that_others_wait_for(void **state)
{
    (void)state;
    char words[8];
    assert_int_equal(launch_half(4, 1, "rank", words), EXIT_DONE);
    assert_string_equal(words, "..!!");
}

static void a_stopped_rank_hears_that_it_is_to_end(void **state)
{
    (void)state;
    char words[8];
    assert_int_equal(launch_half(2, 0, "asked", words), EXIT_TERMINATED);
    assert_string_equal(words, "asked");
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "rank") == 0)
        return rank_main(argv[2]);
    if (argc == 3 && strcmp(argv[1], "asked") == 0)
        return asked_rank_main(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_counts_while_the_launcher_is_awake),
        cmocka_unit_test(launchers_end_ranks_that_would_start_again),
        cmocka_unit_test(their_launcher_ends_ranks_that_others_wait_for),
        cmocka_unit_test(a_stopped_rank_hears_that_it_is_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
