/* NCCL's RAS as a client meets it: a server of our own that speaks its protocol, one that stops
 * half way, and ones that speak something else. */
#include "tests/support.h"

#include "agent/health/nccl_ras.h"
#include "agent/health/rank_health.h"
#include "base/listen.h"
#include "base/mem.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWERS = 3, STATUS_LINES = 4000 };

struct server {
    const char *const *answers; /* [ANSWERS], to the lines as they come; NULL: it hangs up */
    bool stays;                 /* it says no more, and does not hang up */
    int listener;
    int told[2]; /* a pipe: closed when the client is done */
    char address[64];
    char heard[256];
    pthread_t thread;
};

/* A line of the client's. */
static bool hear_line(int fd, char *line, size_t bytes)
{
    size_t length = 0;
    while (length < bytes - 1 && recv(fd, line + length, 1, 0) == 1)
        if (line[length++] == '\n')
            break;
    line[length] = '\0';
    return length > 0;
}

static void say(int fd, const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t n = send(fd, text, left, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the client has enough */
        text += n;
        left -= (size_t)n;
    }
}

static void *serve(void *arg)
{
    struct server *s = arg;
    char line[100], byte;
    int fd = accept(s->listener, NULL, NULL);
    for (int i = 0; i < ANSWERS && s->answers[i] && hear_line(fd, line, sizeof line); i++) {
        strcat(s->heard, line);
        say(fd, s->answers[i]);
    }
    if (s->stays)
        (void)!read(s->told[0], &byte, 1);
    close(fd);
    return NULL;
}

