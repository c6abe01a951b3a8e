#include "cli/local_runs.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/inbox.h"

enum { RUNS_MAX = 256, PATIENCE_MS = 1000, QUESTION_MAX_BYTES = 128 };

/* A question that was asked, and what has come of it. */
struct asking {
    int fd;
    char token[INBOX_TOKEN_BYTES]; /* an answer has it: others may send to this socket, too */
    size_t asked;
    struct arena *arena;
    struct job_list jobs;
};

/* Whose socket it is: others could have a run of any name there. */
static bool is_ours(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == getuid();
}

static void ask(struct asking *asking, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char question[QUESTION_MAX_BYTES];
    if (strlen(path) >= sizeof address.sun_path || !is_ours(path) || asking->asked == RUNS_MAX)
        return;
    memcpy(address.sun_path, path, strlen(path) + 1);
    snprintf(question, sizeof question, "{\"" INBOX_ASK "\":\"%s\"}", asking->token);
    /* One that was killed leaves its socket behind: nobody is there. */
    if (sendto(asking->fd, question, strlen(question), MSG_NOSIGNAL | MSG_DONTWAIT,
               (struct sockaddr *)&address, sizeof address) > 0)
        asking->asked++;
}

static void ask_all(struct asking *asking, const char *base)
{
    DIR *directory = opendir(base);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (str_starts_with(entry->d_name, INBOX_FOLDER_PREFIX)) {
            auto_free char *path = xasprintf("%s/%s/" INBOX_SOCKET, base, entry->d_name);
            ask(asking, path);
        }
    if (directory)
        closedir(directory);
}

/* Where a run that was started here has its folder, whether it could write to the first or not. */
static void ask_everywhere(struct asking *asking)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
    temporary = temporary ? temporary : "/tmp";
    if (runtime && *runtime)
        ask_all(asking, runtime);
    if (!runtime || strcmp(runtime, temporary) != 0)
        ask_all(asking, temporary);
}

static void take_answer(struct asking *asking, const char *text, size_t bytes)
{
    struct json *answer = json_parse(text, bytes, JSON_STRICT, NULL);
    const char *token = json_as_text(json_get(answer, INBOX_ASK));
    if (token && strcmp(token, asking->token) == 0 && asking->jobs.count < asking->asked)
        asking->jobs.items[asking->jobs.count++] =
            job_facts_read(json_get(answer, INBOX_ANSWER), clock_now_ms(), asking->arena);
    json_free(answer);
}

static int wait_for_answers(struct asking *asking, int stop_fd, struct error *err)
{
    auto_free char *text = xmalloc(INBOX_ANSWER_MAX_BYTES);
    int64_t end_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (asking->jobs.count < asking->asked) {
        struct pollfd fds[] = {{.fd = asking->fd, .events = POLLIN},
                               {.fd = stop_fd, .events = POLLIN}};
        int64_t left_ms = clock_until_ms(end_ms, clock_monotonic_ms());
        if (left_ms == 0 || (poll(fds, 2, (int)left_ms) < 0 && errno != EINTR))
            break;
        if (fds[1].revents)
            return error_set(err, ERR_CANCELLED, "stopped");
        ssize_t count = recv(asking->fd, text, INBOX_ANSWER_MAX_BYTES, MSG_DONTWAIT);
        if (count > 0)
            take_answer(asking, text, (size_t)count);
    }
    return 0;
}

int local_runs_jobs(int stop_fd, struct arena *arena, struct job_list *ret_jobs, struct error *err)
{
    uint64_t number;
    struct asking asking = {.arena = arena};
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    /* Bound to no name, it gets one of its own (autobind, unix(7)): the answer needs an address. */
    if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof any.sun_family) < 0)
        return error_errno(err, errno, "make a socket");
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return error_errno(err, errno, "getrandom");
    asking.fd = fd;
    snprintf(asking.token, sizeof asking.token, "%016" PRIx64, number);
    asking.jobs.items = arena_array(arena, struct job_facts, RUNS_MAX);
    ask_everywhere(&asking);
    if (wait_for_answers(&asking, stop_fd, err) < 0)
        return -1;
    *ret_jobs = asking.jobs;
    return 0;
}
