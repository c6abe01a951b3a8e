/* Who hangs, from reports: rows of short stories, and simulated hours (hang_simulation.h). By hand
 * with an argument: so many hours. */
#include "tests/agent/hang_simulation.h"
#include "tests/support.h"

#include "agent/health/hang_detector.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, BEAT_MS = 1000 };

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
static int hours = 200; /* ten times as slow */
#else
static int hours = 1000;
#endif

/* A story of seconds, one letter a second and rank: . goes on; = the same; w waits in a collective;
 * d waits for data; (blank) is not heard. It ends with the news of the last second. */
struct story {
    const char *label;
    const char *ranks[RANKS]; /* two in each pod */
    int second;               /* when there is news; 0: never */
    int rank;
    bool is_silent;
};

static void hear(struct hang_detector *d, const struct story *s, size_t second)
{
    static struct rank_report last[RANKS];
    for (int r = 0; r < RANKS; r++) {
        char c = s->ranks[r][second];
        if (second == 0)
            last[r] =
                (struct rank_report){.node = r / 2, .phase = RANK_STEP, .passed = 1 << RANK_DATA};
        if (c == '.') {
            last[r].step += 100;
            last[r].entered = last[r].ended = (uint64_t)last[r].step;
            last[r].phase = RANK_STEP;
        }
        last[r].entered = last[r].ended + (c == 'w');
        if (c == 'd')
            last[r].phase = RANK_DATA;
        if (c != ' ')
            hang_detector_hear(d, r, &last[r]);
    }
}

static void test_stories(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.label = "all goes well",
         .ranks = {"..........", "..........", "..........", ".........."}},
        {.label = "one stands still, the others wait for it",
         .ranks = {"...=========", "...wwwwwwwww", "...wwwwwwwww", "...wwwwwwwww"},
         .second = 7},
        {.label = "... and goes on in time",
         .ranks = {"...==.....", "...ww.....", "...ww.....", "...ww....."}},
        {.label = "... or are ahead",
         .ranks = {"...=========", "............", "............", "............"},
         .second = 7},
        {.label = "it takes long on all of them, and nobody waits",
         .ranks = {"...=========", "...=========", "...=========", "...========="}},
        {.label = "those who wait are not the ones",
         .ranks = {"...wwwwwww", "...wwwwwww", "...wwwwwww", "...wwwwwww"}},
        {.label = "a stopped one is silent, its neighbour is not",
         .ranks = {"...wwwwwwwwwwww", "...wwwwwwwwwwww", "...            ", "...wwwwwwwwwwww"},
         .second = 11,
         .rank = 2,
         .is_silent = true},
        {.label = "a paused machine is no hang",
         .ranks = {"...wwwwwwwwwwww", "...wwwwwwwwwwww", "...            ", "...            "}},
        {.label = "... nor its ranks, when it comes back",
         .ranks = {"...wwwwww...", "...wwwwww...", "...     =...", "...      ..."}},
        {.label = "data may take its time",
         .ranks = {"...ddddddddddddddddddddddddddddd.", "...wwwwwwwwwwwwwwwwwwwwwwwwwwwww.",
                   "...wwwwwwwwwwwwwwwwwwwwwwwwwwwww.", "...wwwwwwwwwwwwwwwwwwwwwwwwwwwww."}},
    };
    for (size_t i = 0; i < array_length(stories); i++) {
        const struct story *s = &stories[i];
        struct hang_detector *d = hang_detector_open(RANKS, BEAT_MS);
        int news_at = 0;
        struct hang_verdict verdict = {0};
        for (size_t t = 0; s->ranks[0][t] && !news_at; t++) {
            hear(d, s, t);
            if (hang_detector_tick(d, (int64_t)t * BEAT_MS, &verdict) == HANG_FOUND)
                news_at = (int)t;
        }
        if (news_at != s->second ||
            (news_at && (verdict.rank != s->rank || verdict.is_silent != s->is_silent)))
            fail_msg("%s: rank %d at %d s", s->label, verdict.rank, news_at);
        int waiting = 0;
        for (int r = 0; r < RANKS; r++)
            waiting += s->ranks[r][news_at] == 'w';
        if (news_at)
            assert_int_equal(verdict.waiting, waiting);
        hang_detector_close(d);
    }
}

/* Rank 0 is in the phase for so long, and all others wait; -1: nobody is named. */
static int named_after_s(struct hang_detector *d, int64_t *now_ms, enum rank_phase phase,
                         unsigned passed, int seconds)
{
    static int64_t step;
    int named_s = -1;
    step++;
    for (int s = 0; s < seconds; s++) {
        struct hang_verdict verdict;
        struct rank_report other = {.step = step, .phase = RANK_STEP, .passed = 1u << phase};
        other.entered = (uint64_t)step + 1;
        other.ended = (uint64_t)step;
        const struct rank_report slow = {.step = step,
                                         .phase = phase,
                                         .passed = passed,
                                         .entered = other.ended,
                                         .ended = other.ended};
        hang_detector_hear(d, 0, &slow);
        for (int r = 1; r < RANKS; r++)
            hang_detector_hear(d, r, &other);
        *now_ms += BEAT_MS;
        if (hang_detector_tick(d, *now_ms, &verdict) == HANG_FOUND)
            named_s = s;
    }
    return named_s;
}

