#include "base/timeline.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

/* Of a job's life, in order. */
enum { PENDING, INITIALIZATION, LOST_WORK, STEP, DATA, KINDS };
static const char *name_of(int kind)
{
    static const char *const names[] = {"pending", "initialization", "lostWork", "step", "data"};
    return names[kind];
}
static const struct timeline_kinds kinds = {
    .count = KINDS,
    .order = (const int[]){PENDING, INITIALIZATION, LOST_WORK, DATA, STEP},
    .name = name_of,
};

static char *text_of(const struct timeline *t)
{
    struct json *value = timeline_json(t, &kinds, 1000000);
    char *text = value ? json_print(value, JSON_COMPACT) : xstrdup("");
    json_free(value);
    return text;
}

static void what_went_by_comes_in_the_order_of_life(void **state)
{
    (void)state;
    struct timeline t = {.count = 0};
    int64_t ms[KINDS] = {0};
    timeline_told(&t, &kinds, ms);
    assert_null(timeline_json(&t, &kinds, 1));
    ms[STEP] += 60 * 1000;
    ms[PENDING] += 10 * 1000;
    ms[INITIALIZATION] += 5 * 1000;
    timeline_told(&t, &kinds, ms);
    auto_free char *first = text_of(&t);
    assert_string_equal(first, "[{\"kind\":\"pending\",\"from\":1000,\"to\":1010},"
                               "{\"kind\":\"initialization\",\"from\":1010,\"to\":1015},"
                               "{\"kind\":\"step\",\"from\":1015,\"to\":1075}]");
    timeline_told(&t, &kinds, ms); /* nothing went by */
    /* of a short look the small parts go to the large one, which goes on */
    ms[STEP] += 14 * 1000;
    ms[DATA] += 1 * 1000;
    timeline_told(&t, &kinds, ms);
    assert_int_equal(t.count, 3);
    /* a failure */
    ms[INITIALIZATION] += 20 * 1000;
    ms[LOST_WORK] += 10 * 1000;
    timeline_told(&t, &kinds, ms);
    auto_free char *second = text_of(&t);
    assert_non_null(strstr(second, "{\"kind\":\"step\",\"from\":1015,\"to\":1090},"
                                   "{\"kind\":\"initialization\",\"from\":1090,\"to\":1110},"
                                   "{\"kind\":\"lostWork\",\"from\":1110,\"to\":1120}]"));
    timeline_free(&t);
}

static void a_first_look_of_short_kinds_is_of_the_longest(void **state)
{
    (void)state;
    struct timeline t = {.count = 0};
    int64_t ms[KINDS] = {[PENDING] = 100, [INITIALIZATION] = 900, [STEP] = 300};
    timeline_told(&t, &kinds, ms);
    assert_int_equal(t.count, 1);
    assert_int_equal(t.pieces[0].kind, INITIALIZATION);
    assert_int_equal(t.pieces[0].until_ms, 1300);
    timeline_free(&t);
}

/* Sums alone are known of what went before: it does not grow, nor join what is seen. */
static void what_was_found_is_marked(void **state)
{
    (void)state;
    struct timeline t = {.count = 0};
    int64_t ms[KINDS] = {[PENDING] = 20 * 1000, [STEP] = 60 * 1000};
    timeline_found(&t, &kinds, ms);
    ms[STEP] += 15 * 1000;
    timeline_told(&t, &kinds, ms);
    auto_free char *text = text_of(&t);
    assert_string_equal(text, "[{\"kind\":\"pending\",\"from\":1000,\"to\":1020,\"summed\":true},"
                              "{\"kind\":\"step\",\"from\":1020,\"to\":1080,\"summed\":true},"
                              "{\"kind\":\"step\",\"from\":1080,\"to\":1095}]");
    timeline_free(&t);
    /* nothing was found of what is new, and a short piece that was does not become a seen one */
    int64_t of_new[KINDS] = {0};
    timeline_found(&t, &kinds, of_new);
    of_new[PENDING] = 1000;
    timeline_found(&t, &kinds, of_new);
    for (int i = 0; i < 200; i++) {
        of_new[i % 2 ? STEP : DATA] += 5000;
        timeline_told(&t, &kinds, of_new);
    }
    assert_int_equal(t.count, PAGE_SEGMENTS_MAX);
    assert_true(t.pieces[0].summed && t.pieces[0].until_ms == 1000);
    assert_false(t.pieces[1].summed);
    timeline_free(&t);
}

/* A job that is never still: the pieces stay few, in order and without gaps, and end now. */
static void many_pieces_become_fewer(void **state)
{
    (void)state;
    struct timeline t = {.count = 0};
    int64_t ms[KINDS] = {0};
    for (int i = 0; i < 5000; i++) {
        t.most = i < 2500 ? 0 : 12; /* its owner needs room for others */
        int most = t.most ? t.most : PAGE_SEGMENTS_MAX;
        ms[i * 7 % KINDS] += (1 + i % 40) * 1000;
        ms[i * 5 % KINDS] += (1 + i % 3) * 1000;
        timeline_told(&t, &kinds, ms);
        int64_t sum_ms = 0;
        for (int kind = 0; kind < KINDS; kind++)
            sum_ms += ms[kind];
        assert_in_range(t.count, 1, most);
        assert_true(t.size <= 2 * most);
        assert_int_equal(t.pieces[t.count - 1].until_ms, sum_ms);
        for (int p = 1; p < t.count; p++) {
            assert_true(t.pieces[p].until_ms > t.pieces[p - 1].until_ms);
            assert_int_not_equal(t.pieces[p].kind, t.pieces[p - 1].kind);
        }
    }
    timeline_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_went_by_comes_in_the_order_of_life),
        cmocka_unit_test(a_first_look_of_short_kinds_is_of_the_longest),
        cmocka_unit_test(what_was_found_is_marked),
        cmocka_unit_test(many_pieces_become_fewer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
