/* What spends a restart of a run whose number of nodes is fixed. The launcher starts this very
 * program as its rank: `test_launch_budget rank HOW FILE`. HOW has a letter for each round, in
 * which the rank leaves a word: which round it is, how many restarts are spent, in how many rounds
 * ranks have met since they last asked who is new, and "n" while they never have. `pair HOW FILE`
 * is one of two local ranks. */
#include "tests/agent/launched.h"
#include "tests/support.h"

#include "agent/launch/last_words.h"
#include "agent/launch/stop.h"
#include "base/contract.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- a rank ---- */

static int say(enum error_code code, int exit_code, bool has_met)
{
    const struct error err = {.code = code, .msg = "so it was"};
    last_words_send(&err, has_met);
    return exit_code;
}

static int rank_main(const char *how, const char *file)
{
    int round = launched_number(ENV_RESTART_COUNT);
    char word[32];
    alarm(SUPPORT_PATIENCE_S);
    last_words_inherit();
    snprintf(word, sizeof word, "%d/%d/%d%s ", round,
             launched_number(ENV_TORCHELASTIC_RESTART_COUNT), launched_number(ENV_ROUNDS_MET),
             launched_number(ENV_IS_NEW) ? "n" : "");
    launched_leave_word(file, word);
    if (how[round] != 'f' && how[round] != 'w')
        last_words_met(how[round] == 'b'   ? LAST_WORDS_NOT_ASKED
                       : how[round] == 'n' ? 1
                       : how[round] == 'm' ? 2
                                           : 0);
    switch (how[round]) {
    case 'd':
        return EXIT_DONE;
    case 'k': /* it can say no more */
        raise(SIGKILL);
        return 9;
    case 'b': /* a peer was lost before the ranks asked who is new */
    case 'l': /* a peer was lost */
    case 'n': /* likewise, after the launcher of one was lost */
    case 'm': /* after those of two were */
        return say(ERR_PEER, EXIT_RETRYABLE, true);
    case 'w': /* it has waited for the others, in vain */
        return say(ERR_PEER, EXIT_RETRYABLE, false);
    case 'S': /* somebody asks this very rank to stop */
        stop_install_handlers();
        raise(SIGTERM);
        return say(ERR_CANCELLED, EXIT_TERMINATED, true);
    case 's': /* a peer was asked to stop */
        return say(ERR_CANCELLED, EXIT_TERMINATED, true);
    default:
        return 5;
    }
}

/* Two local ranks stop with all others, `first` before the launcher asks the other one to end. In
 * the next round rank 0 leaves the number of spent restarts. asked: somebody asks rank 0 to. */
static int pair_main(const char *how, const char *file)
{
    bool asked = how[0] == 'a';
    int rank = launched_number(ENV_RANK), first = how[1] - '0';
    char word[8];
    sigset_t set;
    alarm(SUPPORT_PATIENCE_S);
    last_words_inherit();
    last_words_met(0);
    if (launched_number(ENV_RESTART_COUNT) > 0) {
        snprintf(word, sizeof word, "%d", launched_number(ENV_TORCHELASTIC_RESTART_COUNT));
        if (rank == 0)
            launched_leave_word(file, word);
        return EXIT_DONE;
    }
    stop_install_handlers();
    if (rank == 0 && asked)
        raise(SIGTERM);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    launched_leave_word(file, ".");
    launched_wait_for_words(file, 2); /* else a signal might kill the other */
    while (rank != first && (sigpending(&set) || !sigismember(&set, SIGTERM)))
        usleep(2000);
    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL); /* the handler sees who asked */
    return say(ERR_CANCELLED, EXIT_TERMINATED, true);
}

/* ---- the test ---- */

static int launch(const char *what, int ranks, const char *how, const char *file, int max_restarts)
{
    struct topology t = {
        .world_size = 2, .local_size = ranks, .nodes = 2 / ranks, .host = "h", .port = 1};
    char *argv[] = {(char *)"test_launch_budget", (char *)what, (char *)how, (char *)file, NULL};
    const struct launch_options options = {
        .topology = &t, .argv = argv, .max_restarts = max_restarts};
    struct error err;
    int exit_code = -1;
    assert_ok(launch_local_ranks(&options, &exit_code, &err), &err);
    return exit_code;
}

