#include "tests/support.h"

#include "base/httpd_pages.h"

/* Whether the page is late at now_ms. */
static bool is_late(struct httpd_pages *pages, const char *path, int64_t now_ms)
{
    bool late;
    struct httpd_page *page = httpd_pages_acquire(pages, path, now_ms, &late);
    assert_non_null(page);
    httpd_pages_release(pages, page);
    return late;
}

static void what_is_expected_must_come_in_time(void **state)
{
    (void)state;
    struct httpd_pages *pages = httpd_pages_open();
    httpd_pages_put(pages, "/healthz", 200, "text/plain", "ok", 2, 1000);
    httpd_pages_put(pages, "/readyz", 200, "text/plain", "ok", 2, 1000);
    assert_false(is_late(pages, "/healthz", 1 << 30)); /* nobody expects it yet */
    httpd_pages_expect(pages, "/healthz", 500, 2000);
    assert_false(is_late(pages, "/healthz", 2500));
    assert_true(is_late(pages, "/healthz", 2501));
    httpd_pages_put(pages, "/healthz", 200, "text/plain", "ok", 2, 3000);
    assert_false(is_late(pages, "/healthz", 3500));
    assert_true(is_late(pages, "/healthz", 3501));
    assert_false(is_late(pages, "/readyz", 1 << 30));
    httpd_pages_close(pages);
}

static void what_was_taken_stays_as_it_was(void **state)
{
    (void)state;
    bool late;
    struct httpd_pages *pages = httpd_pages_open();
    httpd_pages_put(pages, "/a", 200, "text/plain", "old", 3, 0);
    struct httpd_page *page = httpd_pages_acquire(pages, "/a", 0, &late);
    httpd_pages_put(pages, "/a", 500, "text/html", "new", 3, 0);
    assert_int_equal(page->status, 200);
    assert_memory_equal(page->body, "old", 3);
    httpd_pages_release(pages, page);
    assert_null(httpd_pages_acquire(pages, "/b", 0, &late));
    httpd_pages_close(pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_expected_must_come_in_time),
        cmocka_unit_test(what_was_taken_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
