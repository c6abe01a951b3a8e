/* `shoal top` against a played API server: what it asks and prints, and a terminal with keys. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/top.h"
#include "tests/cli/command.h"

#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ALL  "GET /apis/kubeflow.org/v1/pytorchjobs?"
#define TEAM "GET /apis/kubeflow.org/v1/namespaces/team/pytorchjobs?"
#define JOB(name, namespace, step)                                                                                               \
    "{\"metadata\":{\"name\":\"" name                                                                                            \
    "\",\"namespace\":\"" namespace "\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":" \
                                    "{\"replicas\":1,\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":"   \
                                    "\"i\"}]}}}}},\"status\":{\"conditions\":[{\"type\":\"Running\",\"status\":\"True\"}],"      \
                                    "\"training\":{\"step\":" step ",\"steps\":100}}}"
#define LIST(items)                                                                                \
    "{\"kind\":\"PyTorchJobList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" items "]}"
#define FORBIDDEN(start)                                                                           \
    {                                                                                              \
        .bytes = API_TEXT("403 Forbidden", "",                                                     \
                          "{\"reason\":\"Forbidden\",\"message\":\"not for you\"}"),               \
        .then = FAKE_CLOSE, .to = start                                                            \
    }
#define ARGUMENTS(...)                                                                             \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static const struct fake_answer two_jobs[] = {
    COMMAND_ANSWER(ALL, LIST(JOB("ann", "team", "10") "," JOB("bob", "other", "90"))),
};

static void contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in: %s", part, text);
}

static void it_prints_a_table_where_no_terminal_is(void **state)
{
    struct fake_server *server = fake_server_open(two_jobs, 1, NULL);
    command_use_server(*state, fake_server_port(server));
    struct command_result result =
        command_run_with(top_command, ARGUMENTS("--sort", "step", "-l", "tier!=x,a=b"));
    assert_string_equal(result.err, "");
    assert_int_equal(result.code, 0);
    assert_string_equal(
        result.out,
        "NAME  NAMESPACE  STATE    PROGRESS        STEP  LOSS  SPEED  ETA  GPUS  GOODPUT  RESTARTS  AGE\n"
        "bob   other      Running  [#########-]  90/100     -      -    -     0        -         0    -\n"
        "ann   team       Running  [#---------]  10/100     -      -    -     0        -         0    -\n");
    command_forget(&result);
    auto_free char *asked = fake_server_request(server, 0);
    contains(asked, "?labelSelector=tier%21%3Dx%2Ca%3Db&limit=500 HTTP/1.1\r\n");

    result = command_run_with(top_command, ARGUMENTS("--filter", "nobody"));
    assert_int_equal(result.code, 0);
    assert_string_equal(result.out, "");
    assert_string_equal(result.err, "shoal top: no such jobs in any namespace\n");
    command_forget(&result);
    fake_server_close(server);
}

static void it_prints_json(void **state)
{
    struct fake_server *server = fake_server_open(two_jobs, 1, NULL);
    command_use_server(*state, fake_server_port(server));
    struct command_result result = command_run_with(top_command, ARGUMENTS("--json"));
    assert_int_equal(result.code, 0);
    struct json *value = json_parse_text(result.out, JSON_STRICT, NULL);
    const struct json *jobs = json_get(value, "jobs");
    assert_int_equal(json_array_count(jobs), 2);
    assert_string_equal(json_as_text(json_get(json_at(jobs, 0), "name")), "bob");
    assert_int_equal(json_as_integer(json_get(json_get(json_at(jobs, 1), "training"), "steps")),
                     100);
    json_free(value);
    command_forget(&result);
    fake_server_close(server);
}

/* The first page names the second; the token goes back as it came. */
static void it_reads_all_pages(void **state)
{
    static const struct fake_answer pages[] = {
        COMMAND_ANSWER(ALL "limit=500&continue=n%2Bx", LIST(JOB("bob", "other", "90"))),
        COMMAND_ANSWER(
            ALL, "{\"metadata\":{\"continue\":\"n+x\"},\"items\":[" JOB("ann", "team", "10") "]}"),
    };
    struct fake_server *server = fake_server_open(pages, array_length(pages), NULL);
    command_use_server(*state, fake_server_port(server));
    struct command_result result = command_run_with(top_command, ARGUMENTS("--once"));
    assert_string_equal(result.err, "");
    contains(result.out, "\nbob ");
    contains(result.out, "\nann ");
    assert_int_equal(fake_server_request_count(server), 2);
    command_forget(&result);
    fake_server_close(server);
}