static void read_words(const struct launched_place *place, char *out, size_t out_bytes)
{
    auto_fclose FILE *file = fopen(place->file, "re");
    assert_non_null(file);
    out[fread(out, 1, out_bytes - 1, file)] = '\0';
}

static void only_failures_spend_restarts(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int max_restarts, expected;
        const char *words;
    } rows[] = {
        {"ffd", 1, 5, "0/0/0n 1/1/0n "},
        {"lld", 1, EXIT_RETRYABLE, "0/0/0n 1/1/1 "},
        {"kld", 2, EXIT_DONE, "0/0/0n 1/1/1 2/2/1 "}, /* that it had met is known of a dead one */
        {"lfd", 2, EXIT_DONE, "0/0/0n 1/1/1 2/2/1 "}, /* also of one that fails before it meets */
        {"sssssd", 1, EXIT_DONE, "0/0/0n 1/0/1 2/0/1 3/0/1 4/0/1 5/0/1 "},
        {"slsl", 1, EXIT_RETRYABLE, "0/0/0n 1/0/1 2/1/1 3/1/1 "},
        {"sd", 0, EXIT_TERMINATED, "0/0/0n "}, /* switched off */
        {"SSd", 1, EXIT_TERMINATED, "0/0/0n 1/1/1 "},
        {"lnnnd", 1, EXIT_DONE, "0/0/0n 1/1/1 2/1/1 3/1/1 4/1/1 "},
        {"fnd", 1, EXIT_RETRYABLE, "0/0/0n 1/1/0n "}, /* its own failure is */
        {"snnd", 1, EXIT_DONE, "0/0/0n 1/0/1 2/1/1 3/1/1 "},
        {"lfnd", 2, EXIT_DONE, "0/0/0n 1/1/1 2/2/1 3/2/1 "}, /* which is another incident */
        {"lwmd", 2, EXIT_DONE, "0/0/0n 1/1/1 2/2/1 3/1/1 "}, /* two were lost, and both are back */
        {"lwnd", 2, EXIT_DONE, "0/0/0n 1/1/1 2/2/1 3/2/1 "},
        {"llmd", 2, EXIT_DONE, "0/0/0n 1/1/1 2/2/1 3/2/1 "}, /* the first was back in place */
        /* what is owed stays owed until somebody asks */
        {"lbnd", 2, EXIT_DONE, "0/0/0n 1/1/1 2/2/2 3/2/1 "},
        {"lbwbmd", 4, EXIT_DONE, "0/0/0n 1/1/1 2/2/2 3/3/2 4/4/3 5/3/1 "},
        {"bbnd", 2, EXIT_DONE, "0/0/0n 1/1/1n 2/2/2n 3/2/1 "},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        char text[200];
        int exit_code = launch("rank", 1, rows[i].how, place.file, rows[i].max_restarts);
        read_words(&place, text, sizeof text);
        if (strcmp(text, rows[i].words) != 0 || exit_code != rows[i].expected)
            fail_msg("%s: exit code %d, '%s', not '%s'", rows[i].how, exit_code, text,
                     rows[i].words);
        launched_place_close(&place);
    }
}

static void whose_exit_comes_first_does_not_matter(void **state)
{
    (void)state;
    static const struct {
        const char *how, *words;
    } rows[] = {{"a0", "..1"}, {"a1", "..1"}, {"p0", "..0"}, {"p1", "..0"}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        char text[20];
        assert_int_equal(launch("pair", 2, rows[i].how, place.file, 1), EXIT_DONE);
        read_words(&place, text, sizeof text);
        if (strcmp(text, rows[i].words) != 0)
            fail_msg("%s: %s", rows[i].how, text);
        launched_place_close(&place);
    }
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return rank_main(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "pair") == 0)
        return pair_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_failures_spend_restarts),
        cmocka_unit_test(whose_exit_comes_first_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
