/* Who takes part in an elastic run, and when: rows of events and what follows each. */
#include "agent/comm/roster.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Events, one a word: "+1" node 1 joins, "$1" with no restart left, "-1" is lost, "!1" was asked to
 * end, "*1" is done, ".5" so many seconds pass. After each: "w" to wait, "r" the round is to end,
 * "x" it is to end as a node of it is gone, the nodes of the round that begins, "[0 2]", or those
 * that are to leave, "d[0 2]". */
struct row {
    const char *name;
    int min, max, expected, patience_s;
    const char *events;
    const char *verdicts;
    const char *news; /* of the last round; NULL: not looked at */
};

static const struct row rows[] = {
    {"all are there", 2, 3, 3, 30, "+0 +1 +2", "w w [0 1 2]", ""},
    {"the first round waits with patience", 2, 3, 3, 30, "+0 .10 +2 .29 .1", "w w w w [0 2]", ""},
    {"... from when MIN are there", 2, 3, 3, 30, "+0 +1 .20 -1 .20 +2 .29 .1",
     "w w w w w w w [0 2]", ""},
    {"as many as there are pods are enough", 2, 4, 2, 30, "+1 +0", "w [0 1]", ""},
    {"fewer than MIN wait for ever", 2, 3, 3, 30, "+0 .1000 +1 .30", "w w w [0 1]", ""},
    {"not without node 0", 1, 3, 3, 5, "+1 +2 .1000 +0", "w w w [0 1 2]", ""},
    {"a failure: the same again", 2, 3, 3, 30, "+0 +1 +2 +1 +0 +2", "w w [0 1 2] w w [0 1 2]", ""},
    {"one is lost, and back within patience", 2, 3, 3, 30, "+0 +1 +2 -2 +0 +1 .29 +2",
     "w w [0 1 2] x w w w [0 1 2]", "3 nodes: node 2 (pod-2) was lost and is back"},
    {"one is lost, and not back", 2, 3, 3, 30, "+0 +1 +2 -1 +0 +2 .29 .1",
     "w w [0 1 2] x w w w [0 2]",
     "2 nodes instead of 3: node 1 (pod-1) was lost and not back within 30 s"},
    {"... and grows back when it is", 2, 3, 3, 30, "+0 +1 +2 -1 +0 +2 .30 .500 +1 +0 +2",
     "w w [0 1 2] x w w [0 2] w r w [0 1 2]", "3 nodes instead of 2: node 1 (pod-1) joined"},
    {"who was asked to end is not waited for", 1, 3, 3, 30, "+0 +1 +2 +0 !2 +1",
     "w w [0 1 2] w x [0 1]", "2 nodes instead of 3: node 2 (pod-2) was asked to end"},
    {"two are lost, one too many", 2, 3, 3, 30, "+0 +1 +2 -1 -2 +0 .100 +1",
     "w w [0 1 2] x x w w [0 1]",
     "2 nodes instead of 3: node 1 (pod-1) was lost and is back, node 2 (pod-2) was lost and not "
     "back within 100 s"},
    {"a job that grows", 1, 4, 2, 30, "+0 +1 +2 +3 +0 +1", "w [0 1] r w w [0 1 2 3]",
     "4 nodes instead of 2: node 2 (pod-2) joined, node 3 (pod-3) joined"},
    {"a spare waits", 1, 2, 2, 30, "+0 +1 +2 -1 +0", "w [0 1] w x [0 2]",
     "2 nodes: node 1 (pod-1) was lost and not back within 0 s, node 2 (pod-2) joined"},
    {"who comes while a round ends takes part in the next", 1, 3, 2, 30, "+0 +1 +0 +2 +1",
     "w [0 1] w w [0 1 2]", "3 nodes instead of 2: node 2 (pod-2) joined"},
    {"a launcher that was started anew is the old one's end", 2, 3, 2, 30, "+0 +1 -1 +1 +0",
     "w [0 1] x w [0 1]", "2 nodes: node 1 (pod-1) was lost and is back"},
    {"one that waits and goes is forgotten", 1, 3, 2, 30, "+0 +1 +2 !2 +0 +1",
     "w [0 1] r w w [0 1]", ""},
    {"one of MIN is lost: no patience ends", 3, 4, 3, 5, "+0 +1 +2 -2 +0 +1 .500 +2",
     "w w [0 1 2] x w w w [0 1 2]", NULL},
    {"who is done ends nobody", 1, 3, 2, 30, "+0 +1 *1 +2", "w [0 1] w w", ""},
    {"lost twice, asked to end the second time", 1, 3, 2, 30, "+0 +1 -1 +1 !1 +0",
     "w [0 1] x w x [0]", "1 node instead of 2: node 1 (pod-1) was asked to end"},
    {"a failure behind another's end, too few are left", 2, 2, 2, 30, "+0 +1 *1 +0",
     "w [0 1] w d[0]", NULL},
    {"... all that have failed leave", 3, 3, 3, 30, "+0 +1 +2 *1 +2 +0", "w w [0 1 2] w w d[0 2]",
     NULL},
    {"... a spare stays", 2, 2, 2, 30, "+0 +1 *1 +0 -0 +4 +0", "w [0 1] w d[0] w w [0 4]", NULL},
    {"... enough are left", 1, 2, 2, 30, "+0 +1 *1 +0 *0", "w [0 1] w [0] w", ""},
    {"... and the next round counts anew", 1, 2, 2, 30, "+0 +1 *1 +0 +1 +0 -1 +0 .30",
     "w [0 1] w [0] r [0 1] x w [0]", NULL},
    {"no restart is left", 2, 2, 2, 30, "+0 +1 $0 $1", "w [0 1] w d[0 1]", NULL},
    {"... to one of three, which is waited for", 2, 3, 3, 30, "+0 +1 +2 +0 $1 +2 -1 .29 .1",
     "w w [0 1 2] w w d[1] w w [0 2]",
     "2 nodes instead of 3: node 1 (pod-1) was lost and not back within 30 s"},
    {"... and comes back", 2, 3, 3, 30, "+0 +1 +2 +0 $1 +2 -1 +1", "w w [0 1 2] w w d[1] w [0 1 2]",
     "3 nodes: node 1 (pod-1) was lost and is back"},
    {"... but none is needed, as a node was lost", 2, 3, 3, 5, "+0 +1 +2 -2 $0 $1 .5",
     "w w [0 1 2] x w w [0 1]", NULL},
    {"a node that flaps: once in its patience", 1, 2, 1, 30, "+0 +1 +0 -1 +0 .30 +1 .29 .1",
     "[0] r [0 1] x w [0] r w w", NULL},
};

