/* The lease machine, one step at a time, against a lease that the test keeps by hand. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/leader/lease.h"

#include <stdio.h>
#include <string.h>

static const struct lease_options options = {.identity = "me",
                                             .duration_ms = 15000,
                                             .renew_deadline_ms = 10000,
                                             .retry_ms = 2000,
                                             .seed = 1};
/* 2026-01-01T00:00:00.250Z */
#define WALL_MS INT64_C(1767225600250)

static struct lease_record stored(const char *holder, const char *version)
{
    struct lease_record record = {.exists = true,
                                  .duration_s = 15,
                                  .transitions = 4,
                                  .acquired = "2025-01-01T00:00:00.000000Z",
                                  .renewed = "2025-01-02T00:00:00.000000Z"};
    snprintf(record.holder, sizeof record.holder, "%s", holder);
    snprintf(record.version, sizeof record.version, "%s", version);
    return record;
}

static void assert_wants(struct lease *lease, enum lease_action want, int64_t now_ms,
                         struct lease_record *ret_record)
{
    assert_int_equal(lease_next(lease, now_ms, WALL_MS, ret_record), want);
}

/* It reads `holder`'s lease at now_ms. */
static void read_lease(struct lease *lease, const char *holder, const char *version, int64_t now_ms)
{
    struct lease_record out, record = stored(holder, version);
    assert_wants(lease, LEASE_READ, now_ms, &out);
    assert_wants(lease, LEASE_WAIT, now_ms, &out);
    lease_feed(lease, LEASE_STORED, &record, now_ms);
}

/* What it wrote is stored at now_ms. */
static void accept(struct lease *lease, struct lease_record record, const char *version,
                   int64_t now_ms)
{
    record.exists = true;
    snprintf(record.version, sizeof record.version, "%s", version);
    lease_feed(lease, LEASE_STORED, &record, now_ms);
}

/* A machine that got a free lease at time 0. */
static struct lease holder_at_0(void)
{
    struct lease lease;
    struct lease_record out;
    lease_init(&lease, &options);
    read_lease(&lease, "", "1", 0);
    assert_wants(&lease, LEASE_UPDATE, 0, &out);
    accept(&lease, out, "2", 0);
    return lease;
}

static void makes_the_lease_if_there_is_none(void **state)
{
    (void)state;
    struct lease lease;
    struct lease_record out;
    lease_init(&lease, &options);
    assert_wants(&lease, LEASE_READ, 100, &out);
    lease_feed(&lease, LEASE_ABSENT, NULL, 110);
    assert_wants(&lease, LEASE_CREATE, 110, &out);
    assert_string_equal(out.holder, "me");
    assert_int_equal(out.duration_s, 15);
    assert_int_equal(out.transitions, 0);
    assert_string_equal(out.acquired, "2026-01-01T00:00:00.250000Z");
    assert_string_equal(out.renewed, "2026-01-01T00:00:00.250000Z");
    assert_false(lease_is_held(&lease, 110));
    accept(&lease, out, "1", 150);
    assert_true(lease_is_held(&lease, 150));
    assert_true(lease_is_held(&lease, 10109));
    assert_false(lease_is_held(&lease, 10110)); /* counted from when it was sent */
}

static void two_creators_one_is_refused(void **state)
{
    (void)state;
    struct lease lease;
    struct lease_record out;
    lease_init(&lease, &options);
    assert_wants(&lease, LEASE_READ, 0, &out);
    lease_feed(&lease, LEASE_ABSENT, NULL, 0);
    assert_wants(&lease, LEASE_CREATE, 0, &out);
    lease_feed(&lease, LEASE_REFUSED, NULL, 10);
    assert_false(lease_is_held(&lease, 10));
    assert_wants(&lease, LEASE_WAIT, 2009, &out);
    assert_in_range(lease_due(&lease, 10), 2010, 2410);
    read_lease(&lease, "other", "1", 2410);
    assert_wants(&lease, LEASE_WAIT, 2410, &out);
}

