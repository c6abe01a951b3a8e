#include "tests/agent/launched.h"

#include "base/mem.h"
#include "tests/support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void (*launched_explain)(const char *why, const char *lines);

struct launched_place launched_place_open(void)
{
    struct launched_place place = {.directory = support_temp_dir()};
    place.file = xasprintf("%s/words", place.directory);
    return place;
}

void launched_place_close(struct launched_place *place)
{
    support_remove_tree(place->directory);
    free(place->directory);
    free(place->file);
}

off_t launched_size(const char *path)
{
    struct stat st;
    return stat(path, &st) ? -1 : st.st_size;
}

int launched_run(const char *program, const char *how, const char *file, int max_restarts,
                 struct launch_output_spec output)
{
    struct topology t = {.rank = 6,
                         .world_size = 9,
                         .local_size = LAUNCHED_RANKS,
                         .host = "127.0.0.1",
                         .port = 1,
                         .restart_count = 4,
                         .run_id = "a1",
                         .secret = "told"};
    char *argv[] = {(char *)program, (char *)"rank", (char *)how, (char *)file, NULL};
    struct error err;
    const struct launch_options options = {.topology = &t,
                                           .argv = argv,
                                           .max_restarts = max_restarts,
                                           .is_verbose = max_restarts > 0,
                                           .output = output,
                                           .explain_end = launched_explain};
    int exit_code = -1;
    assert_ok(launch_local_ranks(&options, &exit_code, &err), &err);
    return exit_code;
}

static volatile sig_atomic_t got;

void launched_on_signal(int number)
{
    got = number;
}

int launched_pause_until_signal(void)
{
    while (!got)
        usleep(2000);
    return got;
}

void launched_leave_word(const char *file, const char *text)
{
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ssize_t n = write(fd, text, strlen(text));
    close(fd);
    if (n != (ssize_t)strlen(text))
        abort();
}

void launched_wait_for_words(const char *file, off_t bytes)
{
    support_wait_until(launched_size(file) >= bytes);
}

int launched_number(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : -1;
}
