/* Runs a command of `shoal` in this process and keeps what it wrote, for tests against a server of
 * the test's own (tests/fake_server.h). */
#ifndef SHOAL_TESTS_CLI_COMMAND_H
#define SHOAL_TESTS_CLI_COMMAND_H

#include "tests/operator/api.h"

struct command_result {
    int code;
    char *out, *err;
};

/* Arguments after the command's name, ended by NULL. Free it with command_forget. */
struct command_result command_run_with(int (*command)(int argc, char *const *argv),
                                       const char *const *arguments);
void command_forget(struct command_result *result);

/* A directory that is HOME, without KUBECONFIG or a pod's service account, as cmocka's setup; and
 * its teardown. */
int command_enter(void **state);
int command_leave(void **state);

/* Writes DIRECTORY/config for a server at this port, with context "x" of namespace "team", and
 * names it in KUBECONFIG. */
void command_use_server(const char *directory, int port);
void command_write(const char *directory, const char *name, const char *text);

/* Answers for every request whose text begins with `start`. */
#define COMMAND_ANSWER(start, body)                                                                \
    {                                                                                              \
        .bytes = API_TEXT("200 OK", "", body), .then = FAKE_CLOSE, .to = start                     \
    }
#endif