static void add_dismissed(const struct roster *r, struct str *out)
{
    const char *before = "d[";
    for (int node = 0; node < 10; node++)
        if (roster_dismissal(r, node)) {
            assert_false(roster_is_running(r, node));
            str_printf(out, "%s%d", before, node);
            before = " ";
        }
    str_add(out, "]");
}

static void add_verdict(struct roster *r, enum roster_verdict verdict, struct str *out)
{
    if (verdict == ROSTER_DISMISS) {
        add_dismissed(r, out);
        return;
    }
    if (verdict != ROSTER_START) {
        str_add(out, verdict == ROSTER_REGROUP ? "r" : "w");
        return;
    }
    const char *before = "[";
    for (int node = 0, rank = 0; node < 10; node++)
        if (roster_rank(r, node) >= 0) {
            assert_int_equal(roster_rank(r, node), rank++);
            assert_true(roster_is_running(r, node));
            str_printf(out, "%s%d", before, node);
            before = " ";
        }
    str_add(out, "]");
}

static void play(const struct row *row)
{
    auto_str struct str verdicts, news;
    str_init(&verdicts, 1000), str_init(&news, 1000);
    struct roster *r = roster_open(
        &(struct roster_options){row->min, row->max, row->expected, row->patience_s * 1000});
    auto_free char *events = xstrdup(row->events);
    char *rest = events;
    int64_t now_ms = 5000, until_ms;
    for (char *word = strsep(&rest, " "); word; word = strsep(&rest, " ")) {
        int number = atoi(word + 1);
        bool ends = false;
        char name[16];
        snprintf(name, sizeof name, "pod-%d", number);
        if (word[0] == '+' || word[0] == '$')
            roster_join(r, number, 0, name, now_ms);
        if (word[0] == '$')
            roster_set_restarts(r, number, 0);
        else if (word[0] == '.')
            now_ms += number * 1000;
        else if (word[0] != '+')
            ends = roster_leave(r, number,
                                word[0] == '!'   ? ROSTER_LEFT
                                : word[0] == '*' ? ROSTER_DONE
                                                 : ROSTER_LOST,
                                now_ms);
        str_add(&verdicts, verdicts.length ? " " : "");
        enum roster_verdict verdict = roster_decide(r, now_ms, &until_ms);
        if (verdict == ROSTER_WAIT && ends)
            str_add(&verdicts, "x");
        else
            add_verdict(r, verdict, &verdicts);
        assert_true(until_ms > now_ms);
    }
    roster_describe(r, &news);
    if (strcmp(str_text(&verdicts), row->verdicts) != 0)
        fail_msg("%s: %s, not %s", row->name, str_text(&verdicts), row->verdicts);
    if (row->news && strcmp(str_text(&news), row->news) != 0)
        fail_msg("%s: '%s', not '%s'", row->name, str_text(&news), row->news);
    roster_close(r);
}

