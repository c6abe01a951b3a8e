/* The list-and-watch machine: what it asks for after what it is given. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/kube/watch.h"
#include "tests/operator/kube/watch_script.h"

#include <string.h>

#define WATCH      "STREAM /pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion="
#define ITEM(name) "{\"metadata\":{\"name\":\"" name "\"}}"
#define LISTED     "next; page a,b 5; next; "
/* five lists that are refused, and what is said then */
#define REFUSED   "next; list forbidden; wait; "
#define REFUSED_5 REFUSED REFUSED REFUSED REFUSED REFUSED
#define AGAIN_5   "next; error 410; " REFUSED_5
#define LIST_5                                                                                     \
    "LIST /pods?limit=2 LIST /pods?limit=2 LIST /pods?limit=2 LIST /pods?limit=2 "                 \
    "LIST /pods?limit=2 "
/* pages whose token has expired, in two lists */
#define EXPIRED       "next; page a,b 5 t1; next; list gone; "
#define EXPIRED_TWICE EXPIRED EXPIRED "failing; next; wait; next; "
#define SAID_EXPIRED  "LIST /pods?limit=2 begin +a +b LIST /pods?limit=2&continue=t1 "
#define SAID_TWICE    SAID_EXPIRED SAID_EXPIRED "since 1: gone waits LIST /pods?limit=0 "
#define SAID          "LIST /pods?limit=2 begin +a +b end " WATCH "5 "

struct story {
    const char *name, *script, *said;
};

