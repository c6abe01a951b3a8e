/* The launcher starts this very program again for each rank: `test_launch rank HOW FILE`. The file
 * (under a temporary directory) is where ranks leave word for each other and for the test. */
#include "tests/agent/memfd_rules.h"
#include "tests/support.h"

#include "agent/launch/heartbeat.h"
#include "agent/launch/last_words.h"
#include "agent/launch/launch.h"
#include "agent/launch/rank_memory.h"
#include "base/contract.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3

/* ---- a rank ---- */

static volatile sig_atomic_t got;

static void on_signal(int number)
{
    got = number;
}

static void leave_word(const char *file, const char *text)
{
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ssize_t n = write(fd, text, strlen(text));
    close(fd);
    if (n != (ssize_t)strlen(text))
        abort();
}

/* Waits until the file has so many bytes. */
static void wait_for_words(const char *file, off_t bytes)
{
    struct stat st;
    support_wait_until(stat(file, &st) == 0 && st.st_size >= bytes);
}

static int pause_until_signal(void)
{
    while (!got)
        usleep(2000);
    return got;
}

/* Each attempt finds what the one before it left in its memory; all but the third are killed. */
static int remember(int rank, const char *file)
{
    int attempt = atoi(getenv("TORCHELASTIC_RESTART_COUNT")), fd = rank_memory_inherit();
    void *memory;
    struct error err;
    if (fd <= 0 || (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0 ||
        rank_memory_map(fd, 4096, &memory, &err))
        return 9;
    int *left = memory;
    if (*left != (attempt == 0 ? 0 : 100 * rank + attempt))
        return 6;
    *left = 100 * rank + attempt + 1;
    leave_word(file, ".");
    wait_for_words(file, (attempt + 1) * RANKS);
    if (attempt == 2)
        return 0;
    if (rank == 6)
        raise(SIGKILL);
    return pause_until_signal() == SIGTERM ? 8 : 9;
}

/* All ranks say why they end; only the first ends by itself. */
static int follow_peer(const char *how, const char *file, int rank)
{
    bool has_met = strcmp(how, "peer missing") != 0, diverged = strcmp(how, "peer diverged") == 0;
    struct error err;
    int pipe = atoi(getenv("SHOAL_LAST_WORDS_FD"));
    last_words_inherit();
    /* what the rank starts gets neither */
    if ((fcntl(pipe, F_GETFD) & FD_CLOEXEC) == 0 || getenv("SHOAL_LAST_WORDS_FD"))
        return 9;
    leave_word(file, ".");
    wait_for_words(file, RANKS * (1 + atoi(getenv("TORCHELASTIC_RESTART_COUNT"))));
    error_set(&err,
              diverged  ? ERR_DIVERGED
              : has_met ? ERR_PEER
                        : ERR_TIMEOUT,
              "rank 1 is lost (connection closed)");
    last_words_send(&err, has_met);
    error_set(&err, ERR_IO, "not the cause");
    last_words_send(&err, true);
    if (rank == 6)
        return diverged ? EXIT_FAILED : EXIT_RETRYABLE;
    pause_until_signal();
    return EXIT_TERMINATED;
}

static int rank_main(const char *how, const char *file)
{
    int rank = atoi(getenv("RANK"));
    alarm(SUPPORT_PATIENCE_S);
    signal(SIGTERM, strcmp(how, "deaf") == 0 ? SIG_IGN : on_signal);
    signal(SIGUSR1, on_signal);
    if (strcmp(how, "tell") == 0) {
        char line[100];
        snprintf(line, sizeof line, "%s/%s %s/%s\n", getenv("RANK"), getenv("WORLD_SIZE"),
                 getenv("LOCAL_RANK"), getenv("LOCAL_WORLD_SIZE"));
        leave_word(file, line);
        return 0;
    }
    if (strcmp(how, "secret") == 0) {
        leave_word(file, getenv("SHOAL_RUN_SECRET"));
        leave_word(file, "\n");
        return 0;
    }
    if (strcmp(how, "speak") == 0) {
        printf("out of %d\nand no end", rank);
        fprintf(stderr, "err of %d\n", rank);
        return 0;
    }
    if (strcmp(how, "remember") == 0)
        return remember(rank, file);
    if (strcmp(how, "forget") == 0)
        return rank_memory_inherit() > 0 ? 9 : 0;
    if (strcmp(how, "again") == 0 || strcmp(how, "wrong") == 0) {
        /* Each round leaves one word; only the round after two others is good. */
        int attempt = atoi(getenv("TORCHELASTIC_RESTART_COUNT"));
        if (attempt != atoi(getenv("SHOAL_RESTART_COUNT")) - 4)
            return 7;
        if (strcmp(getenv("SHOAL_RUN_ID"), "a1") != 0 ||
            strcmp(getenv("SHOAL_RUN_SECRET"), "told") != 0)
            return 6;
        if (rank != 6)
            return attempt == 2 ? 0 : pause_until_signal() == SIGTERM ? 8 : 9;
        leave_word(file, ".");
        return strcmp(how, "wrong") == 0 ? 2 : attempt == 2 ? 0 : 5;
    }
    if (strncmp(how, "peer", 4) == 0)
        return follow_peer(how, file, rank);
    leave_word(file, ".");
    wait_for_words(file, RANKS);
    if (strcmp(how, "lost") == 0 || strcmp(how, "lost for good") == 0) {
        /* who has lost rank 6 is gone before rank 6 is */
        if (rank == 7)
            return EXIT_RETRYABLE;
        pause_until_signal();
        return rank == 8 ? EXIT_TERMINATED : strcmp(how, "lost") == 0 ? 1 : EXIT_CONFIG;
    }
    if (strcmp(how, "signal") == 0)
        return pause_until_signal() == SIGUSR1 ? 0 : 9;
    if (strcmp(how, "stay") == 0 || rank != 6)
        return pause_until_signal() == SIGTERM ? 8 : 9; /* 8 must not hide rank 6's code */
    if (strcmp(how, "killed") == 0)
        raise(SIGKILL);
    if (strcmp(how, "stuck") == 0 || strcmp(how, "ended") == 0) {
        struct heartbeat heartbeat = heartbeat_inherit();
        signal(SIGTERM, SIG_IGN);
        heartbeat_send(&heartbeat, SUPPORT_PATIENCE_MS);
        heartbeat_send(&heartbeat, strcmp(how, "stuck") == 0 ? 200 : 0);
        usleep(400000);
        return strcmp(how, "stuck") == 0 ? pause_until_signal() : 6;
    }
    return 5;
}

/* ---- the tests ---- */

struct place {
    char *directory, *file;
};

static struct place place_open(void)
{
    struct place place = {.directory = support_temp_dir()};
    place.file = xasprintf("%s/words", place.directory);
    return place;
}

static void place_close(struct place *place)
{
    support_remove_tree(place->directory);
    free(place->directory);
    free(place->file);
}

static int launch_with(const char *how, const char *file, int max_restarts,
                       struct launch_output_spec output)
{
    struct topology t = {.rank = 6,
                         .world_size = 9,
                         .local_size = RANKS,
                         .host = "127.0.0.1",
                         .port = 1,
                         .restart_count = 4,
                         .run_id = "a1",
                         .secret = "told"};
    char *argv[] = {(char *)"test_launch", (char *)"rank", (char *)how, (char *)file, NULL};
    struct error err;
    const struct launch_options options = {.topology = &t,
                                           .argv = argv,
                                           .max_restarts = max_restarts,
                                           .is_verbose = max_restarts > 0,
                                           .output = output};
    int exit_code = -1;
    assert_ok(launch_local_ranks(&options, &exit_code, &err), &err);
    return exit_code;
}

static int launch(const char *how, const char *file)
{
    return launch_with(how, file, 0, (struct launch_output_spec){0});
}

/* The launcher in a process of its own, for signals. */
static pid_t launch_apart(const char *how, const char *file)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(launch(how, file));
    return pid;
}

