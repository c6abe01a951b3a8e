#include "agent/trainer/phases.h"

#include "base/clock.h"
#include "tests/support.h"

enum { PASS_NS = 2000 };

/* Keeps the stream busy for PASS_NS or more. */
static int pass_time(void *args, struct error *err)
{
    (void)args, (void)err;
    int64_t begin_ns = clock_monotonic_ns();
    while (clock_monotonic_ns() < begin_ns + PASS_NS)
        continue;
    return 0;
}

/* Every moment from the first mark to the last is in one phase, the one that was marked. */
static void test_phases_share_the_time(void **state)
{
    (void)state;
    struct device *device;
    struct stream *stream;
    struct error err;
    assert_ok(device_open("cpu", 1, &device, &err), &err);
    assert_ok(stream_open(device, "compute", &stream, &err), &err);
    struct phases *phases = phases_open(stream);
    for (int step = 0; step < 2; step++) {
        int64_t begin_ns, end_ns;
        double s[RUN_STEP_PHASES], sum = 0;
        stream_timestamp(stream, &begin_ns);
        for (int i = 0; i < 300; i++) { /* more than one block of marks */
            phases_mark(phases, PHASE_FORWARD);
            stream_call(stream, pass_time, NULL, 0);
            enum run_phase before = phases_mark(phases, PHASE_COMMUNICATION);
            assert_int_equal(before, PHASE_FORWARD);
            stream_call(stream, pass_time, NULL, 0);
            assert_int_equal(phases_mark(phases, before), PHASE_COMMUNICATION);
        }
        phases_mark(phases, PHASE_OPTIMIZER);
        stream_timestamp(stream, &end_ns);
        assert_ok(stream_sync(stream, &err), &err);
        phases_take(phases, s);
        for (int i = 0; i < RUN_STEP_PHASES; i++)
            sum += s[i];
        double least_s = 300 * (PASS_NS - 1) / 1e9; /* one less: seconds are rounded */
        assert_true(s[PHASE_FORWARD] >= least_s && s[PHASE_COMMUNICATION] >= least_s);
        assert_true(s[PHASE_BACKWARD] == 0 && s[PHASE_OPTIMIZER] == 0);
        assert_true(sum <= (double)(end_ns - begin_ns) / 1e9 + 1e-9);
    }
    phases_close(phases);
    stream_close(stream);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_phases_share_the_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
