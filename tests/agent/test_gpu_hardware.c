/* Which signs of a GPU make a run leave its node, and which are only told, by the table, by
 * numbers, and by a library of ours (tests/fakes/nvml.c). */
#include "tests/support.h"

#include "agent/telemetry/gpu_poller.h"
#include "base/contract.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void some_xids_are_signs(void **state)
{
    (void)state;
    static const struct {
        uint64_t xid;
        const char *sign;
    } rows[] = {
        {79, "GPU 3 reports Xid 79: GPU has fallen off the bus: restart the machine"},
        {48, "GPU 3 reports Xid 48: double bit ECC error: reset the GPU before it is used again"},
        {142, "GPU 3 reports Xid 142: video encoder 3 failed: have the machine checked, contact "
              "support"},
        {155, "GPU 3 reports Xid 155: an NVLink went down: reset the GPU before it is used again"},
        {31, NULL},  /* the program's own */
        {94, NULL},  /* contained: the program starts again */
        {63, NULL},  /* informs */
        {45, NULL},  /* another one says what to do */
        {900, NULL}, /* nobody knows */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char sign[GPU_SIGN_BYTES] = "";
        assert_int_equal(gpu_hardware_xid(3, rows[i].xid, sign), rows[i].sign != NULL);
        assert_string_equal(sign, rows[i].sign ? rows[i].sign : "");
    }
}

static void memory_that_begins_to_fail_is_a_sign(void **state)
{
    (void)state;
    static const struct {
        enum gpu_value value;
        double first, now;
        const char *sign;
    } rows[] = {
        {GPU_ROW_FAILURE, 0, 1, "GPU 2 cannot replace a faulty row of its memory any more"},
        {GPU_ROW_FAILURE, 1, 1, NULL}, /* it was so when the run began */
        {GPU_ROW_FAILURE, (double)NAN, 1, NULL},
        {GPU_ROW_FAILURE, 0, (double)NAN, NULL},
        {GPU_ROW_PENDING, 0, 1,
         "GPU 2 has a faulty row of its memory, which is replaced when it is reset"},
        {GPU_ECC_UNCORRECTED, 3, 4, "GPU 2 has a memory error that ECC could not correct"},
        {GPU_ECC_UNCORRECTED, 3, 3, NULL},
        {GPU_ECC_CORRECTED, 3, 4000, NULL},
        {GPU_ROWS_UNCORRECTABLE, 0, 1, NULL}, /* replaced already */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct gpu_sample first = {.gpu = 2}, now = {.gpu = 2};
        for (int k = 0; k < GPU_VALUES; k++)
            first.value[k] = now.value[k] = (double)NAN;
        first.value[rows[i].value] = rows[i].first;
        now.value[rows[i].value] = rows[i].now;
        char sign[GPU_SIGN_BYTES] = "";
        assert_int_equal(gpu_hardware_memory(&first, &now, sign), rows[i].sign != NULL);
        assert_string_equal(sign, rows[i].sign ? rows[i].sign : "");
    }
}

static void drop_page(void *ctx, const char *text, size_t bytes)
{
    (void)ctx, (void)text, (void)bytes;
}

static struct gpu_poller *poll_fake(const char *kind, int interval_ms, int64_t slowdown_ms)
{
    static const char *const gpus[] = {"0000:a0:00.0", "0000:a1:00.0"};
    static const struct gpu_labels labels = {.hostname = "", .pod = "", .job = ""};
    const struct gpu_poller_setting setting = {.pci = gpus,
                                               .gpus = 2,
                                               .labels = labels,
                                               .interval_ms = interval_ms,
                                               .slowdown_ms = slowdown_ms,
                                               .page = drop_page};
    struct gpu_poller *poller;
    struct error err;
    setenv("FAKE_NVML", kind, 1);
    assert_ok(gpu_poller_open(&poller, &setting, &err), &err);
    return poller;
}

/* Who fails may be told of its GPU's error after the call that met it: it looks once more. */
static void the_first_sign_is_kept(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        int interval_ms;
        const char *sign;
    } rows[] = {
        {"xid=31,63,74,79", 3600 * 1000,
         "GPU 1 reports Xid 74: NVLink error: reset the GPU before it is used again"},
        {"wears", 1, "GPU 1 has a memory error that ECC could not correct"},
        {"xid=31", 1, ""},
        {"broken", 1, ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char sign[GPU_SIGN_BYTES];
        struct gpu_poller *poller = poll_fake(rows[i].kind, rows[i].interval_ms, 1);
        for (int looks = 0; looks < 3; looks++)
            gpu_poller_look(poller, SUPPORT_PATIENCE_MS);
        assert_int_equal(gpu_poller_sign(poller, sign), rows[i].sign[0] != '\0');
        assert_string_equal(sign, rows[i].sign);
        gpu_poller_close(poller);
    }
}

