/* The launcher of an elastic run's node 0, in a process of its own; this one is node 1's. It starts
 * this very program for each rank: `test_launch_nodes rank FILE`. Ranks leave words in the file. */
#include "tests/agent/launched.h"
#include "tests/support.h"

#include "agent/comm/meeting.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/listen.h"
#include "base/mem.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a rank ---- */

/* The first round ends as it is asked, the second fails, the third is good. A file that is named so
 * has the exit code of all of them. */
static int rank_main(const char *file)
{
    int attempt = launched_number("SHOAL_RESTART_COUNT");
    const char *code = strstr(file, "code=");
    if (code)
        return atoi(code + strlen("code="));
    alarm(SUPPORT_PATIENCE_S);
    signal(SIGTERM, launched_on_signal);
    char word[32];
    snprintf(word, sizeof word, "%d/%d ", attempt, launched_number("TORCHELASTIC_RESTART_COUNT"));
    launched_leave_word(file, word);
    if (attempt == 0)
        launched_pause_until_signal();
    return attempt == 0 ? EXIT_TERMINATED : attempt == 1 ? 5 : 0;
}

/* ---- the test ---- */

static int free_port(void)
{
    int port;
    struct error err;
    assert_ok(listen_free_port(&port, &err), &err);
    return port;
}

static bool slots_are_refused;
static const char *told_in; /* the file for what launchers say; NULL: our own stderr */

/* min: how many a round needs; nodes: how many the first one waits for. */
static pid_t launch_needing(int min, int node, const char *file, int port, int nodes,
                            struct launch_output_spec output)
{
    struct topology t = {.world_size = nodes,
                         .node_rank = node,
                         .local_size = 1,
                         .nodes = nodes,
                         .min_nodes = min,
                         .max_nodes = 3,
                         .host = "127.0.0.1",
                         .port = port};
    char *argv[] = {(char *)"test_launch_nodes", (char *)"rank", (char *)file, NULL};
    const struct launch_options options = {.topology = &t,
                                           .argv = argv,
                                           .max_restarts = 1,
                                           .slots_are_refused = slots_are_refused,
                                           .shrink_after_s = SUPPORT_PATIENCE_S,
                                           .join_timeout_s = SUPPORT_PATIENCE_S,
                                           .output = output};
    struct error err;
    int exit_code = -1;
    pid_t pid = fork();
    if (pid == 0 && told_in)
        dup2(open(told_in, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), 2);
    if (pid == 0)
        _exit(launch_local_ranks(&options, &exit_code, &err) ? 99 : exit_code);
    return pid;
}

static pid_t launch_node(int node, const char *file, int port, int nodes,
                         struct launch_output_spec output)
{
    return launch_needing(1, node, file, port, nodes, output);
}

static pid_t launch_apart(const char *file, int port, int nodes, struct launch_output_spec output)
{
    return launch_node(0, file, port, nodes, output);
}

static struct meeting *open_among(int node, int port, int min, int nodes)
{
    const struct meeting_options options = {.host = "127.0.0.1",
                                            .port = port,
                                            .node = node,
                                            .roster = {min, nodes, nodes, 0},
                                            .free_port = listen_free_port,
                                            .local_size = 1,
                                            .name = "",
                                            .job_id = "",
                                            .secret = "",
                                            .patience_ms = SUPPORT_PATIENCE_MS};
    struct meeting *meeting;
    struct error err;
    assert_ok(meeting_open(&options, &meeting, &err), &err);
    return meeting;
}

static struct meeting *open_as(int node, int port)
{
    return open_among(node, port, 2, 2);
}

static struct meeting *open_node(int port)
{
    return open_as(1, port);
}

static struct meeting_event next(struct meeting *meeting)
{
    struct meeting_event event;
    do {
        struct pollfd polls[100];
        int64_t until_ms;
        poll(polls, meeting_polls(meeting, polls, &until_ms), 10);
        meeting_handle(meeting, &event);
    } while (event.what == MEETING_NOTHING);
    return event;
}