static void takes_a_free_lease_and_counts(void **state)
{
    (void)state;
    struct lease lease;
    struct lease_record out;
    lease_init(&lease, &options);
    read_lease(&lease, "", "7", 0);
    assert_wants(&lease, LEASE_UPDATE, 0, &out);
    assert_string_equal(out.version, "7");
    assert_int_equal(out.transitions, 5);
    assert_string_equal(out.acquired, "2026-01-01T00:00:00.250000Z");
}

static void renews_every_retry(void **state)
{
    (void)state;
    struct lease lease = holder_at_0();
    struct lease_record out;
    assert_int_equal(lease_due(&lease, 0), 2000);
    assert_wants(&lease, LEASE_WAIT, 1999, &out);
    assert_wants(&lease, LEASE_UPDATE, 2000, &out); /* without reading: nobody else wrote */
    assert_string_equal(out.version, "2");
    assert_int_equal(out.transitions, 5);
    assert_int_equal(lease_due(&lease, 2000), 10000); /* to notice the loss */
    accept(&lease, out, "3", 2100);
    assert_true(lease_is_held(&lease, 11999));
    assert_false(lease_is_held(&lease, 12000));
}

static void acquire_time_stays_when_renewed(void **state)
{
    (void)state;
    struct lease lease;
    struct lease_record out;
    lease_init(&lease, &options);
    read_lease(&lease, "me", "7", 0); /* as left by a write whose outcome was not known */
    assert_false(lease_is_held(&lease, 0));
    assert_wants(&lease, LEASE_UPDATE, 0, &out);
    assert_string_equal(out.acquired, "2025-01-01T00:00:00.000000Z");
    assert_string_equal(out.renewed, "2026-01-01T00:00:00.250000Z");
    assert_int_equal(out.transitions, 4);
}

static void another_is_respected_for_its_duration(void **state)
{
    (void)state;
    struct lease lease;
    struct lease_record out;
    lease_init(&lease, &options);
    int64_t now_ms = 1000;
    read_lease(&lease, "other", "7", now_ms);
    for (;;) { /* it sees the same version again and again */
        assert_wants(&lease, LEASE_WAIT, now_ms, &out);
        now_ms = lease_due(&lease, now_ms);
        if (now_ms >= 16000)
            break;
        read_lease(&lease, "other", "7", now_ms);
    }
    read_lease(&lease, "other", "7", now_ms);
    assert_wants(&lease, LEASE_UPDATE, now_ms, &out);
    assert_string_equal(out.holder, "me");
    assert_int_equal(out.transitions, 5);
}

static void a_renewal_starts_the_duration_anew(void **state)
{
    (void)state;
    struct lease lease;
    struct lease_record out;
    lease_init(&lease, &options);
    read_lease(&lease, "other", "7", 0);
    assert_wants(&lease, LEASE_WAIT, 0, &out);
    read_lease(&lease, "other", "8", 14000);
    assert_wants(&lease, LEASE_WAIT, 14000, &out);
    read_lease(&lease, "other", "8", 28999);
    assert_wants(&lease, LEASE_WAIT, 28999, &out);
    read_lease(&lease, "other", "8", 32000);
    assert_wants(&lease, LEASE_UPDATE, 32000, &out);
}

static void a_lease_deleted_under_its_holder_is_respected(void **state)
{
    (void)state;
    struct lease lease;
    struct lease_record out;
    lease_init(&lease, &options);
    read_lease(&lease, "other", "7", 0);
    assert_wants(&lease, LEASE_WAIT, 0, &out);
    assert_wants(&lease, LEASE_READ, 3000, &out);
    lease_feed(&lease, LEASE_ABSENT, NULL, 3000);
    assert_wants(&lease, LEASE_WAIT, 3000, &out);
    assert_wants(&lease, LEASE_READ, 15000, &out);
    lease_feed(&lease, LEASE_ABSENT, NULL, 15000);
    assert_wants(&lease, LEASE_CREATE, 15000, &out);
}

