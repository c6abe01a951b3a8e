#include "tests/agent/speaking_ranks.h"

#include "agent/launch/heartbeat.h"
#include "agent/launch/last_words.h"
#include "base/contract.h"
#include "base/mem.h"
#include "tests/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* All ranks say why they end; only the first ends by itself. */
static int follow_peer(const char *how, const char *file, int rank)
{
    bool has_met = strcmp(how, "peer missing") != 0, diverged = strcmp(how, "peer diverged") == 0;
    struct error err;
    int pipe = launched_number("SHOAL_LAST_WORDS_FD");
    last_words_inherit();
    /* what the rank starts gets neither */
    if ((fcntl(pipe, F_GETFD) & FD_CLOEXEC) == 0 || getenv("SHOAL_LAST_WORDS_FD"))
        return 9;
    launched_leave_word(file, ".");
    launched_wait_for_words(file,
                            LAUNCHED_RANKS * (1 + launched_number("TORCHELASTIC_RESTART_COUNT")));
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
    launched_pause_until_signal();
    return EXIT_TERMINATED;
}

/* Not by stdio, which loses what a signal interrupts. */
static void say(const char *text)
{
    for (ssize_t n; *text; text += n > 0 ? n : 0)
        n = write(STDERR_FILENO, text, strlen(text));
}

static void shout(void)
{
    char line[128];
    for (int i = 0; i < SPEAKING_RANKS_LINES; i++) {
        snprintf(line, sizeof line, "line %d: of many words that nobody reads but those who seek\n",
                 i);
        say(line);
    }
    say("and no end");
}

static const char *answer_file;

static void answer(int number)
{
    (void)number;
    launched_leave_word(answer_file, "!");
}

/* Stopped, as by SIGSTOP: it could not even end itself. */
static int stand_still(void)
{
    struct heartbeat heartbeat = heartbeat_inherit();
    heartbeat_send(&heartbeat, 200, "phase data at step 12; its last collective: 17, all_gather");
    return raise(SIGSTOP);
}

int speaking_ranks_main(const char *how, const char *file)
{
    int rank = launched_number("RANK");
    answer_file = file;
    alarm(SUPPORT_PATIENCE_S);
    signal(SIGTERM, launched_on_signal);
    signal(SIGUSR1, answer);
    if (strcmp(how, "answer") == 0) {
        launched_leave_word(file, ".");
        shout();
        return 0;
    }
    if (strcmp(how, "speak") == 0) {
        printf("out of %d\nand no end", rank);
        fprintf(stderr, "err of %d\n", rank);
        return 0;
    }
    if (strncmp(how, "peer", 4) == 0)
        return follow_peer(how, file, rank);
    if (rank != 6)
        return launched_pause_until_signal() == SIGTERM ? 8 : 9;
    if (strcmp(how, "stuck") == 0)
        return stand_still();
    if (strncmp(how, "shout", 5) == 0)
        shout();
    if (strcmp(how, "killed") == 0 || strcmp(how, "shout, killed") == 0)
        raise(SIGKILL);
    return strcmp(how, "wrong") == 0 ? EXIT_CONFIG : 5;
}

int speaking_ranks_launch(const char *program, const struct launched_place *place, const char *how,
                          int max_restarts, struct launch_output_spec output)
{
    auto_free char *out = xasprintf("%s/out", place->directory);
    auto_free char *err = xasprintf("%s/err", place->directory);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open(out, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 1);
        dup2(open(err, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 2);
        _exit(launched_run(program, how, place->file, max_restarts, output));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}