static const struct story stories[] = {
    {"one page, then the stream from its version", LISTED "synced; next; failing",
     SAID "synced in flight well"},
    {"pages until there is no token",
     "next; page a,b 5 t1; synced; next; page c,d 5 t2/=; next; page - 5; synced; next",
     "LIST /pods?limit=2 begin +a +b not synced LIST /pods?limit=2&continue=t1 +c +d LIST "
     "/pods?limit=2&continue=t2%2F%3D end synced " WATCH "5"},
    {"an empty list may be null",
     "next; answer {\"metadata\":{\"resourceVersion\":\"3\"},\"items\":null}; next",
     "LIST /pods?limit=2 begin end " WATCH "3"},
    {"events move the version",
     LISTED "event ADDED c 6; event MODIFIED a 7; event DELETED b 8; "
            "end good; tick 1000; next",
     SAID "+c +a -b " WATCH "8"},
    {"a bookmark moves it too", LISTED "event BOOKMARK x 9; end good; tick 1000; next",
     SAID WATCH "9"},
    {"a stream that ends is opened again, but not faster than one a backoff",
     LISTED "end good; next; tick 999; next; tick 1; next; failing",
     SAID "waits waits " WATCH "5 well"},
    {"one that has lived is opened at once", LISTED "tick 290000; end good; next", SAID WATCH "5"},
    /* failing lists */
    {"a list that fails is tried again after a backoff",
     "next; list missing; failing; next; wait; next; list timeout; failing; wait; next; page a 4; "
     "failing",
     "LIST /pods?limit=2 since 1: missing waits LIST /pods?limit=2 since 1: timeout LIST "
     "/pods?limit=2 begin +a end well"},
    {"a page that fails is tried again", "next; page a,b 5 t1; next; list timeout; wait; next",
     "LIST /pods?limit=2 begin +a +b LIST /pods?limit=2&continue=t1 LIST "
     "/pods?limit=2&continue=t1"},
    {"a token that is too old: anew, at once",
     "next; page a,b 5 t1; next; list gone; next; failing",
     "LIST /pods?limit=2 begin +a +b LIST /pods?limit=2&continue=t1 LIST /pods?limit=2 well"},
    {"too old twice in a row: not at once",
     "next; list gone; next; list gone; failing; next; wait; next; page a 4; next",
     "LIST /pods?limit=2 LIST /pods?limit=2 since 1: gone waits LIST /pods?limit=2 begin +a "
     "end " WATCH "4"},
    {"a token that is too old again: after a backoff, and as one list",
     EXPIRED_TWICE "page a,b 7; failing; next; error 410; next",
     SAID_TWICE "begin +a +b end well " WATCH "7 cancel LIST /pods?limit=2"},
    {"unless that is too large", EXPIRED_TWICE "list large; next; page a,b 8 t3; next",
     SAID_TWICE "[1 objects a page from now on: large] LIST /pods?limit=1 begin +a +b LIST "
                "/pods?limit=1&continue=t3"},
    {"a page that is too large is asked for in halves, and so is all that follows",
     "next; page a,b 5 t1; next; list large; failing; next; page c 5 t2; next; page d 5; next; "
     "error 410; next",
     "LIST /pods?limit=2 begin +a +b LIST /pods?limit=2&continue=t1 [1 objects a page from now on: "
     "large] well LIST /pods?limit=1&continue=t1 +c LIST /pods?limit=1&continue=t2 +d end " WATCH
     "5 cancel LIST /pods?limit=1"},
    {"what is too large alone is a failure",
     "next; list large; next; list large; failing; next; wait; next",
     "LIST /pods?limit=2 [1 objects a page from now on: large] LIST /pods?limit=1 since 1: large "
     "waits LIST /pods?limit=1"},
    {"whether it may list is told apart from whether it may watch",
     "refused; " REFUSED_5 REFUSED "refused; next; page a 5; refused; next; end forbidden; refused",
     "may " LIST_5 "LIST /pods?limit=2 may not LIST /pods?limit=2 begin +a end may " WATCH "5 may"},
    {"which is not believed at once", REFUSED_5 "refused; next; page a 5; " AGAIN_5 "refused",
     LIST_5 "may LIST /pods?limit=2 begin +a end " WATCH "5 cancel " LIST_5 "may"},
    {"nor forgotten over another failure",
     REFUSED_5 REFUSED "next; list timeout; refused; wait; " REFUSED "refused",
     LIST_5 "LIST /pods?limit=2 LIST /pods?limit=2 may LIST /pods?limit=2 may not"},
    {"an answer that is no list", "next; answer {\"kind\":\"Status\"}; failing; next; wait; next",
     "LIST /pods?limit=2 since 1: GET /pods: the answer is no list of objects waits LIST "
     "/pods?limit=2"},
    {"a list without version or items is none",
     "next; answer {\"items\":[]}; wait; next; answer {\"metadata\":{\"resourceVersion\":\"3\"}}; "
     "synced",
     "LIST /pods?limit=2 LIST /pods?limit=2 not synced"},
    {"an item that is no object is passed over",
     "next; answer {\"metadata\":{\"resourceVersion\":\"3\"},\"items\":[1,{}]}; next",
     "LIST /pods?limit=2 begin [an item of the list is no object] +? end " WATCH "3"},
    /* items by themselves */
    {"the items of a page may come before it",
     "next; item " ITEM("a") "; item " ITEM("b") "; page - 5 t1; next; item " ITEM(
         "c") "; item 1; page "
              "d 5; synced; next",
     "LIST /pods?limit=2 begin +a +b LIST /pods?limit=2&continue=t1 +c [an item of the list is no "
     "object] +d end synced " WATCH "5"},
    {"the next page may be sent for before this one is fed",
     "next; head t1; item " ITEM("a") "; page - 5 t1; next; head t2; item " ITEM(
         "b") "; page - 5 t2; next; head; page c 5; next",
     "LIST /pods?limit=2 ahead /pods?limit=2&continue=t1 begin +a stays in flight ahead "
     "/pods?limit=2&continue=t2 +b stays in flight ahead nothing +c end " WATCH "5"},
    {"it is in vain if this one fails, which is read again",
     "next; head t1; page a 5 t1; head t2; item " ITEM("b") "; list timeout; wait; next; head t2; "
                                                            "page b 5 t2; list timeout; wait; next",
     "LIST /pods?limit=2 ahead /pods?limit=2&continue=t1 begin +a stays ahead "
     "/pods?limit=2&continue=t2 +b LIST /pods?limit=2&continue=t1 ahead /pods?limit=2&continue=t2 "
     "+b stays LIST /pods?limit=2&continue=t2"},
    {"or if this one turns out to be the last", "next; head t1; page a 5; next",
     "LIST /pods?limit=2 ahead /pods?limit=2&continue=t1 begin "
     "+a end " WATCH "5"},
    {"if it fails then, the list begins anew, and nothing is taken for gone",
     "next; item " ITEM("a") "; list input; failing; wait; next; item " ITEM(
         "b") "; list timeout; "
              "wait; next; page c 5; next",
     "LIST /pods?limit=2 begin +a since 1: input LIST /pods?limit=2 begin +b LIST /pods?limit=2 "
     "begin +c end " WATCH "5"},
    {"but a later page is read again",
     "next; page a 5 t1; next; item " ITEM("b") "; list timeout; wait; next; item " ITEM(
         "b") "; page - "
              "5; synced",
     "LIST /pods?limit=2 begin +a LIST /pods?limit=2&continue=t1 +b LIST /pods?limit=2&continue=t1 "
     "+b end synced"},
    /* failing streams */
    {"a stream that breaks is opened again after a backoff, from where it was",
     LISTED "event ADDED c 6; end timeout; failing; next; wait; next; event ADDED d 7; failing",
     SAID "+c since 1: timeout waits " WATCH "6 +d well"},
    {"a stream that has lived for a while is well",
     LISTED "end timeout; wait; next; tick 14999; next; failing; tick 1; next; failing",
     SAID WATCH "5 in flight since 1: timeout in flight well"},
    {"what the server asks for is waited out, and it is failing meanwhile",
     "next; list timeout 7000; failing; tick 7000; next; tick 1000; next; page a 5; next; "
     "end timeout 20000; failing; tick 20000; next; failing; tick 1000; next; failing",
     "LIST /pods?limit=2 since 1: timeout waits LIST /pods?limit=2 begin +a end " WATCH
     "5 since 8001: timeout waits since 8001: timeout " WATCH "5 since 8001: timeout"},
    {"which is no stream that has lived: three in a row are three",
     LISTED "end timeout 20000; wait; next; end timeout 20000; wait; next; end timeout 20000; "
            "wait; next",
     SAID WATCH "5 " WATCH "5 LIST /pods?limit=2"},
    {"who wants a list meanwhile waits, too",
     LISTED "end timeout 20000; anew; next; anew; tick 20000; next; tick 1000; next",
     SAID "cancel waits lists waits LIST /pods?limit=2"},
    {"but not for another failure's backoff", LISTED "end timeout; anew; next",
     SAID "cancel LIST /pods?limit=2"},
    {"nor for a stream that is there", LISTED "anew; next; anew; page a 9; next",
     SAID "cancel LIST /pods?limit=2 lists begin +a end " WATCH "9"},
    {"after three in a row it lists",
     LISTED "end timeout; wait; next; end timeout; wait; next; end timeout; wait; next; page a 9; "
            "next; end timeout; wait; next",
     SAID WATCH "5 " WATCH "5 LIST /pods?limit=2 begin +a end " WATCH "9 LIST /pods?limit=2"},
    {"a list says nothing of a stream that is forbidden, only an event does",
     LISTED "end forbidden; wait; next; end forbidden; wait; next; end forbidden; wait; next; "
            "page a 9; failing; next; event ADDED c 10; failing",
     SAID WATCH "5 " WATCH "5 LIST /pods?limit=2 begin +a end since 1: forbidden " WATCH
                "9 +c well"},
    {"nor of one that breaks in another way",
     LISTED "end timeout; wait; next; end timeout; wait; next; end timeout; wait; next; page a 9; "
            "failing; next; tick 15000; next; failing",
     SAID WATCH "5 " WATCH "5 LIST /pods?limit=2 begin +a end since 1: timeout " WATCH
                "9 in flight well"},
    {"which may be at the same event each time",
     LISTED "line []; wait; next; page a 9; failing; next; line []; failing",
     SAID
     "cancel LIST /pods?limit=2 begin +a end since 1: watch of /pods: an event without type or "
     "object " WATCH "9 cancel since 1: watch of /pods: an event without type or object"},
    {"a version that is too old: list at once", LISTED "end gone; next; failing; synced",
     SAID "LIST /pods?limit=2 well synced"},
    {"the same as an event", LISTED "error 410; next; line x",
     SAID "cancel LIST /pods?limit=2 cancel"},
    {"too old again right after the list: not at once",
     LISTED "error 410; next; page a 6; next; error 410; next; failing",
     SAID "cancel LIST /pods?limit=2 begin +a end " WATCH "6 cancel waits since 1: watch of /pods: "
          "no (status 410)"},
    {"another error as an event", LISTED "error 500; failing; next; wait; next",
     SAID "cancel since 1: watch of /pods: no (status 500) waits " WATCH "5"},
    {"a stream that is silent when it should speak: list at once",
     LISTED "tick 5000; relist 4999; next; page a,b 9; next; failing",
     SAID "cancel LIST /pods?limit=2 begin +a +b end " WATCH "9 well"},
    {"one that has spoken since is only late",
     LISTED "tick 5000; event ADDED c 6; tick 5000; relist 5000; next", SAID "+c in flight"},
    {"and so is one whose list is newer", LISTED "relist 0; next", SAID "in flight"},
    {"a stream that is not there is not to blame", LISTED "tick 9; end good; relist 0; wait; next",
     SAID WATCH "5"},
    {"a line that is no JSON", LISTED "line {\"ty; failing; next; wait; next",
     SAID
     "cancel since 1: watch of /pods: an event that is no JSON: line 1, column 4: premature end of input near '\"ty' "
     "waits LIST /pods?limit=2"},
    {"an event that is none", LISTED "line {\"type\":\"ADDED\"}; failing; wait; next",
     SAID "cancel since 1: watch of /pods: an event without type or object LIST /pods?limit=2"},
    {"an event without version",
     LISTED "line {\"type\":\"ADDED\",\"object\":{}}; failing; wait; next",
     SAID "cancel since 1: watch of /pods: ADDED event without resourceVersion LIST /pods?limit=2"},
    {"an event of a type unheard of", LISTED "event RENAMED a 7; failing; wait; next",
     SAID
     "cancel since 1: watch of /pods: an event of unknown type \"RENAMED\" LIST /pods?limit=2"},
    {"a text with a NUL in it disturbs nobody",
     LISTED "line {\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"n\","
            "\"resourceVersion\":\"6\",\"annotations\":{\"a\":\"\\u0000\"}}}}",
     SAID "+n"},
};