static void an_unknown_outcome_is_read_before_it_counts(void **state)
{
    (void)state;
    struct lease lease = holder_at_0();
    struct lease_record out;
    assert_wants(&lease, LEASE_UPDATE, 2000, &out);
    lease_feed(&lease, LEASE_UNKNOWN, NULL, 5000);
    assert_true(lease_is_held(&lease, 9999));
    read_lease(&lease, "me", "3", 8000); /* it was written, but nobody said so in time */
    assert_false(lease_is_held(&lease, 10000));
    assert_wants(&lease, LEASE_UPDATE, 8000, &out);
    accept(&lease, out, "4", 8100);
    assert_true(lease_is_held(&lease, 17999));
}

static void a_holder_that_is_replaced_knows_at_once(void **state)
{
    (void)state;
    struct lease lease = holder_at_0();
    struct lease_record out;
    assert_wants(&lease, LEASE_UPDATE, 2000, &out);
    lease_feed(&lease, LEASE_REFUSED, NULL, 2100);
    assert_true(lease_is_held(&lease, 2100)); /* it may have been a label */
    read_lease(&lease, "other", "9", 4600);
    assert_false(lease_is_held(&lease, 4600));
    assert_wants(&lease, LEASE_WAIT, 4600, &out);
}

static void release_frees_it_for_others(void **state)
{
    (void)state;
    struct lease lease = holder_at_0();
    struct lease_record out;
    lease_release(&lease, 500);
    assert_false(lease_is_held(&lease, 500));
    assert_wants(&lease, LEASE_UPDATE, 500, &out);
    assert_string_equal(out.holder, "");
    assert_string_equal(out.version, "2");
    assert_int_equal(out.duration_s, 1);
    assert_int_equal(out.transitions, 5);
    accept(&lease, out, "3", 600);
    assert_wants(&lease, LEASE_OVER, 600, &out);
    assert_int_equal(lease_due(&lease, 600), INT64_MAX);
}

static void release_waits_for_a_renewal_in_flight(void **state)
{
    (void)state;
    struct lease lease = holder_at_0();
    struct lease_record out;
    assert_wants(&lease, LEASE_UPDATE, 2000, &out);
    lease_release(&lease, 2100);
    assert_wants(&lease, LEASE_WAIT, 2100, &out);
    lease_feed(&lease, LEASE_UNKNOWN, NULL, 5000);
    assert_false(lease_is_held(&lease, 5000));
    read_lease(&lease, "me", "3", 8000);
    assert_wants(&lease, LEASE_UPDATE, 8000, &out);
    assert_string_equal(out.holder, "");
    lease_feed(&lease, LEASE_REFUSED, NULL, 8100);
    read_lease(&lease, "other", "5", 10600);
    assert_wants(&lease, LEASE_OVER, 10600, &out);
}

static void a_candidate_has_nothing_to_release(void **state)
{
    (void)state;
    struct lease lease;
    struct lease_record out;
    lease_init(&lease, &options);
    read_lease(&lease, "other", "7", 0);
    lease_release(&lease, 10);
    assert_wants(&lease, LEASE_OVER, 10, &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_the_lease_if_there_is_none),
        cmocka_unit_test(two_creators_one_is_refused),
        cmocka_unit_test(takes_a_free_lease_and_counts),
        cmocka_unit_test(renews_every_retry),
        cmocka_unit_test(acquire_time_stays_when_renewed),
        cmocka_unit_test(another_is_respected_for_its_duration),
        cmocka_unit_test(a_renewal_starts_the_duration_anew),
        cmocka_unit_test(a_lease_deleted_under_its_holder_is_respected),
        cmocka_unit_test(an_unknown_outcome_is_read_before_it_counts),
        cmocka_unit_test(a_holder_that_is_replaced_knows_at_once),
        cmocka_unit_test(release_frees_it_for_others),
        cmocka_unit_test(release_waits_for_a_renewal_in_flight),
        cmocka_unit_test(a_candidate_has_nothing_to_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