static int exit_code_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void ranks_that_cannot_start_are_no_end_of_the_run(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    int port = free_port();
    fclose(fopen(place.file, "w"));
    pid_t pid = launch_apart(place.file, port, 2,
                             (struct launch_output_spec){.log_dir = place.file, .redirects = "3"});
    struct meeting *node = open_node(port);
    meeting_ready(node, NULL);
    assert_int_equal(next(node).what, MEETING_ROUND_BEGINS);
    assert_int_equal(next(node).what, MEETING_ROUND_BROKEN);
    assert_int_equal(exit_code_of(pid), 99);
    meeting_close(node, MEETING_MAY_RETURN);
    launched_place_close(&place);
}

/* What torchrun's workers compare with max_restarts counts failures only. */
static void nodes_that_come_spend_no_restart(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    int port = free_port();
    pid_t pid = launch_apart(place.file, port, 1, (struct launch_output_spec){0});
    support_wait_until(launched_size(place.file) == strlen("0/0 "));
    struct meeting *node = open_node(port);
    meeting_ready(node, NULL);
    struct meeting_event event = next(node);
    assert_int_equal(event.what, MEETING_ROUND_BEGINS);
    assert_int_equal(event.nodes, 2);
    support_wait_until(launched_size(place.file) == strlen("0/0 1/0 "));
    meeting_ready(node, NULL);
    assert_int_equal(next(node).what, MEETING_ROUND_BEGINS);
    assert_int_equal(exit_code_of(pid), 0);
    char text[100] = "";
    auto_fclose FILE *file = fopen(place.file, "r");
    assert_int_equal(fread(text, 1, sizeof text - 1, file), strlen("0/0 1/0 2/1 "));
    assert_string_equal(text, "0/0 1/0 2/1 ");
    meeting_close(node, MEETING_ALL_DONE);
    launched_place_close(&place);
}

/* Its own failure is the launcher's end, and no success; that it lost a peer by the end is none. */
static void a_failure_behind_the_end_of_the_run_is_no_success(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int expected;
    } rows[] = {{"code=5", 5}, {"code=138", EXIT_DONE}, {"code=143", EXIT_DONE}};
    for (size_t i = 0; i < array_length(rows); i++) {
        int port = free_port();
        struct meeting *node = open_as(0, port);
        pid_t pid = launch_node(1, rows[i].how, port, 2, (struct launch_output_spec){0});
        meeting_ready(node, NULL);
        assert_int_equal(next(node).what, MEETING_ROUND_BEGINS);
        assert_int_equal(next(node).what, MEETING_ROUND_BROKEN); /* they had not met */
        meeting_close(node, MEETING_ALL_DONE);
        assert_int_equal(exit_code_of(pid), rows[i].expected);
    }
}

/* Node 1 has come to the end, node 0's ranks fail behind it, and MIN is two. */
static void a_failure_that_is_left_alone_ends(void **state)
{
    (void)state;
    int port = free_port();
    pid_t pid = launch_needing(2, 0, "code=5", port, 2, (struct launch_output_spec){0});
    struct meeting *node = open_node(port);
    meeting_ready(node, NULL);
    assert_int_equal(next(node).what, MEETING_ROUND_BEGINS);
    meeting_close(node, MEETING_ALL_DONE);
    assert_int_equal(exit_code_of(pid), 5);
}

/* The cause's code stays, when node 0 ends by the same failure at once. */
static void the_cause_outlives_node_0s_end(void **state)
{
    (void)state;
    int port = free_port();
    struct meeting *node = open_as(0, port);
    pid_t pid = launch_node(1, "code=5", port, 2, (struct launch_output_spec){0});
    meeting_ready(node, NULL);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(next(node).what, MEETING_ROUND_BEGINS);
        assert_int_equal(next(node).what, MEETING_ROUND_BROKEN);
        meeting_ready(node, &(struct meeting_report){1 - round, true});
    }
    assert_int_equal(next(node).what, MEETING_DISMISSED);
    meeting_close(node, MEETING_MAY_RETURN);
    assert_int_equal(exit_code_of(pid), 5);
}

