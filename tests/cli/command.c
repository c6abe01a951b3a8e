#include "tests/cli/command.h"

#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 16 };

void command_write(const char *directory, const char *name, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", directory, name);
    auto_fclose FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
}

int command_enter(void **state)
{
    support_enter_dir(state);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    setenv("HOME", *state, 1);
    return 0;
}

int command_leave(void **state)
{
    unsetenv("KUBECONFIG");
    return support_leave_dir(state);
}

void command_use_server(const char *directory, int port)
{
    auto_free char *config =
        xasprintf("current-context: x\n"
                  "contexts: [{name: x, context: {cluster: c, user: u, namespace: team}}]\n"
                  "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%d'}}]\n"
                  "users: [{name: u, user: {token: mine}}]\n",
                  port);
    auto_free char *path = xasprintf("%s/config", directory);
    command_write(directory, "config", config);
    setenv("KUBECONFIG", path, 1);
}

/* Sends fd to a new file; returns what it was. */
static int divert(int fd, FILE **ret_file)
{
    *ret_file = tmpfile();
    assert_non_null(*ret_file);
    int old = dup(fd);
    assert_true(old >= 0 && dup2(fileno(*ret_file), fd) == fd);
    return old;
}

static char *restore(int fd, int old, FILE *file)
{
    assert_int_equal(dup2(old, fd), fd);
    close(old);
    long bytes = (fseek(file, 0, SEEK_END), ftell(file));
    char *text = xcalloc(1, (size_t)bytes + 1);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)bytes, file), bytes);
    fclose(file);
    return text;
}

struct command_result command_run_with(int (*command)(int argc, char *const *argv),
                                       const char *const *arguments)
{
    char *argv[ARGUMENTS_MAX + 1] = {xstrdup("command")};
    int argc = 1;
    while (argc < ARGUMENTS_MAX && *arguments)
        argv[argc++] = xstrdup(*arguments++);
    struct command_result result;
    FILE *out, *err;
    fflush(stdout);
    fflush(stderr);
    int old_out = divert(STDOUT_FILENO, &out), old_err = divert(STDERR_FILENO, &err);
    result.code = command(argc, argv);
    fflush(stdout);
    fflush(stderr);
    result.err = restore(STDERR_FILENO, old_err, err);
    result.out = restore(STDOUT_FILENO, old_out, out);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return result;
}

void command_forget(struct command_result *result)
{
    free(result->out);
    free(result->err);
}