static int compare_lines(const void *a, const void *b)
{
    return memcmp(a, b, 8);
}

static void test_ranks_are_told_who_they_are(void **state)
{
    (void)state;
    struct place place = place_open();
    assert_int_equal(launch("tell", place.file), 0);
    char text[200] = "";
    auto_fclose FILE *file = fopen(place.file, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), RANKS * 8);
    qsort(text, RANKS, 8, compare_lines);
    assert_string_equal(text, "6/9 0/3\n7/9 1/3\n8/9 2/3\n");
    place_close(&place);
}

static void test_the_first_failure_stops_the_others_and_is_returned(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int expected;
    } rows[] = {{"fail", 5},  {"killed", 128 + SIGKILL},
                {"deaf", 5},  {"stuck", EXIT_RETRYABLE},
                {"ended", 6}, {"lost", 1}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct place place = place_open();
        assert_int_equal(launch(rows[i].how, place.file), rows[i].expected);
        place_close(&place);
    }
}

static void test_signals_reach_every_rank(void **state)
{
    (void)state;
    struct place place = place_open();
    int status;
    pid_t pid = launch_apart("signal", place.file);
    wait_for_words(place.file, RANKS);
    kill(pid, SIGUSR1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    place_close(&place);
}

static off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? -1 : st.st_size;
}

