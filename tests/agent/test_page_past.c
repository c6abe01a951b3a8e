/* What a rank leaves of its time for the one that is started in its place. */
#include "tests/support.h"

#include "agent/telemetry/page_past.h"
#include "base/json.h"
#include "base/mem.h"

#include <string.h>

enum { BEGIN_MS = 1000000 };

/* As JSON. */
static char *timeline_of(const struct page_past *past)
{
    struct json *list = timeline_json(&past->timeline, &page_time_kinds, past->begin_ms);
    char *text = list ? json_print(list, JSON_COMPACT) : xstrdup("");
    json_free(list);
    return text;
}

static int64_t sum_of(const struct page_past *past)
{
    int64_t sum_ms = 0;
    for (int kind = 0; kind < PAGE_TIME_KINDS; kind++)
        sum_ms += page_past_ms(past)[kind];
    return sum_ms;
}

/* Another process is told all, and a note of its own says the same. A third begins later. */
static void a_note_says_all_that_was_told(void **state)
{
    (void)state;
    struct page_past first = {.begin_ms = 0};
    struct time_account account = time_account_open(0);
    page_past_begin(&first, "", BEGIN_MS);
    for (int look = 1; look <= 2 * PAGE_SEGMENTS_MAX; look++) { /* more pieces than there may be */
        enum time_kind kind = look % 7 == 0 ? TIME_SAVE : look % 2 ? TIME_STEP : TIME_DATA;
        time_account_add(&account, TIME_EVALUATION, account.until_us + 1234); /* too short */
        time_account_add(&account, kind, account.until_us + (look % 5 + 1) * INT64_C(700000));
        page_past_look(&first, &account);
    }
    auto_str struct str note, again;
    str_init(&note, PAGE_NOTE_BYTES - 1);
    str_init(&again, PAGE_NOTE_BYTES - 1);
    page_past_note(&first, &note);
    assert_false(note.truncated);
    struct page_past second = {.begin_ms = 0};
    page_past_begin(&second, str_text(&note), BEGIN_MS + sum_of(&first));
    page_past_note(&second, &again);
    assert_string_equal(str_text(&again), str_text(&note));
    auto_free char *told = timeline_of(&first), *taken = timeline_of(&second);
    assert_string_equal(taken, told);
    struct page_past third = {.begin_ms = 0};
    page_past_begin(&third, str_text(&again), BEGIN_MS + sum_of(&first) + 5000);
    assert_int_equal(page_past_ms(&third)[PAGE_TIME_RECOVERY], 5000);
    assert_int_equal(page_past_ms(&third)[TIME_SAVE], page_past_ms(&first)[TIME_SAVE]);
    assert_int_equal(sum_of(&third), sum_of(&first) + 5000);
    assert_int_equal(third.begin_ms, BEGIN_MS);
    page_past_free(&first);
    page_past_free(&second);
    page_past_free(&third);
}

/* Of a long job: sixty pieces, each with the largest numbers that a century asks for. */
static void the_longest_note_has_room(void **state)
{
    (void)state;
    const int64_t century_ms = INT64_C(100) * 366 * 86400 * 1000;
    struct page_past past = {.begin_ms = 20 * century_ms};
    for (int kind = 0; kind < PAGE_TIME_KINDS; kind++)
        past.timeline.seen_ms[kind] = century_ms;
    struct timeline_piece pieces[PAGE_SEGMENTS_MAX];
    for (int i = 0; i < PAGE_SEGMENTS_MAX; i++)
        pieces[i] = (struct timeline_piece){.until_ms = century_ms, .kind = PAGE_TIME_KINDS - 1};
    past.timeline.pieces = pieces;
    past.timeline.count = PAGE_SEGMENTS_MAX;
    auto_str struct str note;
    str_init(&note, PAGE_NOTE_BYTES - 1);
    page_past_note(&past, &note);
    assert_false(note.truncated);
}

/* The clock was set back meanwhile: nothing lies between the two. */
static void a_clock_that_is_set_back_makes_no_recovery(void **state)
{
    (void)state;
    struct page_past past = {.begin_ms = 0};
    page_past_begin(&past, "1000000 700 0 0 0 300 0 0 0 0 0 0 700 4 1000", BEGIN_MS - 5000);
    assert_int_equal(past.begin_ms, BEGIN_MS);
    assert_int_equal(sum_of(&past), 1000);
    page_past_free(&past);
}

static void what_is_no_note_is_none(void **state)
{
    (void)state;
#define KINDS "700 0 0 0 300 0 0 0 0 0"
    static const char *const rows[] = {
        "",
        "x",
        "1000000",
        "1000000 700",
        "1000000 " KINDS,                /* no pieces */
        "1000000 " KINDS " 0 700",       /* too few */
        "1000000 " KINDS " 0 700 4",     /* half of one */
        "1000000 " KINDS " 0 700 4 600", /* backwards */
        "1000000 " KINDS " 0 700 4 1001",
        "1000000 " KINDS " 0 700 10 1000",
        "1000000 " KINDS " 0 700 -1 1000",
        "1000000 " KINDS " 0 700 4 1000 x",
        "0 " KINDS " 0 700 4 1000",
        "-5 " KINDS " 0 700 4 1000",
        "1000000 -1 0 0 0 300 0 0 0 0 0 0 700 4 1000",
        "1000000 99999999999999999999 0 0 0 300 0 0 0 0 0 0 700 4 1000",
    };
#undef KINDS
    for (size_t i = 0; i < array_length(rows); i++) {
        struct page_past past = {.begin_ms = 0};
        page_past_begin(&past, rows[i], BEGIN_MS + 9000);
        if (past.begin_ms != BEGIN_MS + 9000 || sum_of(&past) != 0 || past.timeline.count != 0)
            fail_msg("row %zu: %s", i, rows[i]);
        page_past_free(&past);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_says_all_that_was_told),
        cmocka_unit_test(the_longest_note_has_room),
        cmocka_unit_test(a_clock_that_is_set_back_makes_no_recovery),
        cmocka_unit_test(what_is_no_note_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