static void slowdowns_that_last_are_told(void **state)
{
    (void)state;
    enum { LEAST_MS = 60000, LOOKS = 12 };
    enum { COOL = 0x4 | 0x20, HOT = 0x8 | 0x40, SLOW = 0x8, UNKNOWN = -1 };
    static const struct {
        const char *what;
        struct {
            int passed_ms, mask;
        } looks[LOOKS];
        const char *news; /* a letter a look: '.', 'b'egins, is 'o'ver */
    } rows[] = {
        {"hot for a minute",
         {{0, HOT}, {30000, HOT}, {29999, HOT}, {1, HOT}, {9000, HOT}},
         "...b."},
        {"for a moment", {{0, COOL}, {60000, SLOW}, {60000, COOL}, {60000, SLOW}}, "...."},
        {"at two looks a minute apart", {{0, COOL}, {60000, SLOW}, {60000, SLOW}}, "..b"},
        {"at the first look", {{0, SLOW}, {60000, COOL}, {60000, SLOW}, {60000, SLOW}}, "...b"},
        {"software's work", {{0, COOL}, {60000, COOL}, {60000, COOL}}, "..."},
        {"now and then",
         {{0, HOT}, {40000, HOT}, {9000, COOL}, {20000, COOL}, {9000, HOT}, {40000, HOT}},
         ".....b"},
        {"not known", {{60000, UNKNOWN}, {60000, UNKNOWN}}, ".."},
        {"not known for a while",
         {{0, HOT}, {40000, HOT}, {60000, UNKNOWN}, {60000, UNKNOWN}, {19999, HOT}, {1, HOT}},
         ".....b"},
        {"not known, and told",
         {{0, HOT}, {60000, HOT}, {60000, UNKNOWN}, {60000, UNKNOWN}, {1, HOT}, {60000, COOL}},
         ".b...."},
        {"over, and anew",
         {{0, HOT},
          {60000, HOT},
          {9000, COOL},
          {59999, COOL},
          {1, COOL},
          {1, COOL},
          {9000, HOT},
          {60000, HOT},
          {1, HOT},
          {9000, COOL},
          {60000, COOL}},
         ".b..o..b..o"},
        {"how long it is over counts, too",
         {{0, HOT}, {60000, HOT}, {0, COOL}, {30000, COOL}, {0, HOT}, {30000, HOT}},
         ".b...."},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct gpu_slowdown s = {0};
        char news[LOOKS + 1] = "";
        for (size_t k = 0; k < strlen(rows[i].news); k++) {
            struct gpu_sample now = {.gpu = 3};
            int mask = rows[i].looks[k].mask;
            now.value[GPU_CLOCK_REASONS] = mask == UNKNOWN ? (double)NAN : mask;
            news[k] = ".bo"[gpu_slowdown_look(&s, &now, rows[i].looks[k].passed_ms, LEAST_MS)];
        }
        if (strcmp(news, rows[i].news) != 0)
            fail_msg("%s: %s, not %s", rows[i].what, news, rows[i].news);
    }
}

static void their_words_name_the_reason(void **state)
{
    (void)state;
    static const struct {
        int mask;
        double celsius;
        const char *text;
    } rows[] = {
        {0x8 | 0x40, 91,
         "GPU 3 is slowed down by its hardware to half its clocks or less, as it is too hot "
         "(nvmlClocksThrottleReasonHwThermalSlowdown), at 91 degrees Celsius: look at its cooling "
         "and power"},
        {0x8 | 0x80, (double)NAN,
         "GPU 3 is slowed down by its hardware to half its clocks or less, as its power supply "
         "asks for it (nvmlClocksThrottleReasonHwPowerBrakeSlowdown): look at its cooling and "
         "power"},
        {0x8, (double)NAN,
         "GPU 3 is slowed down by its hardware to half its clocks or less, as it is too hot or "
         "draws too much power (nvmlClocksThrottleReasonHwSlowdown): look at its cooling and "
         "power"},
        {0x4, 60, "GPU 3 is slowed down by its hardware no more, at 60 degrees Celsius"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct gpu_sample now = {.gpu = 3};
        char text[GPU_SLOWDOWN_BYTES];
        now.value[GPU_CLOCK_REASONS] = rows[i].mask;
        now.value[GPU_TEMPERATURE] = rows[i].celsius;
        gpu_slowdown_describe(&now, text);
        assert_string_equal(text, rows[i].text);
    }
}

/* Each look counts for two milliseconds at most. */
static void a_slow_gpu_is_logged_and_stays(void **state)
{
    (void)state;
    static const int64_t least_ms[] = {2, 0};
    for (size_t i = 0; i < array_length(least_ms); i++) {
        char told[1000], sign[GPU_SIGN_BYTES];
        support_stderr_begin();
        struct gpu_poller *poller = poll_fake("hot", 1, least_ms[i]);
        for (int looks = 0; looks < 5; looks++)
            gpu_poller_look(poller, SUPPORT_PATIENCE_MS);
        bool is_sign = gpu_poller_sign(poller, sign);
        gpu_poller_close(poller);
        support_stderr_end(told, sizeof told);
        assert_false(is_sign);
        const char *begins = strstr(told, "warning GPU 1 is slowed down by its hardware to half");
        const char *over = strstr(told, "info GPU 1 is slowed down by its hardware no more");
        assert_int_equal(begins && over && begins<over, least_ms[i]> 0);
        assert_null(strstr(told, "GPU 0"));
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    /* build/<variant>/tests/agent/test_gpu_hardware -> build/<variant>/fakes */
    auto_free char *fakes =
        xasprintf("%.*s/fakes", (int)(strstr(argv[0], "/tests/agent/") - argv[0]), argv[0]);
    setenv(ENV_LIBRARY_PATH, fakes, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_xids_are_signs),
        cmocka_unit_test(memory_that_begins_to_fail_is_a_sign),
        cmocka_unit_test(the_first_sign_is_kept),
        cmocka_unit_test(slowdowns_that_last_are_told),
        cmocka_unit_test(their_words_name_the_reason),
        cmocka_unit_test(a_slow_gpu_is_logged_and_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