static void events_decide(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++)
        play(&rows[i]);
}

/* Node 0's launcher was started anew: the others know how many they were. */
static void others_know_their_number(void **state)
{
    (void)state;
    int64_t until_ms;
    struct roster *r = roster_open(&(struct roster_options){1, 4, 2, 30000});
    roster_join(r, 0, 0, "", 0);
    roster_join(r, 3, 4, "", 0);
    assert_int_equal(roster_decide(r, 0, &until_ms), ROSTER_WAIT);
    assert_int_equal(until_ms, 30000);
    roster_join(r, 1, 4, "", 0);
    roster_join(r, 2, 4, "", 0);
    assert_int_equal(roster_decide(r, 0, &until_ms), ROSTER_START);
    roster_close(r);
}

/* A change of size costs no restart, a failure does. */
static void changes_are_known(void **state)
{
    (void)state;
    int64_t until_ms;
    struct roster *r = roster_open(&(struct roster_options){1, 2, 2, 30000});
    for (int round = 0; round < 3; round++) {
        if (round == 2)
            roster_leave(r, 1, ROSTER_LOST, 0);
        roster_join(r, 0, 0, "", 0);
        roster_join(r, 1, 0, "", 0);
        assert_int_equal(roster_decide(r, 0, &until_ms), ROSTER_START);
        assert_int_equal(roster_has_changed(r), round != 1);
    }
    roster_leave(r, 1, ROSTER_LOST, 0);
    roster_join(r, 0, 0, "", 0);
    assert_int_equal(roster_decide(r, 30000, &until_ms), ROSTER_START);
    roster_join(r, 1, 0, "", 0); /* for its sake the round ends, and it goes again */
    assert_int_equal(roster_decide(r, 0, &until_ms), ROSTER_REGROUP);
    roster_leave(r, 1, ROSTER_LEFT, 0);
    roster_join(r, 0, 0, "", 0);
    assert_int_equal(roster_decide(r, 0, &until_ms), ROSTER_START);
    assert_true(roster_has_changed(r));
    roster_close(r);
}