static void test_all_start_again_as_often_as_they_may(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int max_restarts, expected, rounds;
    } rows[] = {{"again", 5, 0, 3},
                {"again", 2, 0, 3},
                {"again", 1, 5, 2},
                {"again", 0, 5, 1},
                {"wrong", 5, 2, 1},
                {"lost for good", 5, 2, RANKS}, /* a round in which each leaves a word */
                {"peer missing", 5, EXIT_RETRYABLE, RANKS}, /* nobody came: nor would they again */
                {"peer diverged", 5, EXIT_FAILED, RANKS},   /* as it would again */
                {"peer lost", 1, EXIT_RETRYABLE, 2 * RANKS}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct place place = place_open();
        assert_int_equal(launch_with(rows[i].how, place.file, rows[i].max_restarts,
                                     (struct launch_output_spec){0}),
                         rows[i].expected);
        assert_int_equal(size_of(place.file), rows[i].rounds);
        place_close(&place);
    }
}

static int count_open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* In a process of its own, which may start no other. */
static int launch_without_processes(void)
{
    const struct rlimit none = {0, 0};
    struct topology t = {.local_size = RANKS, .world_size = RANKS, .host = "127.0.0.1", .port = 1};
    char *argv[] = {(char *)"test_launch", NULL};
    const struct launch_options options = {.topology = &t, .argv = argv};
    struct error err = {.code = ERR_NONE};
    int exit_code, before = count_open_files();
    if (setrlimit(RLIMIT_NPROC, &none) || (geteuid() == 0 && setuid(65534)))
        return 1; /* the limit does not hold for root */
    if (launch_local_ranks(&options, &exit_code, &err) == 0 || err.code != ERR_IO)
        return 2;
    return count_open_files() == before ? 0 : 3;
}

