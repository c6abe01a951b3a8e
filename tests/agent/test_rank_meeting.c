/* How ranks meet: with patience once they have met before; and what their launchers learn. */
#include "agent/launch/last_words.h"
#include "agent/rank_meeting.h"
#include "base/contract.h"
#include "base/listen.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_rank(int rank, int port, int timeout_ms, struct rendezvous **ret, struct error *err)
{
    const struct rendezvous_options options = {.host = "127.0.0.1",
                                               .port = port,
                                               .rank = rank,
                                               .size = 2,
                                               .job_id = "j",
                                               .secret = "s",
                                               .join_timeout_ms = timeout_ms,
                                               .beat_ms = RENDEZVOUS_BEAT_MS,
                                               .silence_ms = RENDEZVOUS_SILENCE_MS};
    return rendezvous_open(&options, ret, err);
}

/* Rank 0, in a process of its own: ends with the error's code. What it logs goes to the pipe. */
static pid_t start_hasty_rank(int port, const char *have_met, int log)
{
    const struct rendezvous_options options = {.host = "127.0.0.1",
                                               .port = port,
                                               .size = 2,
                                               .job_id = "j",
                                               .secret = "s",
                                               .join_timeout_ms = 50,
                                               .beat_ms = RENDEZVOUS_BEAT_MS,
                                               .silence_ms = RENDEZVOUS_SILENCE_MS};
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct rendezvous *r = NULL;
    struct error err = {.code = ERR_NONE};
    alarm(SUPPORT_PATIENCE_S);
    setenv(ENV_HAVE_MET, have_met, 1);
    dup2(log, STDERR_FILENO);
    char ended[STORE_VALUE_MAX];
    int result = rank_meeting_open(&options, true, &r, &err);
    if (result == 0)
        result = rendezvous_store(r)->fn->get(rendezvous_store(r), "end", SUPPORT_PATIENCE_MS,
                                              ended, &err);
    rendezvous_close(r);
    _exit(result ? (int)err.code : ERR_NONE);
}

static int end_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int free_port(void)
{
    int port;
    struct error err;
    assert_ok(listen_free_port(&port, &err), &err);
    return port;
}

static void only_ranks_that_have_met_wait_on(void **state)
{
    (void)state;
    int log[2], port = free_port();
    char line[1000] = "";
    struct error err;
    struct rendezvous *r;
    assert_int_equal(pipe(log), 0);
    assert_int_equal(end_of(start_hasty_rank(port, "0", log[1])), ERR_TIMEOUT);

    pid_t pid = start_hasty_rank(port, "1", log[1]);
    assert_true(read(log[0], line, sizeof line - 1) > 0); /* by now its time was up */
    assert_non_null(strstr(line, "the ranks have met before: waits on, for 24 hours at most"));
    assert_ok(open_rank(1, port, SUPPORT_PATIENCE_MS, &r, &err), &err);
    assert_ok(rendezvous_store(r)->fn->set(rendezvous_store(r), "end", "", &err), &err);
    assert_int_equal(end_of(pid), ERR_NONE);
    rendezvous_close(r);
    close(log[0]), close(log[1]);
}

/* A rank's words to its launcher, all in this process. */
static void listen_to_own_words(int *ret_fd)
{
    int inherited;
    struct error err;
    assert_ok(last_words_open(ret_fd, &inherited, &err), &err);
    last_words_set_inheritable(inherited);
    last_words_inherit();
}

/* A store in which keys are found at once. */
static char table[10][STORE_KEY_MAX];

static int set(struct store *s, const char *key, const char *value, struct error *err)
{
    (void)s, (void)value;
    for (size_t i = 0; i < array_length(table); i++)
        if (strcmp(table[i], key) == 0)
            return error_set(err, ERR_EXISTS, "%s", key);
    for (size_t i = 0; i < array_length(table); i++)
        if (!table[i][0])
            return snprintf(table[i], sizeof table[i], "%s", key) < 0;
    return -1;
}

static int get(struct store *s, const char *key, int timeout_ms, char *value, struct error *err)
{
    (void)s;
    value[0] = '\0';
    assert_int_equal(timeout_ms, 0);
    for (size_t i = 0; i < array_length(table); i++)
        if (strcmp(table[i], key) == 0)
            return 0;
    return error_set(err, ERR_TIMEOUT, "%s", key);
}

/* NULL: without a launcher. */
static struct last_words words_after(struct store *store, const char *rounds)
{
    int fd;
    struct last_words words;
    const struct error lost = {.code = ERR_PEER, .msg = "rank 1 is lost"};
    listen_to_own_words(&fd);
    unsetenv(ENV_LAUNCH_ROUNDS);
    if (rounds)
        setenv(ENV_LAUNCH_ROUNDS, rounds, 1);
    rank_meeting_announce(store);
    rank_meeting_ask(store);
    last_words_send(&lost, false);
    last_words_take(fd, &words);
    assert_int_equal(words.code, ERR_PEER); /* what was said before takes nothing away */
    assert_string_equal(words.text, "rank 1 is lost");
    return words;
}

static void a_new_launcher_is_known_to_the_old_ones(void **state)
{
    (void)state;
    static const struct store_functions functions = {.set = set, .get = get};
    struct store store;
    store_init(&store, &functions);
    assert_int_equal(words_after(&store, "3").new_launchers, 0);
    assert_int_equal(words_after(&store, NULL).new_launchers, 0);
    assert_int_equal(words_after(&store, "3").new_launchers, 0);
    for (int i = 1; i <= RANK_MEETING_NEW_MOST + 1; i++) {
        assert_int_equal(words_after(&store, "0").new_launchers, 0); /* itself is no loss to it */
        struct last_words words = words_after(&store, "3");
        assert_true(words.has_met);
        assert_int_equal(words.new_launchers,
                         i < RANK_MEETING_NEW_MOST ? i : RANK_MEETING_NEW_MOST);
    }
    store_destroy(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_ranks_that_have_met_wait_on),
        cmocka_unit_test(a_new_launcher_is_known_to_the_old_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
