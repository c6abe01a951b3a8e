/* Word of a hang that only a launcher saw, from its note to rank 0. */
#include "agent/health/stopped_hang.h"
#include "agent/launch/rank_note.h"
#include "agent/launch/stopped_note.h"
#include "base/mem.h"
#include "tests/agent/comm_local.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPORT "12 2 1ff 17 16 5000000 12 1 812 all_gather layers.3"

static int open_store(void **state)
{
    *state = comm_local_open();
    return 0;
}

static int close_store(void **state)
{
    comm_local_close(*state);
    return 0;
}

/* One whose process has ended. */
static int set_nothing(struct store *s, const char *key, const char *value, struct error *err)
{
    (void)s, (void)value;
    return error_set(err, ERR_PEER, "%s", key);
}

static int note_of(const char *text)
{
    int note = rank_note_open(0);
    assert_true(note > 0);
    rank_note_write(note, RANK_NOTE_STOPPED, text);
    return note;
}

/* As a launcher writes it. */
static int note_of_rank(int rank, const char *report)
{
    struct stopped_note note = {.rank = rank, .time = "2026-11-28T12:37:18Z", .report = report};
    auto_str struct str text;
    str_init(&text, RANK_NOTE_BYTES - 1);
    stopped_note_write(&note, &text);
    return note_of(str_text(&text));
}

static bool is_empty(int note)
{
    auto_str struct str text;
    str_init(&text, RANK_NOTE_BYTES);
    rank_note_read(note, RANK_NOTE_STOPPED, &text);
    return text.length == 0;
}

static void rank_0_knows_what_the_launcher_saw(void **state)
{
    struct store *store = comm_local_store(*state);
    struct stopped_hang hang;
    auto_str struct str how;
    str_init(&how, 1024);
    int note = note_of_rank(3, REPORT);
    assert_false(stopped_hang_hear(store, &hang));
    stopped_hang_tell(store, note, "node-7", "mnist-worker-2");
    assert_true(stopped_hang_hear(store, &hang));
    stopped_hang_describe(&hang, &how);
    assert_string_equal(str_text(&how),
                        "rank 3 (pod mnist-worker-2, host node-7, process 812) hung in phase step "
                        "at step 12; its last collective: 17, all_gather of layers.3; all ranks of "
                        "its pod were stopped, and its launcher has ended them at "
                        "2026-11-28T12:37:18Z");
    assert_string_equal(hang.time, "2026-11-28T12:37:18Z");
    assert_true(is_empty(note)); /* it is told once */
    close(note);
}

static void who_has_nothing_to_tell_is_silent(void **state)
{
    struct store *store = comm_local_store(*state);
    struct stopped_hang hang;
    static const char *const texts[] = {"", "3", "-1 2026-11-28T12:37:18Z " REPORT, "rank 3"};
    for (size_t i = 0; i < array_length(texts); i++) {
        int note = note_of(texts[i]);
        stopped_hang_tell(store, note, "", "");
        assert_false(stopped_hang_hear(store, &hang));
        close(note);
    }
    stopped_hang_tell(store, 0, "", ""); /* no launcher holds a note */
    assert_false(stopped_hang_hear(store, &hang));
}

static void a_rank_that_had_made_no_report_is_told_too(void **state)
{
    struct store *store = comm_local_store(*state);
    struct stopped_hang hang;
    int note = note_of_rank(1, "");
    stopped_hang_tell(store, note, "", "");
    assert_true(stopped_hang_hear(store, &hang));
    assert_int_equal(hang.rank, 1);
    assert_int_equal(hang.report.phase, RANK_START);
    assert_int_equal(hang.report.entered, 0);
    close(note);
}

static void one_of_two_hangs_is_told_whole(void **state)
{
    struct store *store = comm_local_store(*state);
    struct stopped_hang hang;
    int first = note_of_rank(3, REPORT),
        second = note_of("5 2026-11-28T12:37:19Z 13 3 1ff 18 18 0 0 2 9 - ");
    stopped_hang_tell(store, first, "node-7", "pod-2");
    stopped_hang_tell(store, second, "node-8", "pod-3");
    assert_true(stopped_hang_hear(store, &hang));
    assert_int_equal(hang.rank, 3);
    assert_string_equal(hang.location.pod, "pod-2");
    assert_int_equal(hang.report.pid, 812);
    assert_true(is_empty(second));
    close(first), close(second);
}

static void what_nobody_could_hear_is_told_again(void **state)
{
    static const struct store_functions lost = {.set = set_nothing};
    struct store gone = {.fn = &lost};
    struct store *store = comm_local_store(*state);
    struct stopped_hang hang;
    int note = note_of_rank(3, REPORT);
    stopped_hang_tell(&gone, note, "", "");
    assert_false(is_empty(note));
    stopped_hang_tell(store, note, "", "");
    assert_true(stopped_hang_hear(store, &hang));
    assert_true(is_empty(note));
    close(note);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rank_0_knows_what_the_launcher_saw, open_store,
                                        close_store),
        cmocka_unit_test_setup_teardown(who_has_nothing_to_tell_is_silent, open_store, close_store),
        cmocka_unit_test_setup_teardown(a_rank_that_had_made_no_report_is_told_too, open_store,
                                        close_store),
        cmocka_unit_test_setup_teardown(one_of_two_hangs_is_told_whole, open_store, close_store),
        cmocka_unit_test_setup_teardown(what_nobody_could_hear_is_told_again, open_store,
                                        close_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