static void test_a_rank_that_cannot_start_leaves_no_open_file(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(launch_without_processes());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Memory outlives its rank, if the launcher may start that again; nobody else's is handed on. */
static void test_memory_outlives_its_rank(void **state)
{
    (void)state;
    struct place place = place_open();
    setenv("SHOAL_MEMORY_FD", "0", 1);
    assert_int_equal(launch_with("remember", place.file, 2, (struct launch_output_spec){0}), 0);
    assert_int_equal(size_of(place.file), 3 * RANKS);
    assert_int_equal(launch("forget", place.file), 0);
    setenv("SHOAL_MEMORY_FD", "2", 1); /* an open file, but no such memory */
    assert_int_equal(rank_memory_inherit(), 0);
    unsetenv("SHOAL_MEMORY_FD");
    place_close(&place);
}

/* A system that refuses such memory costs nothing but that: the ranks run, and start again. */
static void test_ranks_run_without_memory(void **state)
{
    (void)state;
    struct place place = place_open();
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        memfd_refuse(0, 0, EPERM);
        int code = launch_with("forget", place.file, 2, (struct launch_output_spec){0});
        _exit(code ? code : launch_with("again", place.file, 2, (struct launch_output_spec){0}));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    place_close(&place);
}

static void assert_text(const char *path, const char *expected)
{
    char text[1000] = "";
    auto_fclose FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_string_equal(text, expected);
}

static int compare_pointers(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lines of several ranks come in any order. */
static void assert_lines(const char *path, const char *expected)
{
    char text[1000] = "", sorted[1000] = "";
    char *lines[16];
    size_t count = 0;
    auto_fclose FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line && count < 16;
         line = strtok_r(NULL, "\n", &rest))
        lines[count++] = line;
    qsort(lines, count, sizeof lines[0], compare_pointers);
    for (size_t i = 0; i < count; i++)
        strcat(strcat(sorted, lines[i]), "\n");
    assert_string_equal(sorted, expected);
}

/* Launches in a process of its own, whose output goes to `out` and `err` in the directory. */
static int launch_speakers(const struct place *place, const char *how, int max_restarts,
                           struct launch_output_spec output)
{
    auto_free char *out = xasprintf("%s/out", place->directory);
    auto_free char *err = xasprintf("%s/err", place->directory);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open(out, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 1);
        dup2(open(err, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 2);
        _exit(launch_with(how, place->file, max_restarts, output));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_output_goes_where_it_is_sent(void **state)
{
    (void)state;
    struct place place = place_open();
    auto_free char *out = xasprintf("%s/out", place.directory);
    auto_free char *err = xasprintf("%s/err", place.directory);
    auto_free char *first = xasprintf("%s/logs/blue/attempt_0/0/stdout.log", place.directory);
    auto_free char *second = xasprintf("%s/logs/blue/attempt_0/1/stderr.log", place.directory);
    auto_free char *third = xasprintf("%s/logs/blue/attempt_0/2/stdout.log", place.directory);
    auto_free char *logs = xasprintf("%s/logs", place.directory);
    assert_int_equal(
        launch_speakers(&place, "speak", 0,
                        (struct launch_output_spec){
                            .log_dir = logs, .run = "blue", .redirects = "3", .tee = "1:3"}),
        0);
    assert_text(first, "out of 6\nand no end");
    assert_text(second, "err of 7\n");
    assert_text(third, "out of 8\nand no end");
    assert_lines(out, "[default1]:and no end\n[default1]:out of 7\n");
    assert_lines(err, "[default1]:err of 7\n");
    place_close(&place);
}

static void test_output_can_be_told_without_files(void **state)
{
    (void)state;
    struct place place = place_open();
    auto_free char *err = xasprintf("%s/err", place.directory);
    assert_int_equal(launch_speakers(&place, "speak", 0, (struct launch_output_spec){.tee = "2"}),
                     0);
    assert_lines(err, "[default0]:err of 6\n[default1]:err of 7\n[default2]:err of 8\n");
    place_close(&place);
}

static void test_a_death_by_a_signal_is_told(void **state)
{
    (void)state;
    struct place place = place_open();
    auto_free char *path = xasprintf("%s/err", place.directory);
    char text[1000] = "";
    assert_int_equal(launch_speakers(&place, "killed", 0, (struct launch_output_spec){0}),
                     128 + SIGKILL);
    auto_fclose FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_non_null(strstr(text, "shoal-agent: rank 6 (local rank 0, pid "));
    assert_non_null(strstr(text, ": signal 9\n"));
    place_close(&place);
}

/* Each line once, and of those that follow another's failure only what it was. */
static void test_the_cause_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int max_restarts;
        const char *expected; /* in which ... stands for anything */
    } rows[] = {
        {"peer lost", 1,
         "shoal-agent: a peer was lost (rank 1 is lost (connection closed)): all local ranks start "
         "again, 1 of 1 times\n"
         "shoal-agent: rank 6 (local rank 0, pid ...: exit code 138: rank 1 is lost (connection "
         "closed)\n"
         "shoal-agent: no restart is left of 1: ends with exit code 138\n"},
        {"peer missing", 1,
         "shoal-agent: rank 6 (local rank 0, pid ...: exit code 138: rank 1 is lost (connection "
         "closed)\n"},
        {"fail", 1,
         "shoal-agent: rank 6 (local rank 0, pid ...: exit code 5\n"
         "shoal-agent: all local ranks start again, 1 of 1 times\n"
         "shoal-agent: rank 6 (local rank 0, pid ...: exit code 5\n"
         "shoal-agent: no restart is left of 1: ends with exit code 5\n"},
        {"wrong", 1, "shoal-agent: rank 6 (local rank 0, pid ...: exit code 2\n"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct place place = place_open();
        auto_free char *path = xasprintf("%s/err", place.directory);
        char text[2000] = "";
        launch_speakers(&place, rows[i].how, rows[i].max_restarts, (struct launch_output_spec){0});
        auto_fclose FILE *file = fopen(path, "re");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        auto_free char *pattern = xstrdup(rows[i].expected);
        for (char *at = pattern; (at = strstr(at, "..."));)
            memcpy(at, "*", 1), memmove(at + 1, at + 3, strlen(at + 3) + 1);
        if (fnmatch(pattern, text, 0))
            fail_msg("not as expected:\n%s", text);
        place_close(&place);
    }
}

static void test_wrong_outputs_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct launch_output_spec spec;
        const char *message;
    } rows[] = {
        {{.tee = "4"}, "runtime.tee: '4' is not 0, 1, 2, 3 or LOCAL_RANK:WHICH,..."},
        {{.tee = "0:3,x:1"}, "runtime.tee: '0:3,x:1'"},
        {{.tee = "0:"}, "runtime.tee: '0:'"},
        {{.redirects = "33", .log_dir = "d"}, "runtime.redirects: '33'"},
        {{.redirects = "3"}, "runtime.redirects needs runtime.log_dir"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error error;
        assert_fails(launch_output_check(&rows[i].spec, &error), &error, ERR_CONFIG,
                     rows[i].message);
    }
}

/* Orphans come to us, so that their end can be waited for. */
static void test_ranks_die_with_the_launcher(void **state)
{
    (void)state;
    struct place place = place_open();
    int status, killed = 0;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t pid = launch_apart("stay", place.file);
    wait_for_words(place.file, RANKS);
    kill(pid, SIGKILL);
    for (int i = 0; i < RANKS + 1; i++) {
        assert_true(waitpid(-1, &status, 0) > 0);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    assert_int_equal(killed, RANKS + 1);
    place_close(&place);
}

/* secret: what the launcher was told. ret: the word of a single rank. */
static void secret_of(int nodes, const char *secret, bool is_set, char ret[128])
{
    struct place place = place_open();
    struct topology t = {.world_size = nodes,
                         .local_size = 1,
                         .nodes = nodes,
                         .host = "127.0.0.1",
                         .port = 1,
                         .run_id = "a1",
                         .is_secret_set = is_set};
    snprintf(t.secret, sizeof t.secret, "%s", secret);
    char *argv[] = {(char *)"test_launch", (char *)"rank", (char *)"secret", place.file, NULL};
    const struct launch_options options = {.topology = &t, .argv = argv};
    struct error err;
    int exit_code = -1;
    assert_ok(launch_local_ranks(&options, &exit_code, &err), &err);
    assert_int_equal(exit_code, 0);
    auto_fclose FILE *words = fopen(place.file, "re");
    assert_non_null(words);
    assert_non_null(fgets(ret, 128, words));
    ret[strcspn(ret, "\n")] = '\0';
    place_close(&place);
}

static void test_ranks_of_one_launcher_have_a_secret_of_their_own(void **state)
{
    (void)state;
    char first[128], second[128];
    secret_of(1, "a1", false, first); /* an id that others can know */
    secret_of(1, "a1", false, second);
    assert_int_equal(strlen(first), 32);
    assert_string_not_equal(first, second);
    secret_of(1, "told", true, first);
    assert_string_equal(first, "told");
    secret_of(2, "a1", false, first); /* what the other node's ranks know, too */
    assert_string_equal(first, "a1");
    secret_of(2, "", false, first);
    assert_string_equal(first, "");
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return rank_main(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_are_told_who_they_are),
        cmocka_unit_test(test_the_first_failure_stops_the_others_and_is_returned),
        cmocka_unit_test(test_signals_reach_every_rank),
        cmocka_unit_test(test_all_start_again_as_often_as_they_may),
        cmocka_unit_test(test_a_rank_that_cannot_start_leaves_no_open_file),
        cmocka_unit_test(test_memory_outlives_its_rank),
        cmocka_unit_test(test_ranks_run_without_memory),
        cmocka_unit_test(test_output_goes_where_it_is_sent),
        cmocka_unit_test(test_output_can_be_told_without_files),
        cmocka_unit_test(test_a_death_by_a_signal_is_told),
        cmocka_unit_test(test_the_cause_is_told),
        cmocka_unit_test(test_wrong_outputs_are_refused),
        cmocka_unit_test(test_ranks_die_with_the_launcher),
        cmocka_unit_test(test_ranks_of_one_launcher_have_a_secret_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