static void test_what_is_done_for_the_first_time_may_take_long(void **state)
{
    (void)state;
    static const struct {
        enum rank_phase phase;
        int least_s;
    } rows[] = {{RANK_DATA, 30},
                {RANK_EVALUATION, 30},
                {RANK_SAVE, 60},
                {RANK_SNAPSHOT, 60},
                {RANK_TRACE, 60}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct hang_detector *d = hang_detector_open(RANKS, BEAT_MS);
        enum rank_phase phase = rows[i].phase;
        const unsigned passed = 1u << phase;
        int64_t now_ms = 0;
        /* though all others have done it before */
        assert_int_equal(named_after_s(d, &now_ms, phase, 0, 15), -1);
        assert_int_equal(named_after_s(d, &now_ms, phase, 0, 590), -1);
        assert_int_equal(named_after_s(d, &now_ms, RANK_STEP, passed, 2), -1);
        /* it has taken 590 s, and may again */
        assert_true(hang_detector_bound_ms(d, 0, phase) > 3 * 589 * 1000);
        hang_detector_close(d);
        d = hang_detector_open(RANKS, BEAT_MS);
        now_ms = 0;
        assert_int_equal(named_after_s(d, &now_ms, RANK_STEP, passed, 2), -1);
        int named_s = named_after_s(d, &now_ms, phase, passed, 100);
        assert_in_range(named_s, rows[i].least_s, rows[i].least_s + 10);
        hang_detector_close(d);
    }
}

static void test_a_hang_is_told_once_and_so_is_its_end(void **state)
{
    (void)state;
    static const struct story s = {.ranks = {"..==========.....", "..wwwwwwwwww.....",
                                             "..wwwwwwwwww.....", "..wwwwwwwwww....."}};
    struct hang_detector *d = hang_detector_open(RANKS, BEAT_MS);
    int found = 0, over = 0;
    for (size_t t = 0; s.ranks[0][t]; t++) {
        struct hang_verdict verdict;
        hear(d, &s, t);
        enum hang_news news = hang_detector_tick(d, (int64_t)t * BEAT_MS, &verdict);
        found += news == HANG_FOUND;
        over += news == HANG_OVER;
        assert_int_equal(hang_detector_hung(d), found > over ? 0 : -1);
    }
    assert_int_equal(found, 1);
    assert_int_equal(over, 1);
    /* it took 10 s, and went on: it may again */
    assert_true(hang_detector_bound_ms(d, 0, RANK_STEP) >= 10000);
    hang_detector_close(d);
}

static void test_a_stopped_rank_that_is_heard_again_hangs_no_more(void **state)
{
    (void)state;
    /* it is in the same collective as before, and waits like all others */
    static const struct story s = {
        .ranks = {"..w          www", "..wwwwwwwwwwwwww", "..wwwwwwwwwwwwww", "..wwwwwwwwwwwwww"}};
    struct hang_detector *d = hang_detector_open(RANKS, BEAT_MS);
    int over_at = 0;
    for (size_t t = 0; s.ranks[0][t]; t++) {
        struct hang_verdict verdict;
        hear(d, &s, t);
        if (hang_detector_tick(d, (int64_t)t * BEAT_MS, &verdict) == HANG_OVER)
            over_at = (int)t;
        assert_int_equal(hang_detector_hung(d), t >= 11 && t < 13 ? 0 : -1);
    }
    assert_int_equal(over_at, 13);
    hang_detector_close(d);
}

static void test_simulated_hours(void **state)
{
    (void)state;
    struct hang_tally tally = {0};
    enum { JOBS = 200 };
    uint64_t seed = 1;
    for (int i = 0; i < JOBS; i++)
        hang_simulation_run(seed + (uint64_t)i, hours / JOBS, &tally);
    printf("# seeds %d to %d\n", (int)seed, (int)seed + JOBS - 1);
    hang_simulation_print(&tally, stdout);
    assert_int_equal(tally.false_alarms, 0);
    assert_int_equal(tally.missed, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_what_is_done_for_the_first_time_may_take_long),
        cmocka_unit_test(test_a_hang_is_told_once_and_so_is_its_end),
        cmocka_unit_test(test_a_stopped_rank_that_is_heard_again_hangs_no_more),
        cmocka_unit_test(test_simulated_hours),
    };
    if (argc > 1)
        hours = atoi(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
