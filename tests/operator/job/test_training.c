/* The numbers of a training: what is kept of them, and what is news. */
#include "operator/job/training.h"

#include "base/mem.h"
#include "tests/support.h"

#include <math.h>
#include <string.h>

static const struct training_field *field_of(const char *name)
{
    const struct training_field *field = training_fields;
    while (field->name && strcmp(field->name, name) != 0)
        field++;
    assert_non_null(field->name);
    return field;
}

static void numbers_that_none_can_be_are_refused(void **state)
{
    (void)state;
    struct training t = training_open();
    const struct training_field *loss = field_of("loss"), *step = field_of("step"),
                                *time = field_of("lastProgressTime");
    assert_false(training_set_real(&t, loss, (double)NAN));
    assert_false(training_set_real(&t, loss, (double)INFINITY));
    assert_false(training_set_real(&t, loss, 1e300));
    assert_false(training_set_count(&t, step, -1));
    assert_false(training_set_count(&t, step, INT64_MAX));
    assert_false(training_set_time(&t, time, 0));
    assert_false(training_set_time(&t, time, -1));
    assert_false(training_set_time(&t, time, INT64_MAX));
    const struct training none = training_open();
    assert_true(training_equal(&t, &none));
    assert_true(training_set_real(&t, loss, -3.0));
    assert_true(training_set_count(&t, step, 0));
    assert_true(training_has(&t, loss) && training_has(&t, step) && !training_has(&t, time));
}

/* What is not kept is no news: a loss that differs in its tenth digit causes no write. */
static void only_what_is_kept_is_compared(void **state)
{
    (void)state;
    struct training a = training_open(), b = training_open();
    training_set_real(&a, field_of("loss"), 2.345601);
    training_set_real(&b, field_of("loss"), 2.345599);
    assert_true(training_equal(&a, &b));
    training_set_real(&b, field_of("loss"), 2.3457);
    assert_false(training_equal(&a, &b));
    const struct training nothing = {.known = false};
    assert_false(training_equal(&a, &nothing));
    assert_true(training_equal(&nothing, &nothing));
}

/* Of each field, and of the time that went to a kind, another value makes another digest, and so
 * does one that is not known. */
static void a_digest_stands_for_what_is_told(void **state)
{
    (void)state;
    const struct training none = training_open();
    for (const struct training_field *field = training_fields; field->name; field++) {
        struct training a = training_open(), b = training_open(), c = training_open();
        const int64_t time_ms = INT64_C(1767225600000);
        struct training *const all[] = {&a, &b, &c};
        for (int i = 0; i < 3; i++) {
            if (field->kind == TRAINING_REAL)
                training_set_real(all[i], field, i == 1 ? 1 : 0.0 * (i - 1));
            else if (field->kind == TRAINING_COUNT)
                training_set_count(all[i], field, i == 1);
            else
                training_set_time(all[i], field, time_ms + 1000 * (i == 1));
        }
        if (training_digest(&a) != training_digest(&c) || !training_equal(&a, &c) ||
            training_digest(&a) == training_digest(&b) ||
            training_digest(&a) == training_digest(&none))
            fail_msg("%s", field->name);
    }
    struct training spent = training_open();
    training_set_spent(&spent, TRAINING_SPENT_DATA, 0.001);
    assert_true(training_digest(&spent) != training_digest(&none));
}

static void what_is_not_told_stays_but_for_rates(void **state)
{
    (void)state;
    struct training t = {.known = false}, told = training_open();
    training_merge(&t, &(struct training){.known = false});
    assert_false(t.known);
    training_set_count(&told, field_of("step"), 40);
    training_set_real(&told, field_of("evalLoss"), 2.5);
    training_set_real(&told, field_of("tokensPerSecond"), 8192);
    training_set_count(&told, field_of("secondsLeft"), 60);
    training_merge(&t, &told);
    assert_true(training_equal(&t, &told));
    /* a process that starts again has no step yet */
    struct training starts = training_open();
    training_set_count(&starts, field_of("restarts"), 1);
    training_merge(&t, &starts);
    assert_int_equal(t.step, 40);
    assert_int_equal(t.restarts, 1);
    assert_false(training_has(&t, field_of("tokensPerSecond")));
    assert_false(training_has(&t, field_of("secondsLeft")));
    assert_true(training_has(&t, field_of("evalLoss")));
    /* a step whose loss is NaN is told without it; of the same step nothing changes */
    training_set_real(&told, field_of("loss"), 2.25);
    training_merge(&t, &told);
    training_merge(&t, &starts);
    assert_true(training_has(&t, field_of("loss")));
    training_set_count(&starts, field_of("step"), 41);
    training_merge(&t, &starts);
    assert_false(training_has(&t, field_of("loss")));
}

static void people_read_it(void **state)
{
    (void)state;
    static const struct {
        int64_t step, steps, left;
        const char *progress, *time;
    } rows[] = {
        {-1, 5000, -1, "", ""},
        {0, 5000, 0, "0/5000", "0s"},
        {1200, 5000, 59, "1200/5000", "59s"},
        {7, -1, 60, "7", "1m0s"},
        {7, 0, 4830, "7", "1h20m"},
        {7, 8, 90000, "7/8", "1d1h"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct training t = training_open();
        char text[TRAINING_TEXT_BYTES];
        t.step = rows[i].step;
        t.steps = rows[i].steps;
        t.seconds_left = rows[i].left;
        training_progress_text(&t, text);
        assert_string_equal(text, rows[i].progress);
        training_left_text(&t, text);
        assert_string_equal(text, rows[i].time);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_that_none_can_be_are_refused),
        cmocka_unit_test(only_what_is_kept_is_compared),
        cmocka_unit_test(a_digest_stands_for_what_is_told),
        cmocka_unit_test(what_is_not_told_stays_but_for_rates),
        cmocka_unit_test(people_read_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