static char *report(const char *script)
{
    struct watch_script s;
    watch_script_open(&s, "");
    watch_script_do(&s, script);
    char *said = xstrdup(str_text(&s.said));
    if (*said)
        said[strlen(said) - 1] = '\0';
    watch_script_close(&s);
    return said;
}

static void it_asks_for_what_follows(void **state)
{
    (void)state;
    int failed = 0;
    for (size_t i = 0; i < array_length(stories); i++) {
        auto_free char *said = report(stories[i].script);
        if (strcmp(said, stories[i].said) == 0)
            continue;
        print_error("%s:\n  %s\n  expected\n  %s\n", stories[i].name, said, stories[i].said);
        failed++;
    }
    assert_int_equal(failed, 0);
}

static void a_selector_is_escaped(void **state)
{
    (void)state;
    struct watch_script s;
    watch_script_open(&s, "a.b/c=d,e");
    const char *path;
    assert_int_equal(watch_next(s.watch, 0, &path), WATCH_ACTION_LIST);
    assert_string_equal(path, "/pods?limit=2&labelSelector=a.b%2Fc%3Dd%2Ce");
    watch_script_close(&s);
    watch_close(NULL);
}

/* Doubled, up to the most, and never the same for all. */
static void backoff_grows_with_jitter(void **state)
{
    (void)state;
    struct watch_script s;
    watch_script_open(&s, "");
    int64_t most_ms = WATCH_SCRIPT_FIRST_MS, longest_ms = 0;
    for (int i = 0; i < 200; i++) {
        const char *path;
        struct error err;
        assert_int_equal(watch_next(s.watch, s.now_ms, &path), WATCH_ACTION_LIST);
        watch_feed_list(s.watch, NULL, watch_script_failure("timeout", &err), 0, s.now_ms);
        int64_t delay_ms = watch_due(s.watch) - s.now_ms;
        assert_true(delay_ms >= 1 && delay_ms <= most_ms);
        longest_ms = delay_ms > longest_ms ? delay_ms : longest_ms;
        most_ms = 2 * most_ms > WATCH_SCRIPT_MAX_MS ? WATCH_SCRIPT_MAX_MS : 2 * most_ms;
        s.now_ms = watch_due(s.watch);
    }
    assert_true(longest_ms > WATCH_SCRIPT_MAX_MS / 2);
    watch_script_close(&s);
}

static void it_knows_what_was_written_behind_all_it_told(void **state)
{
    (void)state;
    static const struct {
        const char *story, *version;
        bool behind;
    } rows[] = {
        {"", "1", false}, /* nothing is told yet */
        {"next; page a 9; next", "9", false},
        {"next; page a 9; next", "10", true},
        {"next; page a 9; next; event MODIFIED a 10", "10", false},
        {"next; page a 9; next; event BOOKMARK - 11", "12", true},
        {"next; page a 9; next; end good", "10", true},
        {"next; page a 9; next", "x10", false},
        {"next; page a x9; next", "10", false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct watch_script s;
        watch_script_open(&s, "");
        watch_script_do(&s, rows[i].story);
        struct json *object = json_object_of(
            "metadata", json_texts_of("resourceVersion", rows[i].version, NULL), NULL);
        if (watch_is_behind(s.watch, object) != rows[i].behind)
            fail_msg("%s: %s", rows[i].story, rows[i].version);
        json_free(object);
        watch_script_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_asks_for_what_follows),
        cmocka_unit_test(a_selector_is_escaped),
        cmocka_unit_test(backoff_grows_with_jitter),
        cmocka_unit_test(it_knows_what_was_written_behind_all_it_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