static void server_open(struct server *s, const char *const answers[ANSWERS], bool stays)
{
    struct error err;
    *s = (struct server){.answers = answers, .stays = stays};
    assert_ok(listen_tcp("127.0.0.1", 0, &s->listener, &err), &err);
    fcntl(s->listener, F_SETFL, fcntl(s->listener, F_GETFL) & ~O_NONBLOCK);
    snprintf(s->address, sizeof s->address, "127.0.0.1:%d", listen_port(s->listener));
    assert_int_equal(pipe(s->told), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_close(struct server *s)
{
    close(s->told[1]);
    pthread_join(s->thread, NULL);
    close(s->told[0]);
    close(s->listener);
}

#define STATUS                                                                                     \
    "NCCL version 2.28.9 compiled with CUDA 13.0\n\nJob summary\n===========\n\n"                  \
    "Errors\n======\n\nINCOMPLETE\n  Missing communicator data from 1 job process\n"

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static char many_lines[STATUS_LINES * 32];

static const struct {
    const char *label, *answers[ANSWERS];
    bool stays;
    enum error_code code;
    const char *message, *begin, *end; /* of what is told */
} answers_rows[] = {
    {"well",
     {"SERVER PROTOCOL 2\n", "OK\n", STATUS},
     false,
     0,
     NULL,
     "NCCL version 2.28.9",
     "job process\n"},
    {"newer",
     {"SERVER PROTOCOL 9\n", "ok\n", STATUS},
     false,
     0,
     NULL,
     "NCCL version 2.28.9",
     "job process\n"},
    {"in pieces",
     {"SERVER PROTOCOL 2\nOK\nNCCL ", "", "version 2"},
     false,
     0,
     NULL,
     "NCCL version 2",
     "2"},
    {"control characters",
     {"SERVER PROTOCOL 2\n", "OK\n", "a\033[2J\tb\r\n\177"},
     false,
     0,
     NULL,
     "a?[2J\tb?\n?",
     "?"},
    {"endless",
     {"SERVER PROTOCOL 2\n", "OK\n", many_lines},
     true,
     0,
     NULL,
     "  Rank 0 -- ",
     "... (the rest is left out)\n"},
    {"empty", {"SERVER PROTOCOL 2\n", "OK\n", ""}, false, 0, NULL, "", ""},
    {"half",
     {"SERVER PROTOCOL 2\n", "OK\n", "NCCL ver"},
     true,
     ERR_TIMEOUT,
     "it says no more",
     "NCCL ver",
     "ver"},
    {"silent", {"", "", ""}, true, ERR_TIMEOUT, "it says no more", "", ""},
    {"half a line", {"SERVER PROT", "", ""}, true, ERR_TIMEOUT, "it says no more", "", ""},
    {"it ends early", {"SERVER PROTOCOL 2\n", NULL, NULL}, false, ERR_PEER, "", "", ""},
    {"it ends at once", {NULL, NULL, NULL}, false, ERR_PEER, "", "", ""},
    {"a web server",
     {"HTTP/1.1 400 Bad Request\r\n\r\n", NULL, NULL},
     false,
     ERR_INPUT,
     "is not NCCL's RAS",
     "",
     ""},
    {"a line without end",
     {X64 X64 X64 X64 X64, NULL, NULL},
     false,
     ERR_INPUT,
     "is not NCCL's RAS",
     "",
     ""},
    {"a command it lacks",
     {"SERVER PROTOCOL 2\n", "ERROR: Unknown command\n", NULL},
     false,
     ERR_INPUT,
     "is not NCCL's RAS",
     "",
     ""},
};

static void test_answers(void **state)
{
    (void)state;
    enum { SOON_MS = 1500 };
    for (size_t i = 0, at = 0; i < STATUS_LINES; i++)
        at += (size_t)sprintf(many_lines + at, "  Rank %zu -- GPU 0\n", i);
    for (size_t i = 0; i < array_length(answers_rows); i++) {
        struct server s;
        struct error err = {.code = ERR_NONE};
        auto_str struct str out;
        str_init(&out, 2 * NCCL_RAS_TEXT_BYTES);
        server_open(&s, answers_rows[i].answers, answers_rows[i].stays);
        int wait_ms = answers_rows[i].code == ERR_TIMEOUT ? SOON_MS : SUPPORT_PATIENCE_MS;
        int result = nccl_ras_ask(s.address, wait_ms, &out, &err);
        server_close(&s);
        const char *text = str_text(&out);
        size_t length = strlen(text), end = strlen(answers_rows[i].end);
        bool is_told = str_starts_with(text, answers_rows[i].begin) && length >= end &&
                       strcmp(text + length - end, answers_rows[i].end) == 0 &&
                       length < NCCL_RAS_TEXT_BYTES + 100;
        bool is_right =
            answers_rows[i].code == ERR_NONE
                ? result == 0
                : support_is_error(result, &err, answers_rows[i].code, answers_rows[i].message);
        if (!is_told || !is_right)
            fail_msg("%s: %d, %s: '%.200s'", answers_rows[i].label, result, err.msg, text);
        if (i == 0)
            assert_string_equal(s.heard, "CLIENT PROTOCOL 2\nTIMEOUT 4\nVERBOSE STATUS\n");
    }
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "", "localhost", "localhost:", ":28028", "localhost:0", "[]:1", "localhost:70000", "a:b"};
    struct error err;
    auto_str struct str out;
    str_init(&out, 100);
    for (size_t i = 0; i < array_length(rows); i++)
        assert_fails(nccl_ras_ask(rows[i], 1, &out, &err), &err, ERR_CONFIG, "is not HOST:PORT");
    static const char *const answers[ANSWERS] = {NULL};
    struct server s;
    server_open(&s, answers, false);
    nccl_ras_ask(s.address, SUPPORT_PATIENCE_MS, &out, &err);
    server_close(&s);
    /* nobody listens there any more */
    assert_fails(nccl_ras_ask(s.address, SUPPORT_PATIENCE_MS, &out, &err), &err, ERR_IO, "connect");
}

/* ---- the rank that hangs ---- */

static int64_t clock_ms;

static int64_t now(void)
{
    return clock_ms;
}

static bool yes(void)
{
    return true;
}

static bool no(void)
{
    return false;
}

/* Rank 1 waits in a collective for rank 0, which stands still. */
static void hang(const struct rank_health_setting *setting)
{
    struct rank_health *h = rank_health_open(setting);
    const struct rendezvous_health functions = rank_health_rendezvous(h);
    for (int s = 0; s < 10; s++) {
        struct rendezvous_inspection ignored;
        char text[STORE_VALUE_MAX];
        const struct rank_report slow = {
            .step = 9, .phase = RANK_STEP, .passed = ~0u, .entered = 9, .ended = 9};
        const struct rank_report other = {.step = 9, .phase = RANK_STEP, .entered = 10, .ended = 9};
        rank_report_write(&slow, text, sizeof text);
        functions.hear(functions.ctx, 0, "", text);
        rank_report_write(&other, text, sizeof text);
        functions.hear(functions.ctx, 1, "", text);
        clock_ms += 1000;
        functions.tick(functions.ctx, &ignored);
    }
    rank_health_close(h);
}

static void test_it_is_asked_about_a_rank_that_hangs(void **state)
{
    (void)state;
    static const char *const well[ANSWERS] = {"SERVER PROTOCOL 2\n", "OK\n", STATUS};
    static const char *const other[ANSWERS] = {"SSH-2.0-OpenSSH_9.2\r\n", NULL, NULL};
    static const struct {
        const char *const *answers;
        bool (*uses_nccl)(void);
        const char *told;
    } rows[] = {
        {well, yes, ") says of its processes:\nNCCL version 2.28.9"},
        {other, yes, "was asked about the rank that hangs: what listens there is not NCCL's RAS"},
        {well, no, NULL},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        static char text[65536];
        struct server s;
        server_open(&s, rows[i].answers, false);
        const struct rank_health_setting setting = {.ranks = 2,
                                                    .host = "",
                                                    .pod = "",
                                                    .hang_action = HANG_REPORT,
                                                    .ras_address = s.address,
                                                    .uses_nccl = rows[i].uses_nccl,
                                                    .beat_ms = 1000,
                                                    .steady_ms = now,
                                                    .wall_ms = now};
        support_stderr_begin();
        hang(&setting);
        support_stderr_end(text, sizeof text);
        assert_non_null(strstr(text, "hangs in phase step"));
        if (rows[i].told)
            assert_non_null(strstr(text, rows[i].told));
        else
            assert_null(strstr(text, "RAS"));
        if (!rows[i].told) { /* nobody came: let the server go */
            struct error ignored;
            auto_str struct str out;
            str_init(&out, 2 * NCCL_RAS_TEXT_BYTES);
            nccl_ras_ask(s.address, SUPPORT_PATIENCE_MS, &out, &ignored);
        }
        server_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_it_is_asked_about_a_rank_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
