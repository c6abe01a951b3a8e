/* What a rank's exit says of the cause of a round's end. */
#include "tests/support.h"

#include "agent/launch/repeated_end.h"
#include "agent/launch/root_cause.h"
#include "base/contract.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>

enum { EXITED = 256 }; /* an exit code in a status, as waitpid() has it */

static void exits_are_weighed_and_described(void **state)
{
    (void)state;
    static const struct {
        struct rank_exit exit;
        int code;
        enum exit_severity severity;
        const char *text, *loss;
    } rows[] = {
        {{.status = 1 * EXITED,
          .words = {.code = ERR_IO, .has_met = true, .text = "read x: it is gone"}},
         1,
         REPORTED,
         "exit code 1: read x: it is gone",
         NULL},
        {{.status = EXIT_CONFIG * EXITED}, EXIT_CONFIG, REPORTED, "exit code 2", NULL},
        {{.status = SIGKILL}, 128 + SIGKILL, UNREPORTED, "signal 9", NULL},
        {{.status = SIGSEGV}, 128 + SIGSEGV, UNREPORTED, "signal 11", NULL},
        {{.status = SIGKILL, .is_stuck = true},
         EXIT_RETRYABLE,
         REPORTED,
         "it gave no sign of life, and was killed",
         NULL},
        {{.status = SIGKILL, .is_too_slow = true},
         128 + SIGKILL,
         CONSEQUENCE,
         "signal 9",
         "a peer was lost"},
        {{.status = SIGKILL,
          .is_too_slow = true,
          .words = {.code = ERR_INPUT, .has_met = true, .text = "id 5 is 70000"}},
         EXIT_CONFIG,
         REPORTED,
         "signal 9: id 5 is 70000",
         NULL},
        {{.status = EXIT_RETRYABLE * EXITED,
          .words = {.code = ERR_PEER, .has_met = true, .text = "rank 3 is lost"}},
         EXIT_RETRYABLE,
         CONSEQUENCE,
         "exit code 138: rank 3 is lost",
         "a peer was lost (rank 3 is lost)"},
        {{.status = EXIT_RETRYABLE * EXITED,
          .words = {.code = ERR_DEVICE, .has_met = true, .text = "GPU: ECC error"}},
         EXIT_RETRYABLE,
         REPORTED,
         "exit code 138: GPU: ECC error",
         NULL},
        {{.status = EXIT_HARDWARE * EXITED,
          .words = {.code = ERR_HARDWARE,
                    .has_met = true,
                    .text = "bad hardware: GPU 1 reports Xid 79"}},
         EXIT_HARDWARE,
         BAD_HARDWARE,
         "exit code 144: bad hardware: GPU 1 reports Xid 79",
         NULL},
        {{.status = EXIT_TERMINATED * EXITED,
          .words = {.code = ERR_CANCELLED, .has_met = true, .text = "stopped at step 4"}},
         EXIT_TERMINATED,
         CONSEQUENCE,
         "exit code 143: stopped at step 4",
         "a peer was asked to stop (stopped at step 4)"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct rank_exit exit = rows[i].exit;
        char expected[200];
        auto_str struct str text, loss;
        str_init(&text, 1000);
        str_init(&loss, 1000);
        exit.rank = 6, exit.local_rank = 2, exit.pid = 7;
        assert_int_equal(rank_exit_code(&exit), rows[i].code);
        assert_int_equal(rank_exit_severity(&exit), rows[i].severity);
        snprintf(expected, sizeof expected,
                 "rank 6 (local rank 2, pid 7) on j-worker-1 (node n) failed at T: %s",
                 rows[i].text);
        rank_exit_describe(&exit, "j-worker-1 (node n)", "T", &text);
        assert_string_equal(str_text(&text), expected);
        rank_exit_describe_loss(&exit, &loss);
        if (rows[i].loss)
            assert_string_equal(str_text(&loss), rows[i].loss);
    }
}

static void what_would_end_the_same_is_not_tried_again(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum error_code code;
        bool has_met, expected, with_a_meeting;
    } rows[] = {
        {EXIT_RETRYABLE, ERR_TIMEOUT, false, true, false},
        {EXIT_RETRYABLE, ERR_TIMEOUT, true, false, false},
        {EXIT_RETRYABLE, ERR_PEER, false, false, false},
        {EXIT_FAILED, ERR_DIVERGED, true, true, true},
        {EXIT_HARDWARE, ERR_HARDWARE, true, true, true},
        {EXIT_FAILED, ERR_IO, true, false, false},
        {EXIT_RETRYABLE, ERR_NONE, false, false, false},
        {EXIT_CONFIG, ERR_CONFIG, false, true, true},
        {EXIT_CONFIG, ERR_EXISTS, false, true, false}, /* rank 0's port: the next has another */
        {EXIT_CONFIG, ERR_EXISTS, true, true, true},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct rank_exit exit = {
            .status = rows[i].status * EXITED,
            .words = {.code = (int32_t)rows[i].code, .has_met = rows[i].has_met}};
        assert_int_equal(rank_exit_would_repeat(&exit, false), rows[i].expected);
        assert_int_equal(rank_exit_would_repeat(&exit, true), rows[i].with_a_meeting);
    }
}