/* What each page names another one after, forever, is an error. */
static void a_list_without_end_ends(void **state)
{
    static const struct fake_answer again[] = {
        {.bytes = FAKE_OK(40, "{\"metadata\":{\"continue\":\"x\"},\"items\":[]}")}};
    struct fake_server *server = fake_server_open(again, array_length(again), NULL);
    command_use_server(*state, fake_server_port(server));
    struct command_result result = command_run_with(top_command, ARGUMENTS("--once"));
    assert_int_equal(result.code, 2);
    contains(result.err, "the list /apis/kubeflow.org/v1/pytorchjobs has no end");
    assert_int_equal(fake_server_request_count(server), 2000);
    command_forget(&result);
    fake_server_close(server);
}

static void it_narrows_to_what_one_may_read(void **state)
{
    static const struct fake_answer answers[] = {
        FORBIDDEN(ALL), COMMAND_ANSWER(TEAM, LIST(JOB("ann", "team", "10")))};
    struct fake_server *server = fake_server_open(answers, array_length(answers), NULL);
    command_use_server(*state, fake_server_port(server));
    struct command_result result = command_run_with(top_command, ARGUMENTS("--once"));
    assert_int_equal(result.code, 0);
    assert_string_equal(result.err, "shoal top: note: only namespace team: you may not read all\n");
    contains(result.out, "NAME  STATE ");
    contains(result.out, "\nann   Running ");
    command_forget(&result);

    result = command_run_with(top_command, ARGUMENTS("-A"));
    assert_int_equal(result.code, 2);
    contains(result.err, "not for you (403 Forbidden)\nshoal top: ask for the role");
    command_forget(&result);
    fake_server_close(server);
}

static void a_command_line_is_checked_first(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[4], *said;
    } rows[] = {
        {{"-A", "-n", "x"}, "shoal top: -A and -n x: give one of them\n"},
        {{"--local", "-n", "x"}, "shoal top: --local is of no cluster: drop -A, -n, -l, "},
        {{"-l", ""}, "shoal top: --selector and --filter: must not be empty\n"},
        {{"--sort", "size"},
         "shoal top: --sort size: must be one of name age step eta goodput gpus restarts\n"},
        {{"--interval", "0"}, "--interval 0: must be a whole number from 1 to 3600\n"},
        {{"llm"}, "shoal top: unknown argument llm; there are"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct command_result result = command_run_with(top_command, rows[i].arguments);
        assert_int_equal(result.code, 2);
        contains(result.err, rows[i].said);
        command_forget(&result);
    }
    struct command_result help = command_run_with(top_command, ARGUMENTS("--help"));
    assert_int_equal(help.code, 0);
    contains(help.out, "Usage: shoal top [OPTION...]\n");
    command_forget(&help);
}

/* ---- on a terminal ---- */

struct watched {
    pid_t process;
    int terminal;
    int go[2]; /* a pipe: it waits for a byte */
    struct str seen;
};

/* A process with a terminal of its own. It is made before the server has threads, of which a fork
 * would leave half. */
static void prepare(struct watched *watched)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    str_init(&watched->seen, 1 << 20);
    assert_int_equal(pipe(watched->go), 0);
    fflush(stdout);
    watched->process = forkpty(&watched->terminal, NULL, NULL, &size);
    assert_true(watched->process >= 0);
    if (watched->process == 0) {
        char byte, *argv[] = {"top", "--interval", "1", "--kubeconfig", "config"};
        setenv("TERM", "xterm", 1);
        if (read(watched->go[0], &byte, 1) != 1)
            _exit(99);
        exit(top_command((int)array_length(argv), argv));
    }
}