static bool says(const char *text)
{
    char all[4000];
    auto_fclose FILE *file = fopen(told_in, "re");
    all[file ? fread(all, 1, sizeof all - 1, file) : 0] = '\0';
    return strstr(all, text);
}

/* Node 0's launcher has no restart left, but that is not why it ends. */
static void the_reason_of_the_end_is_the_rosters(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    int port = free_port();
    told_in = place.file;
    pid_t pid = launch_needing(2, 0, "code=5", port, 2, (struct launch_output_spec){0});
    struct meeting *node = open_node(port);
    meeting_ready(node, NULL);
    assert_int_equal(next(node).what, MEETING_ROUND_BEGINS);
    assert_int_equal(next(node).what, MEETING_ROUND_BROKEN);
    meeting_ready(node, &(struct meeting_report){1, true});
    assert_int_equal(next(node).what, MEETING_ROUND_BEGINS);
    meeting_close(node, MEETING_ALL_DONE);
    assert_int_equal(exit_code_of(pid), 5);
    assert_true(says("shoal-agent: other nodes have come to the end of the run, and too few are "
                     "left (restarts: 1 of 1): ends with exit code 5\n"));
    assert_false(says("no restart is left"));
    told_in = NULL;
    launched_place_close(&place);
}

/* Node 0 comes back, as another launcher, before node 2, and waits for nobody. */
static void fewer_nodes_are_told_when_node_0_is_back(void **state)
{
    (void)state;
    struct launched_place place = launched_place_open();
    auto_free char *words = xasprintf("%s/2", place.directory);
    auto_free char *told = xasprintf("%s/told", place.directory);
    int port = free_port();
    pid_t other = launch_node(2, words, port, 3, (struct launch_output_spec){0});
    told_in = told;
    pid_t pid = launch_node(1, place.file, port, 3, (struct launch_output_spec){0});
    struct meeting *node = open_among(0, port, 3, 3); /* after the forks, which would keep it */
    meeting_ready(node, NULL);
    assert_int_equal(next(node).nodes, 3);
    launched_wait_for_words(place.file, (off_t)strlen("0/0 "));
    launched_wait_for_words(words, (off_t)strlen("0/0 "));
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    meeting_close(node, MEETING_MAY_RETURN);
    node = open_among(0, port, 2, 2);
    meeting_ready(node, NULL);
    assert_int_equal(next(node).nodes, 2);
    support_wait_until(says("shoal-agent: goes on with 2 nodes instead of 3; 2 ranks\n"));
    meeting_close(node, MEETING_ALL_DONE);
    assert_int_equal(exit_code_of(pid), 5);
    told_in = NULL;
    launched_place_close(&place);
}

/* What is refused is not advised. */
static void slots_are_advised_where_there_may_be_some(void **state)
{
    (void)state;
    for (int refused = 0; refused < 2; refused++) {
        struct launched_place place = launched_place_open();
        told_in = place.file;
        slots_are_refused = refused;
        pid_t pid = launch_node(0, "code=0", free_port(), 1, (struct launch_output_spec){0});
        assert_int_equal(exit_code_of(pid), 0);
        assert_true(says("an elastic run without parallel.reduction_slots"));
        assert_int_equal(says("1 slots keep its samples"), !refused);
        assert_int_equal(says("memory.cpu_offload has no slots"), refused);
        slots_are_refused = false;
        told_in = NULL;
        launched_place_close(&place);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "rank") == 0)
        return rank_main(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_cannot_start_are_no_end_of_the_run),
        cmocka_unit_test(nodes_that_come_spend_no_restart),
        cmocka_unit_test(a_failure_behind_the_end_of_the_run_is_no_success),
        cmocka_unit_test(a_failure_that_is_left_alone_ends),
        cmocka_unit_test(the_cause_outlives_node_0s_end),
        cmocka_unit_test(the_reason_of_the_end_is_the_rosters),
        cmocka_unit_test(fewer_nodes_are_told_when_node_0_is_back),
        cmocka_unit_test(slots_are_advised_where_there_may_be_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
