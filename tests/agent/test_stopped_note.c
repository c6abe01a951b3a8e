/* What a launcher notes of a rank that it has ended, there and back. */
#include "agent/launch/stopped_note.h"
#include "base/clock.h"
#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

#define TIME "2026-11-28T12:37:18Z"

static void what_is_written_is_read(void **state)
{
    (void)state;
    static const struct {
        struct stopped_note note;
        const char *text;
    } rows[] = {
        {{3, TIME, "12 2 1ff 17 16 5 12 1 812 all_gather layers.3"},
         "3 " TIME " 12 2 1ff 17 16 5 12 1 812 all_gather layers.3"},
        {{0, TIME, ""}, "0 " TIME " "}, /* stopped before it had made one */
        {{2147483647, TIME, " x"}, "2147483647 " TIME "  x"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_str struct str text;
        struct stopped_note note;
        struct error err;
        str_init(&text, 200);
        stopped_note_write(&rows[i].note, &text);
        assert_string_equal(str_text(&text), rows[i].text);
        assert_ok(stopped_note_read(str_text(&text), &note, &err), &err);
        assert_int_equal(note.rank, rows[i].note.rank);
        assert_string_equal(note.time, rows[i].note.time);
        assert_string_equal(note.report, rows[i].note.report);
    }
}

static void each_time_of_our_clock_has_room(void **state)
{
    (void)state;
    static const int64_t times_ms[] = {0, 1795869438000, 253402300799000};
    for (size_t i = 0; i < array_length(times_ms); i++) {
        struct stopped_note note = {.report = "r"}, read;
        auto_str struct str text;
        struct error err;
        str_init(&text, 200);
        clock_format_rfc3339(times_ms[i], note.time, sizeof note.time);
        stopped_note_write(&note, &text);
        assert_ok(stopped_note_read(str_text(&text), &read, &err), &err);
        assert_string_equal(read.time, note.time);
    }
}

static void what_is_no_note_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "3",
                                        "3 ",
                                        "rank 3",
                                        "-1 2026-11-28T12:37:18Z",
                                        "3 a-time-of-more-than-31-characters x"};
    for (size_t i = 0; i < array_length(texts); i++) {
        struct stopped_note note;
        struct error err;
        assert_fails(stopped_note_read(texts[i], &note, &err), &err, ERR_INPUT,
                     "a note of a stopped rank that is none: ");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(each_time_of_our_clock_has_room),
        cmocka_unit_test(what_is_no_note_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