#define STOPPED .status = EXIT_TERMINATED * EXITED, .words.code = ERR_CANCELLED

/* The sum is that of both orders: of two local ranks any may end first. */
static void a_peer_that_was_stopped_is_nobodys_failure(void **state)
{
    (void)state;
    static const struct rank_exit freely = {STOPPED},
                                  by_launcher = {STOPPED, .words.was_asked = true},
                                  by_others = {STOPPED, .words.was_asked = true,
                                               .words.was_asked_by_others = true},
                                  silent = {.status = SIGTERM},
                                  lost = {.status = EXIT_RETRYABLE * EXITED,
                                          .words.code = ERR_PEER},
                                  foreign = {.status = EXIT_TERMINATED * EXITED},
                                  failed = {.status = EXIT_FAILED * EXITED};
    static const struct {
        const struct rank_exit *exits[2];
        const struct rank_exit *cause; /* NULL: any of the two */
        bool expected;
    } rows[] = {
        {{&freely, &freely}, NULL, true},        {{&freely, &by_launcher}, NULL, true},
        {{&freely, &by_others}, NULL, false},    {{&by_launcher, &by_others}, NULL, false},
        {{&by_others, &by_others}, NULL, false}, {{&by_launcher, &by_launcher}, NULL, false},
        {{&freely, &lost}, NULL, true},          {{&by_launcher, &lost}, NULL, false},
        {{&freely, &silent}, NULL, true},        {{&silent, &silent}, NULL, false},
        {{&lost, &lost}, NULL, false},           {{&foreign, &foreign}, NULL, false},
        {{&freely, &failed}, &failed, false},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        for (int first = 0; first < 2; first++) {
            struct stop_signs signs = {0};
            stop_signs_add(&signs, rows[i].exits[first]);
            stop_signs_add(&signs, rows[i].exits[!first]);
            const struct rank_exit *cause = rows[i].cause ? rows[i].cause : rows[i].exits[first];
            if (stop_signs_name_peer(&signs, cause) != rows[i].expected)
                fail_msg("row %zu, exit %d first", i, first);
        }
}

static void ends_in_one_place_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *where[4]; /* of the rounds; NULL: no more */
        const char *expected;
    } rows[] = {
        {{"in step 7"}, ""},
        {{"in step 7", "in step 7"}, "the run has ended 2 times in a row in step 7"},
        {{"in step 7", "in step 9"}, ""},
        {{"in step 7", "in step 9", "in step 9"}, "the run has ended 2 times in a row in step 9"},
        {{"in step 7", "in step 9", "in step 7"}, ""},
        {{"in step 7", "in step 7", "in step 7"}, "the run has ended 3 times in a row in step 7"},
        {{"in step 7", "", "in step 7"}, ""},
        {{"", "", ""}, ""}, /* before the first step, or of programs that tell nothing */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct repeated_end ends = {.times = 0};
        auto_str struct str text;
        str_init(&text, 200);
        for (int round = 0; round < 4 && rows[i].where[round]; round++)
            repeated_end_add(&ends, rows[i].where[round]);
        repeated_end_describe(&ends, &text);
        assert_string_equal(str_text(&text), rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exits_are_weighed_and_described),
        cmocka_unit_test(ends_in_one_place_are_counted),
        cmocka_unit_test(what_would_end_the_same_is_not_tried_again),
        cmocka_unit_test(a_peer_that_was_stopped_is_nobodys_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