static void start(const struct watched *watched)
{
    assert_int_equal(write(watched->go[1], "!", 1), 1);
}

/* Reads until it has shown this, and forgets what was before. */
static void wait_for(struct watched *watched, const char *part)
{
    char bytes[4096];
    const char *found;
    while (!(found = strstr(str_text(&watched->seen), part))) {
        ssize_t count = read(watched->terminal, bytes, sizeof bytes);
        if (count <= 0)
            fail_msg("it ended without \"%s\": %s", part, str_text(&watched->seen));
        str_add_bytes(&watched->seen, bytes, (size_t)count);
    }
    auto_free char *rest = xstrdup(found + strlen(part));
    str_clear(&watched->seen);
    str_add(&watched->seen, rest);
}

static int end_of(struct watched *watched)
{
    int status;
    assert_int_equal(waitpid(watched->process, &status, 0), watched->process);
    close(watched->terminal);
    close(watched->go[0]);
    close(watched->go[1]);
    str_free(&watched->seen);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void keys_and_news_on_a_terminal(void **state)
{
    static const struct fake_answer answers[] = {
        {.bytes =
             API_TEXT("200 OK", "", LIST(JOB("ann", "team", "10") "," JOB("bob", "team", "90"))),
         .then = FAKE_CLOSE},
        {.bytes = API_TEXT("400 Bad Request", "", "{\"message\":\"not now\"}"), .then = FAKE_CLOSE},
        {.bytes = API_TEXT("200 OK", "", LIST(JOB("eve", "team", "11"))), .then = FAKE_CLOSE},
    };
    struct watched watched, other;
    auto_free char *here = getcwd(NULL, 0);
    assert_int_equal(chdir(*state), 0);
    prepare(&watched);
    prepare(&other);
    struct fake_server *server = fake_server_open(answers, array_length(answers), NULL);
    command_use_server(*state, fake_server_port(server));
    start(&watched);
    wait_for(&watched, "\033[?1049h");
    wait_for(&watched, "2 jobs: 2 Running");
    wait_for(&watched, "by name  q: quit");
    wait_for(&watched, "\nann ");
    wait_for(&watched, "\nbob ");
    assert_int_equal(write(watched.terminal, "r", 1), 1);
    wait_for(&watched, "by name, reversed");
    assert_int_equal(write(watched.terminal, "ss", 2), 2);
    wait_for(&watched, "by step, reversed");
    wait_for(&watched, "no news for ");
    wait_for(&watched, "not now (400)");
    wait_for(&watched, "\nann "); /* what was known stays */
    wait_for(&watched, "1 job: 1 Running");
    wait_for(&watched, "\neve ");
    assert_int_equal(write(watched.terminal, "q", 1), 1);
    wait_for(&watched, "\033[?1049l");
    assert_int_equal(end_of(&watched), 0);

    start(&other); /* Ctrl-C leaves the terminal as it was, too */
    wait_for(&other, "\neve ");
    assert_int_equal(write(other.terminal, "\003", 1), 1);
    wait_for(&other, "\033[?25h\033[?1049l");
    assert_int_equal(end_of(&other), 128 + SIGINT);
    fake_server_close(server);
    assert_int_equal(chdir(here), 0);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, command_enter, command_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(it_prints_a_table_where_no_terminal_is),
        IN_DIRECTORY(it_prints_json),
        IN_DIRECTORY(it_reads_all_pages),
        IN_DIRECTORY(a_list_without_end_ends),
        IN_DIRECTORY(it_narrows_to_what_one_may_read),
        IN_DIRECTORY(a_command_line_is_checked_first),
        IN_DIRECTORY(keys_and_news_on_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
