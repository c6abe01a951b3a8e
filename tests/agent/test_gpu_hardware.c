/* Which signs of a GPU make a run leave its node, by the table, by numbers, and by a library of
 * ours (tests/fakes/nvml.c). */
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

static struct gpu_poller *poll_fake(const char *kind, int interval_ms)
{
    static const char *const gpus[] = {"0000:a0:00.0", "0000:a1:00.0"};
    static const struct gpu_labels labels = {.hostname = "", .pod = "", .job = ""};
    const struct gpu_poller_setting setting = {
        .pci = gpus, .gpus = 2, .labels = labels, .interval_ms = interval_ms, .page = drop_page};
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
        struct gpu_poller *poller = poll_fake(rows[i].kind, rows[i].interval_ms);
        for (int looks = 0; looks < 3; looks++)
            gpu_poller_look(poller, SUPPORT_PATIENCE_MS);
        assert_int_equal(gpu_poller_sign(poller, sign), rows[i].sign[0] != '\0');
        assert_string_equal(sign, rows[i].sign);
        gpu_poller_close(poller);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