/* A node is lost as soon as it trains, and comes back at once: when the others stop for it. */
static void who_flaps_is_let_in_ever_later(void **state)
{
    (void)state;
    static const int64_t gaps_s[] = {30, 60, 120, 240, 480, 600, 600};
    int64_t now_ms = 0, until_ms;
    struct roster *r = roster_open(&(struct roster_options){1, 2, 1, 30000});
    roster_join(r, 0, 0, "", now_ms);
    assert_int_equal(roster_decide(r, now_ms, &until_ms), ROSTER_START);
    for (size_t i = 0; i <= array_length(gaps_s); i++) {
        roster_join(r, 1, 0, "", now_ms);
        if (i > 0) {
            assert_int_equal(roster_decide(r, now_ms, &until_ms), ROSTER_WAIT);
            assert_int_equal(until_ms - now_ms, gaps_s[i - 1] * 1000 - 1);
            assert_int_equal(roster_grows_ms(r), until_ms);
            now_ms = until_ms;
        }
        assert_int_equal(roster_decide(r, now_ms, &until_ms), ROSTER_REGROUP);
        roster_join(r, 0, 0, "", now_ms);
        assert_int_equal(roster_decide(r, now_ms, &until_ms), ROSTER_START);
        roster_leave(r, 1, ROSTER_LEFT, ++now_ms);
        roster_join(r, 0, 0, "", now_ms);
        assert_int_equal(roster_decide(r, now_ms, &until_ms), ROSTER_START);
    }
    now_ms += 2 * ROSTER_REGROUP_MOST_MS; /* it has behaved for so long */
    for (int i = 0; i < 2; i++) {
        roster_join(r, 1, 0, "", now_ms);
        assert_int_equal(roster_decide(r, now_ms, &until_ms),
                         i == 0 ? ROSTER_REGROUP : ROSTER_WAIT);
        roster_leave(r, 1, ROSTER_LEFT, now_ms);
        roster_join(r, 0, 0, "", now_ms);
        roster_decide(r, now_ms, &until_ms);
    }
    assert_int_equal(roster_grows_ms(r), now_ms + 30000);
    roster_close(r);
}

static void a_limit_holds(void **state)
{
    (void)state;
    int64_t until_ms;
    struct roster *r = roster_open(&(struct roster_options){2, 4, 4, 30000});
    roster_limit(r, 3);
    for (int node = 0; node < 3; node++)
        roster_join(r, node, 0, "", 0);
    assert_int_equal(roster_decide(r, 0, &until_ms), ROSTER_START);
    roster_limit(r, 1); /* fewer than MIN are none */
    roster_join(r, 0, 0, "", 0), roster_join(r, 1, 0, "", 0), roster_join(r, 2, 0, "", 0);
    assert_int_equal(roster_decide(r, 0, &until_ms), ROSTER_START);
    assert_int_equal(roster_nodes(r), 2);
    roster_close(r);
}

static void who_is_missing_is_told(void **state)
{
    (void)state;
    int64_t until_ms;
    auto_str struct str text;
    str_init(&text, 200);
    struct roster *r = roster_open(&(struct roster_options){2, 4, 3, 30000});
    roster_join(r, 0, 0, "", 0);
    roster_describe_wait(r, &text);
    assert_string_equal(str_text(&text),
                        "1 node is here, at least 2 are needed; missing: node 1 2");
    roster_join(r, 1, 0, "", 0);
    roster_join(r, 2, 0, "", 0);
    roster_decide(r, 0, &until_ms);
    roster_leave(r, 1, ROSTER_LOST, 0);
    roster_join(r, 0, 0, "", 0);
    roster_join(r, 2, 0, "", 0);
    str_clear(&text);
    roster_describe_wait(r, &text);
    assert_string_equal(str_text(&text),
                        "2 nodes are here, at least 2 are needed; missing: node 1");
    roster_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_decide),     cmocka_unit_test(others_know_their_number),
        cmocka_unit_test(changes_are_known), cmocka_unit_test(who_flaps_is_let_in_ever_later),
        cmocka_unit_test(a_limit_holds),     cmocka_unit_test(who_is_missing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
