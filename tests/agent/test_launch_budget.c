/* What spends a restart of a run whose number of nodes is fixed. The launcher starts this very
 * program as its rank: `test_launch_budget rank HOW FILE`. HOW has a letter for each round, in
 * which the rank leaves a word: which round it is, how many restarts are spent, and whether ranks
 * have met before. */
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

static int say(enum error_code code, int exit_code)
{
    const struct error err = {.code = code, .msg = "so it was"};
    last_words_send(&err, true);
    return exit_code;
}

static int rank_main(const char *how, const char *file)
{
    int round = launched_number("SHOAL_LAUNCH_ROUNDS");
    char word[32];
    alarm(SUPPORT_PATIENCE_S);
    last_words_inherit();
    snprintf(word, sizeof word, "%d/%d/%d ", round, launched_number("TORCHELASTIC_RESTART_COUNT"),
             launched_number("SHOAL_HAVE_MET"));
    launched_leave_word(file, word);
    if (how[round] != 'f')
        last_words_met(how[round] == 'n');
    switch (how[round]) {
    case 'd':
        return EXIT_DONE;
    case 'k': /* it can say no more */
        raise(SIGKILL);
        return 9;
    case 'l': /* a peer was lost */
    case 'n': /* likewise, after the launcher of one was lost */
        return say(ERR_PEER, EXIT_RETRYABLE);
    case 'S': /* somebody asks this very rank to stop */
        stop_install_handlers();
        raise(SIGTERM);
        return say(ERR_CANCELLED, EXIT_TERMINATED);
    case 's': /* a peer was asked to stop */
        return say(ERR_CANCELLED, EXIT_TERMINATED);
    default:
        return 5;
    }
}

/* ---- the test ---- */

static int launch(const char *how, const char *file, int max_restarts)
{
    struct topology t = {.world_size = 2, .local_size = 1, .nodes = 2, .host = "h", .port = 1};
    char *argv[] = {(char *)"test_launch_budget", (char *)"rank", (char *)how, (char *)file, NULL};
    const struct launch_options options = {
        .topology = &t, .argv = argv, .max_restarts = max_restarts};
    struct error err;
    int exit_code = -1;
    assert_ok(launch_local_ranks(&options, &exit_code, &err), &err);
    return exit_code;
}

static void only_failures_spend_restarts(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int max_restarts, expected;
        const char *words;
    } rows[] = {
        {"ffd", 1, 5, "0/0/0 1/1/0 "},
        {"lld", 1, EXIT_RETRYABLE, "0/0/0 1/1/1 "},
        {"kld", 2, EXIT_DONE, "0/0/0 1/1/1 2/2/1 "}, /* that it had met is known of a dead one */
        {"lfd", 2, EXIT_DONE, "0/0/0 1/1/1 2/2/1 "}, /* also of one that fails before it meets */
        {"sssssd", 1, EXIT_DONE, "0/0/0 1/0/1 2/0/1 3/0/1 4/0/1 5/0/1 "},
        {"slsl", 1, EXIT_RETRYABLE, "0/0/0 1/0/1 2/1/1 3/1/1 "},
        {"sd", 0, EXIT_TERMINATED, "0/0/0 "}, /* switched off */
        {"SSd", 1, EXIT_TERMINATED, "0/0/0 1/1/1 "},
        {"lnnnd", 1, EXIT_DONE, "0/0/0 1/1/1 2/1/1 3/1/1 4/1/1 "},
        {"fnd", 1, EXIT_RETRYABLE, "0/0/0 1/1/0 "}, /* its own failure is */
        {"snnd", 1, EXIT_DONE, "0/0/0 1/0/1 2/1/1 3/1/1 "},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct launched_place place = launched_place_open();
        char text[200] = "";
        int exit_code = launch(rows[i].how, place.file, rows[i].max_restarts);
        auto_fclose FILE *file = fopen(place.file, "re");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        if (strcmp(text, rows[i].words) != 0 || exit_code != rows[i].expected)
            fail_msg("%s: exit code %d, '%s', not '%s'", rows[i].how, exit_code, text,
                     rows[i].words);
        launched_place_close(&place);
    }
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return rank_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_failures_spend_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
