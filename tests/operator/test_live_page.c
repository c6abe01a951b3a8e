/* The live page over a real socket: its files, what it may load, and who is turned away. */
#include "tests/support.h"

#include "base/httpd.h"
#include "base/listen.h"
#include "base/mem.h"
#include "base/page.h"
#include "base/str.h"
#include "operator/live_page.h"
#include "tests/free_port.h"
#include "tests/operator/page.h"

#include <string.h>

enum { PAGE_BYTES_MAX = 100 * 1000 };

struct fixture {
    int port;
    struct board *board;
    struct live_page *page;
};

static void open_fixture(struct fixture *f)
{
    struct error err;
    f->port = free_port();
    auto_free char *address = xasprintf("127.0.0.1:%d", f->port);
    f->board = board_open(&clocks_system);
    assert_ok(live_page_open(&f->page, address, f->board, &err), &err);
}

static void close_fixture(struct fixture *f)
{
    live_page_close(f->page);
    board_close(f->board);
}

/* The answer to a GET that names this machine, with a header more. */
static char *get(const struct fixture *f, const char *path, const char *header)
{
    return page_ask(f->port, "GET", path, "127.0.0.1", header);
}

static const char *body_of(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");
    assert_non_null(end);
    return end + strlen("\r\n\r\n");
}

static const char *const files[] = {"/",
                                    "/page/page.css",
                                    "/page/icon.svg",
                                    "/page/main.js",
                                    "/page/table.js",
                                    "/page/job.js",
                                    "/page/chart.js",
                                    "/page/text.js"};

/* Small, and free of what would run a text or ask another host. */
static void the_files_are_small_and_harmless(void **state)
{
    (void)state;
    static const char *const forbidden[] = {
        "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(",
        " style=",   "<style",    " onclick=\"",        "https://",       "//cdn", "@import",
        "url(",      "srcdoc",    "importScripts",      "javascript:",
    };
    struct fixture f;
    size_t all = 0;
    open_fixture(&f);
    for (size_t i = 0; i < array_length(files); i++) {
        auto_free char *answer = get(&f, files[i], "");
        const char *text = body_of(answer);
        assert_memory_equal(answer, "HTTP/1.1 200", strlen("HTTP/1.1 200"));
        assert_true(strlen(text) > 50);
        all += strlen(text);
        for (size_t w = 0; w < array_length(forbidden); w++)
            if (strstr(text, forbidden[w]))
                fail_msg("%s has %s", files[i], forbidden[w]);
        /* the one address is a name, and nobody asks there */
        for (const char *at = text; (at = strstr(at, "http://")); at++)
            assert_memory_equal(at, "http://www.w3.org/2000/svg",
                                strlen("http://www.w3.org/2000/svg"));
    }
    assert_in_range(all, 10000, PAGE_BYTES_MAX);
    close_fixture(&f);
}

/* Each file that another one names is served. */
static void the_files_find_each_other(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    auto_free char *index = get(&f, "/", "");
    for (size_t i = 1; i < array_length(files); i++) {
        const char *name = strrchr(files[i], '/') + 1;
        bool is_named = strstr(index, files[i] + 1);
        for (size_t from = 1; from < array_length(files) && !is_named; from++) {
            auto_free char *text = get(&f, files[from], ""), *import = xasprintf("'./%s'", name);
            is_named = strstr(text, import);
        }
        if (!is_named)
            fail_msg("nobody loads %s", files[i]);
    }
    close_fixture(&f);
}

static void types_and_guards_are_sent(void **state)
{
    (void)state;
    static const struct {
        const char *path, *type;
    } rows[] = {
        {"/", "text/html; charset=utf-8"},
        {"/page/page.css", "text/css; charset=utf-8"},
        {"/page/main.js", "text/javascript; charset=utf-8"},
        {PAGE_JOBS_PATH, "application/json"},
    };
    struct fixture f;
    open_fixture(&f);
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *answer = get(&f, rows[i].path, "");
        auto_free char *type = xasprintf("content-type: %s\r\n", rows[i].type);
        assert_non_null(strstr(answer, type));
        assert_non_null(strstr(answer, "content-security-policy: default-src 'none'; script-src "
                                       "'self'; style-src 'self'; connect-src 'self'"));
        assert_non_null(strstr(answer, "x-content-type-options: nosniff\r\n"));
    }
    close_fixture(&f);
}

static void strangers_are_turned_away(void **state)
{
    (void)state;
    static const char upgrade[] = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                                  "Sec-WebSocket-Version: 13\r\n"
                                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    struct fixture f;
    open_fixture(&f);
    auto_free char *own = xasprintf("%sOrigin: http://127.0.0.1\r\n", upgrade);
    auto_free char *foreign = xasprintf("%sOrigin: http://evil.example\r\n", upgrade);
    const struct {
        const char *method, *path, *host, *header, *status;
    } rows[] = {
        {"GET", PAGE_JOBS_PATH, "127.0.0.1", "", "200"},
        {"HEAD", PAGE_JOBS_PATH, "127.0.0.1", "", "200"},
        {"GET", PAGE_JOBS_PATH, "evil.example", "", "403"}, /* DNS rebinding */
        {"GET", "/", "evil.example", "", "403"},
        {"POST", PAGE_JOBS_PATH, "127.0.0.1", "Content-Length: 0\r\n", "405"},
        {"DELETE", PAGE_JOBS_PATH "/ns/a", "127.0.0.1", "", "405"},
        {"GET", PAGE_JOBS_PATH "/ns/a", "127.0.0.1", "", "404"},
        {"GET", "/metrics", "127.0.0.1", "", "404"},
        {"GET", PAGE_LIVE_PATH, "127.0.0.1", foreign, "403"},
        {"GET", PAGE_LIVE_PATH, "evil.example", own, "403"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *answer =
            page_ask(f.port, rows[i].method, rows[i].path, rows[i].host, rows[i].header);
        if (strncmp(answer + strlen("HTTP/1.1 "), rows[i].status, 3) != 0)
            fail_msg("row %zu: %s", i, answer);
    }
    close_fixture(&f);
}

static void nothing_is_served_at_0(void **state)
{
    (void)state;
    struct error err;
    struct live_page *page;
    assert_ok(live_page_open(&page, "0", NULL, &err), &err);
    assert_null(page);
    live_page_send(page, 1);
    live_page_close(page);
    auto_close int fd = -1;
    assert_ok(listen_tcp("127.0.0.1", 0, &fd, &err), &err);
    auto_free char *taken = xasprintf("127.0.0.1:%d", listen_port(fd));
    assert_fails(live_page_open(&page, taken, NULL, &err), &err, ERR_EXISTS, "--ui-bind-address");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_are_small_and_harmless),
        cmocka_unit_test(the_files_find_each_other),
        cmocka_unit_test(types_and_guards_are_sent),
        cmocka_unit_test(strangers_are_turned_away),
        cmocka_unit_test(nothing_is_served_at_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
