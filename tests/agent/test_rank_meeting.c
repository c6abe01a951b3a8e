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
static pid_t start_hasty_rank(int port, const char *rounds_met, int log)
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
    setenv(ENV_ROUNDS_MET, rounds_met, 1);
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
static struct {
    char key[STORE_KEY_MAX], value[16];
} table[10];

static int set(struct store *s, const char *key, const char *value, struct error *err)
{
    (void)s;
    for (size_t i = 0; i < array_length(table); i++)
        if (strcmp(table[i].key, key) == 0)
            return error_set(err, ERR_EXISTS, "%s", key);
    for (size_t i = 0; i < array_length(table); i++) {
        if (table[i].key[0])
            continue;
        snprintf(table[i].key, sizeof table[i].key, "%s", key);
        snprintf(table[i].value, sizeof table[i].value, "%s", value);
        return 0;
    }
    return -1;
}

static int get(struct store *s, const char *key, int timeout_ms, char *value, struct error *err)
{
    (void)s;
    value[0] = '\0';
    assert_int_equal(timeout_ms, 0);
    for (size_t i = 0; i < array_length(table); i++)
        if (strcmp(table[i].key, key) == 0)
            return snprintf(value, STORE_VALUE_MAX, "%s", table[i].value) < 0;
    return error_set(err, ERR_TIMEOUT, "%s", key);
}

/* The two as the launcher sets them; NULL: without a launcher. asks: before it fails. */
static struct last_words words_after(struct store *store, const char *is_new,
                                     const char *rounds_met, bool asks)
{
    int fd;
    struct last_words words;
    const struct error lost = {.code = ERR_PEER, .msg = "rank 1 is lost"};
    listen_to_own_words(&fd);
    unsetenv(ENV_IS_NEW), unsetenv(ENV_ROUNDS_MET);
    if (is_new)
        setenv(ENV_IS_NEW, is_new, 1);
    if (rounds_met)
        setenv(ENV_ROUNDS_MET, rounds_met, 1);
    last_words_met(LAST_WORDS_NOT_ASKED);
    rank_meeting_announce(store);
    if (asks)
        rank_meeting_ask(store);
    last_words_send(&lost, false);
    last_words_take(fd, &words);
    assert_int_equal(words.code, ERR_PEER); /* what was said before takes nothing away */
    assert_string_equal(words.text, "rank 1 is lost");
    assert_true(words.has_met);
    return words;
}

static int seen_by(struct store *store, const char *is_new, const char *rounds_met)
{
    return words_after(store, is_new, rounds_met, true).new_launchers;
}

static void a_new_launcher_is_known_to_the_old_ones(void **state)
{
    (void)state;
    static const struct store_functions functions = {.set = set, .get = get};
    struct store store;
    memset(table, 0, sizeof table);
    store_init(&store, &functions);
    assert_int_equal(seen_by(&store, "0", "1"), 0);
    assert_int_equal(seen_by(&store, NULL, NULL), 0);
    assert_int_equal(seen_by(&store, "0", "1"), 0);
    for (int i = 1; i <= RANK_MEETING_NEW_MOST + 1; i++) {
        assert_int_equal(seen_by(&store, "1", "0"), 0); /* itself is no loss to it */
        assert_int_equal(seen_by(&store, "0", "1"),
                         i < RANK_MEETING_NEW_MOST ? i : RANK_MEETING_NEW_MOST);
    }
    store_destroy(&store);
}

/* A round broke between the meeting and the question. Who was new announces itself once more, in
 * the second round in which it meets. */
static void a_round_that_broke_takes_nothing_away(void **state)
{
    (void)state;
    static const struct store_functions functions = {.set = set, .get = get};
    static const struct {
        const char *its, *is_new, *rounds_met; /* of the announced one; of the one that asks */
        int expected, before; /* so many announce that they have met in one round; then that one */
    } rows[] = {
        {"0", "0", "1", 1, 0},
        {"1", "0", "2", 1, 0}, /* the one that asks has seen it come, and not asked since */
        {"1", "0", "1", 0, 0}, /* it has asked then: that one was told of, and given back */
        {"1", "1", "1", 0, 0}, /* both are as old as the run, in which nobody has asked yet */
        {"0", "1", "1", 1, 0}, /* in such a run that one has come later */
        {"2", "0", "2", 0, 0},
        {"0", "1", "1", 1, RANK_MEETING_NEW_MOST}, /* a job of many pods, and its successor */
        {"0", "0", "2", RANK_MEETING_NEW_MOST + 1, RANK_MEETING_NEW_MOST},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct store store;
        memset(table, 0, sizeof table);
        store_init(&store, &functions);
        for (int k = 0; k < rows[i].before; k++)
            words_after(&store, "1", "1", false);
        assert_int_equal(words_after(&store, "1", rows[i].its, false).new_launchers,
                         LAST_WORDS_NOT_ASKED);
        assert_int_equal(seen_by(&store, rows[i].is_new, rows[i].rounds_met), rows[i].expected);
        store_destroy(&store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_ranks_that_have_met_wait_on),
        cmocka_unit_test(a_new_launcher_is_known_to_the_old_ones),
        cmocka_unit_test(a_round_that_broke_takes_nothing_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
