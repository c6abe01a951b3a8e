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
#include "base/nearest.h"
#include "cli/inbox.h"
#include "cli/run_answer.h"

enum {
    RUNS_MAX = 256,
    PATIENCE_MS = 1000,
    QUESTION_MAX_BYTES = 128,
    NAMES_MAX_BYTES = 256 * 300,
};

/* A question that was asked, and what has come of it. */
struct asking {
    int fd;
    char token[INBOX_TOKEN_BYTES]; /* an answer has it: others may send to this socket, too */
    size_t asked, answered;
    struct json *answers[RUNS_MAX]; /* ours */
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
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = inbox_temporary();
    if (runtime && *runtime)
        ask_all(asking, runtime);
    if (!runtime || strcmp(runtime, temporary) != 0)
        ask_all(asking, temporary);
}

static void take_answer(struct asking *asking, const char *text, size_t bytes)
{
    struct json *answer = json_parse(text, bytes, JSON_STRICT, NULL);
    const char *token = json_as_text(json_get(answer, INBOX_ASK));
    if (token && strcmp(token, asking->token) == 0 && asking->answered < asking->asked)
        asking->answers[asking->answered++] = answer;
    else
        json_free(answer);
}

static int wait_for_answers(struct asking *asking, int stop_fd, struct error *err)
{
    auto_free char *text = xmalloc(INBOX_ANSWER_MAX_BYTES);
    int64_t end_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (asking->answered < asking->asked) {
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

static void forget(struct asking *asking)
{
    for (size_t i = 0; i < asking->answered; i++)
        json_free(asking->answers[i]);
}

/* Asks all of them; forget() it, whatever it returns. */
static int ask_runs(struct asking *asking, int stop_fd, struct error *err)
{
    uint64_t number;
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *asking = (struct asking){.fd = fd};
    /* Bound to no name, it gets one of its own (autobind, unix(7)): the answer needs an address. */
    if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof any.sun_family) < 0)
        return error_errno(err, errno, "make a socket");
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return error_errno(err, errno, "getrandom");
    snprintf(asking->token, sizeof asking->token, "%016" PRIx64, number);
    ask_everywhere(asking);
    return wait_for_answers(asking, stop_fd, err);
}

int local_runs_jobs(int stop_fd, struct arena *arena, struct job_list *ret_jobs, struct error *err)
{
    struct asking asking;
    int result = ask_runs(&asking, stop_fd, err);
    struct job_list jobs = {.items = arena_array(arena, struct job_facts, RUNS_MAX)};
    for (size_t i = 0; result == 0 && i < asking.answered; i++)
        jobs.items[jobs.count++] =
            job_facts_read(json_get(asking.answers[i], INBOX_ANSWER), clock_now_ms(), arena);
    forget(&asking);
    *ret_jobs = jobs;
    return result;
}

/* ---- one of them ---- */

static int no_run(const struct asking *asking, const struct local_runs_query *query,
                  struct arena *arena, struct error *err)
{
    auto_str struct str names;
    str_init(&names, NAMES_MAX_BYTES);
    for (size_t i = 0; i < asking->answered; i++) {
        const struct job_facts job =
            job_facts_read(json_get(asking->answers[i], INBOX_ANSWER), 0, arena);
        if (strcmp(job.name, query->name) != 0) /* else it is the namespace that is another */
            str_printf(&names, " %s", job.name);
    }
    struct nearest_note note = nearest_note(query->name, str_text(&names), " ");
    return error_set(err, ERR_INPUT,
                     "no `shoal run` of a job %.80s%s%s%.80s on this machine, which has %zu; "
                     "`shoal top --local` lists all",
                     query->name, note.text, query->namespace_ ? " in namespace " : "",
                     query->namespace_ ? query->namespace_ : "", asking->answered);
}

static bool is_asked_for(const struct job_facts *job, const struct local_runs_query *query)
{
    return strcmp(job->name, query->name) == 0 &&
           (!query->namespace_ || strcmp(job->namespace_, query->namespace_) == 0);
}

/* The one that began last: a run of the same name may hang about. */
static const struct json *choose(const struct asking *asking, const struct local_runs_query *query,
                                 struct arena *arena, size_t *ret_count)
{
    const struct json *chosen = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < asking->answered; i++) {
        const struct job_facts job =
            job_facts_read(json_get(asking->answers[i], INBOX_ANSWER), 0, arena);
        if (!is_asked_for(&job, query))
            continue;
        ++*ret_count;
        if (!chosen || run_answer_began_ms(asking->answers[i]) > run_answer_began_ms(chosen))
            chosen = asking->answers[i];
    }
    return chosen;
}

int local_runs_story(const struct local_runs_query *query, struct arena *arena,
                     struct job_facts *ret_job, struct story *ret_story, size_t *ret_count,
                     struct error *err)
{
    struct asking asking;
    int result = ask_runs(&asking, -1, err);
    if (result == 0) {
        const struct json *chosen = choose(&asking, query, arena, ret_count);
        if (chosen)
            run_answer_read(chosen, clock_now_ms(), arena, ret_job, ret_story);
        else
            result = no_run(&asking, query, arena, err);
    }
    forget(&asking);
    return result;
}
