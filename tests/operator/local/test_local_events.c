/* The events of a local run: what comes again counts, and there is an end to them. */
#include "operator/local/local_events.h"

#include "base/mem.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

static void what_comes_again_counts(void **state)
{
    (void)state;
    auto_free struct local_events *events = xcalloc(1, sizeof *events);
    local_events_add(events, 1000, EVENT_WARNING, "ExitedWithCode", "pod a exited with code 3");
    local_events_add(events, 2000, EVENT_NORMAL, "SuccessfulCreatePod", "Created pod: a");
    local_events_add(events, 3000, EVENT_WARNING, "ExitedWithCode", "pod a exited with code 3");
    local_events_add(events, 4000, EVENT_WARNING, "ExitedWithCode", "pod b exited with code 3");
    static const struct {
        int64_t time_ms, count;
        enum event_type type;
        const char *message;
    } expected[] = {
        {2000, 1, EVENT_NORMAL, "Created pod: a"},
        {3000, 2, EVENT_WARNING, "pod a exited with code 3"},
        {4000, 1, EVENT_WARNING, "pod b exited with code 3"},
    };
    assert_int_equal(events->count, array_length(expected));
    for (size_t i = 0; i < array_length(expected); i++) {
        assert_int_equal(events->items[i].time_ms, expected[i].time_ms);
        assert_int_equal(events->items[i].count, expected[i].count);
        assert_int_equal(events->items[i].type, expected[i].type);
        assert_string_equal(events->items[i].message, expected[i].message);
    }
}

static void the_oldest_goes(void **state)
{
    (void)state;
    auto_free struct local_events *events = xcalloc(1, sizeof *events);
    for (int i = 0; i < LOCAL_EVENTS_MAX + 3; i++) {
        auto_free char *message = xasprintf("event %d", i);
        local_events_add(events, i, EVENT_NORMAL, "Reason", message);
    }
    assert_int_equal(events->count, LOCAL_EVENTS_MAX);
    assert_string_equal(events->items[0].message, "event 3");
    /* one of them again, with no room for another */
    local_events_add(events, 1000, EVENT_NORMAL, "Reason", "event 3");
    assert_int_equal(events->count, LOCAL_EVENTS_MAX);
    assert_string_equal(events->items[0].message, "event 4");
    assert_int_equal(events->items[LOCAL_EVENTS_MAX - 1].count, 2);
}

static void a_text_is_cut_and_printable(void **state)
{
    (void)state;
    auto_free struct local_events *events = xcalloc(1, sizeof *events);
    char message[LOCAL_EVENT_MESSAGE_BYTES + 10];
    memset(message, 'x', sizeof message);
    memcpy(message, "a\033b", 3);
    /* a character of two bytes, of which the cut leaves one */
    memcpy(message + LOCAL_EVENT_MESSAGE_BYTES - 2, "\xc3\xa4", 2);
    message[sizeof message - 1] = '\0';
    local_events_add(events, 0, EVENT_NORMAL, "R", message);
    const char *kept = events->items[0].message;
    assert_int_equal(strlen(kept), LOCAL_EVENT_MESSAGE_BYTES - 1);
    assert_memory_equal(kept, "a b", 3);
    assert_int_equal(kept[LOCAL_EVENT_MESSAGE_BYTES - 2], '?');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_again_counts),
        cmocka_unit_test(the_oldest_goes),
        cmocka_unit_test(a_text_is_cut_and_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
