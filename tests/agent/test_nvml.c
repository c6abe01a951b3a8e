/* GPUs as NVIDIA's library tells of them, by a library of ours (tests/fakes/nvml.c), and as metrics
 * under our names and the DCGM exporter's. */
#include "tests/exposition_check.h"
#include "tests/support.h"

#include "agent/telemetry/gpu_poller.h"
#include "agent/telemetry/nvml.h"
#include "base/contract.h"
#include "base/mem.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE_BYTES = 256 * 1024 };

/* Where the two GPUs are, in an order that CUDA may have: by speed. */
static const char *const gpus[] = {"0000:a0:00.0", "0000:a1:00.0"};
static const char *const other_order[] = {"0000:a1:00.0", "0000:a0:00.0"};
static const char *const one_unknown[] = {"0000:b0:00.0", "0000:a1:00.0"};

static struct nvml *open_those(const char *kind, const char *const *pci, int count)
{
    struct nvml *nvml;
    struct error err;
    setenv("FAKE_NVML", kind, 1);
    assert_ok(nvml_open(pci, count, &nvml, &err), &err);
    return nvml;
}

static struct nvml *open_fake(const char *kind)
{
    return open_those(kind, gpus, 2);
}

static void gpus_are_counted_as_cuda_counts_them(void **state)
{
    (void)state;
    static const struct {
        const char *const *pci;
        int count;
        const char *uuids;   /* how theirs begin, behind "GPU-" */
        const char *numbers; /* of those that NVML knows */
    } rows[] = {{gpus, 2, "ab", "01"},
                {gpus, 1, "a", "0"},
                {other_order, 2, "ba", "01"},
                {other_order, 1, "b", "0"},
                {one_unknown, 2, "b", "1"}};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct nvml *nvml = open_those("", rows[i].pci, rows[i].count);
        assert_int_equal(nvml_count(nvml), strlen(rows[i].numbers));
        for (int k = 0; k < nvml_count(nvml); k++) {
            struct gpu_sample sample;
            nvml_read(nvml, k, &sample);
            assert_int_equal(sample.uuid[strlen("GPU-")], rows[i].uuids[k]);
            assert_int_equal(sample.gpu, rows[i].numbers[k] - '0');
        }
        nvml_close(nvml);
    }
}

static void what_is_not_there_is_said(void **state)
{
    (void)state;
    struct nvml *nvml;
    struct error err;
    setenv("FAKE_NVML", "no-driver", 1);
    assert_fails(nvml_open(gpus, 2, &nvml, &err), &err, ERR_IO, "Driver Not Loaded");
    setenv("FAKE_NVML", "", 1);
    char told[500];
    support_stderr_begin();
    int result = nvml_open(one_unknown, 1, &nvml, &err);
    support_stderr_end(told, sizeof told);
    assert_fails(result, &err, ERR_NOT_FOUND, "NVML finds no GPU at 0000:b0:00.0: Not Found");
    assert_string_equal(told, ""); /* by who asked */
    support_stderr_begin();
    nvml_close(open_those("", one_unknown, 2));
    support_stderr_end(told, sizeof told);
    assert_non_null(strstr(told, "warning GPU 0 has no metrics: NVML finds no GPU at 0000:b0"));
}

static void the_machine_is_told_of(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        bool is_mig, row_failure;
        double ecc_uncorrected;
    } rows[] = {{"", false, false, 0},
                {"ampere", false, false, 0},
                {"mig", true, false, 0},
                {"broken", false, true, 3}};
    struct nvml_facts facts;
    for (size_t i = 0; i < array_length(rows); i++) {
        setenv("FAKE_NVML", rows[i].kind, 1);
        nvml_read_facts(&facts);
        assert_int_equal(facts.library.why.code, ERR_NONE);
        assert_non_null(strstr(facts.library.file, "libnvidia-ml.so.1"));
        assert_string_equal(facts.driver, "550.54.15");
        assert_int_equal(facts.cuda, 12040);
        assert_int_equal(facts.count, 2);
        assert_string_equal(facts.gpus[1].model, "NVIDIA \"H100\" 80GB");
        assert_string_equal(facts.gpus[1].pci, other_order[0]);
        assert_int_equal(facts.gpus[1].is_mig, rows[i].is_mig);
        assert_int_equal(facts.gpus[1].row_failure, rows[i].row_failure);
        assert_true(facts.gpus[1].ecc_uncorrected == rows[i].ecc_uncorrected);
    }
    setenv("FAKE_NVML", "no-driver", 1);
    nvml_read_facts(&facts);
    assert_int_equal(facts.count, 0);
    assert_int_equal(facts.library.why.code, ERR_IO);
    assert_non_null(strstr(facts.library.file, "libnvidia-ml.so.1"));
}

static void values_are_in_base_units(void **state)
{
    (void)state;
    struct nvml *nvml = open_fake("");
    struct gpu_sample s;
    nvml_read(nvml, 0, &s);
    assert_true(isnan(s.value[GPU_TENSOR_ACTIVE])); /* between two readings only */
    nvml_read(nvml, 0, &s);
    static const struct {
        enum gpu_value value;
        double is;
    } rows[] = {
        {GPU_TEMPERATURE, 60},
        {GPU_MEMORY_TEMPERATURE, 71},
        {GPU_POWER, 512.345},
        {GPU_ENERGY, 9007199254.741},
        {GPU_SM_CLOCK, 1.98e9},
        {GPU_BUSY, 0.97},
        {GPU_ENCODER_BUSY, 0.03},
        {GPU_DECODER_BUSY, 0.08},
        {GPU_PCIE_REPLAYS, 6},
        {GPU_MEMORY_USED, 49.0 * (1 << 30)},
        {GPU_MEMORY_RESERVED, 1 << 30},
        {GPU_PROCESS_MEMORY, 42.0 * (1 << 30)},
        {GPU_NVLINK_BYTES, 1024 * 1024},
        {GPU_ECC_CORRECTED, 5},
        {GPU_CLOCK_REASONS, 0x24},
        {GPU_TENSOR_ACTIVE, 0.05},
        {GPU_PCIE_RECEIVED, 21.0 * (1 << 20)},
        {GPU_LAST_XID, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        if (fabs(s.value[rows[i].value] - rows[i].is) > 1e-12 * rows[i].is)
            fail_msg("value %d is %.17g, not %.17g", rows[i].value, s.value[rows[i].value],
                     rows[i].is);
    assert_true(isnan(s.value[GPU_FP64_ACTIVE])); /* not supported: nothing else is lost */
    nvml_close(nvml);
    nvml = open_fake("ampere");
    nvml_read(nvml, 1, &s);
    nvml_read(nvml, 1, &s);
    assert_true(isnan(s.value[GPU_TENSOR_ACTIVE]) && isnan(s.value[GPU_MEMORY_TEMPERATURE]));
    assert_true(isnan(s.value[GPU_PROCESS_MEMORY]) && isnan(s.value[GPU_POWER]));
    assert_true(isnan(s.value[GPU_ENCODER_BUSY]) && s.value[GPU_DECODER_BUSY] == 0.09);
    assert_true(s.value[GPU_MEMORY_USED] == 50.0 * (1 << 30));
    nvml_close(nvml);
}

/* Whether the memory of that process is among ours. */
static bool is_counted(pid_t pid)
{
    struct gpu_sample s;
    char kind[32];
    snprintf(kind, sizeof kind, "process=%d", (int)pid);
    struct nvml *nvml = open_fake(kind);
    nvml_read(nvml, 1, &s);
    nvml_close(nvml);
    return s.value[GPU_PROCESS_MEMORY] == 42.0 * (1 << 30);
}

/* This process as the launcher of two, of which the first asks. */
static void ranks_of_one_launcher_are_counted_together(void **state)
{
    (void)state;
    int status;
    pid_t second = fork();
    if (second == 0) {
        alarm(SUPPORT_PATIENCE_S);
        pause();
        _exit(0);
    }
    pid_t first = fork();
    if (first == 0)
        _exit(is_counted(second) && !is_counted(getppid()) ? 0 : 1);
    assert_int_equal(waitpid(first, &status, 0), first);
    bool is_childs_counted = is_counted(second);
    kill(second, SIGKILL);
    assert_int_equal(waitpid(second, NULL, 0), second);
    assert_int_equal(status, 0);
    assert_false(is_childs_counted); /* a launcher counts nobody, and nobody else's ranks count */
}

/* ---- pages ---- */

static const struct gpu_labels labels = {.driver = "550.54.15",
                                         .hostname = "node-1",
                                         .pod_namespace = "pytorch",
                                         .pod = "mnist-master-0",
                                         .container = "",
                                         .job = "mnist"};

static void print(const char *kind, enum gpu_names names, struct str *page)
{
    struct nvml *nvml = open_fake(kind);
    struct gpu_sample samples[2];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 2; i++)
            nvml_read(nvml, i, &samples[i]);
    nvml_close(nvml);
    str_init(page, PAGE_BYTES);
    gpu_metrics_print(samples, 2, names, &labels, page);
    exposition_check(str_text(page));
}

#define DCGM(gpu, letter, bus, minor)                                                              \
    "{gpu=\"" gpu "\",UUID=\"GPU-" letter "000000" gpu "-aaaa\",pci_bus_id=\"00000000:" bus        \
    ":00.0\",device=\"nvidia" minor                                                                \
    "\",modelName=\"NVIDIA \\\"H100\\\" 80GB\",Hostname=\"node-1\",hostname=\"node-1\",\
DCGM_FI_DRIVER_VERSION=\"550.54.15\",namespace=\"pytorch\",pod=\"mnist-master-0\"} "

static void dashboards_find_the_names_they_ask_for(void **state)
{
    (void)state;
    auto_str struct str page;
    print("", GPU_NAMES_DCGM, &page);
    static const char *const lines[] = {
        "DCGM_FI_DEV_GPU_TEMP" DCGM("0", "a", "A0", "4") "60\n",
        "DCGM_FI_DEV_GPU_TEMP" DCGM("1", "b", "A1", "5") "61\n",
        "DCGM_FI_DEV_POWER_USAGE" DCGM("0", "a", "A0", "4") "512.345000\n",
        "DCGM_FI_DEV_SM_CLOCK" DCGM("0", "a", "A0", "4") "1980\n",
        "DCGM_FI_DEV_GPU_UTIL" DCGM("0", "a", "A0", "4") "97\n",
        "DCGM_FI_DEV_ENC_UTIL" DCGM("0", "a", "A0", "4") "3\n",
        "DCGM_FI_DEV_DEC_UTIL" DCGM("1", "b", "A1", "5") "9\n",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER" DCGM("1", "b", "A1", "5") "7\n",
        "# TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER counter\n",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" DCGM("1", "b", "A1", "5") "0.050000\n",
        "DCGM_FI_DEV_FB_USED" DCGM("0", "a", "A0", "4") "50176\n",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" DCGM("0", "a", "A0", "4") "9007199254741\n",
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS" DCGM("0", "a", "A0", "4") "36\n",
        "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n",
    };
    for (size_t i = 0; i < array_length(lines); i++)
        if (!strstr(str_text(&page), lines[i]))
            fail_msg("missing: %s", lines[i]);
    assert_null(strstr(str_text(&page), "fsdp_"));
    assert_null(strstr(str_text(&page), "FP64"));
}

static void our_own_names_are_the_default(void **state)
{
    (void)state;
    auto_str struct str page;
    print("", GPU_NAMES_NATIVE, &page);
    assert_null(strstr(str_text(&page), "DCGM"));
#define OURS                                                                                       \
    "gpu=\"0\",uuid=\"GPU-a0000000-aaaa\",model_name=\"NVIDIA \\\"H100\\\" 80GB\","                \
    "job_name=\"mnist\",node=\"node-1\""
    static const struct {
        const char *sample;
        double value;
    } rows[] = {
        {"fsdp_gpu_temperature_celsius{" OURS "}", 60},
        {"fsdp_gpu_energy_joules_total{" OURS "}", 9007199254.741},
        {"fsdp_gpu_utilization_ratio{" OURS "}", 0.97},
        {"fsdp_gpu_throttle_reason{" OURS ",reason=\"power_cap\"}", 1},
        {"fsdp_gpu_throttle_reason{" OURS ",reason=\"hw_slowdown\"}", 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        double found = exposition_check_value(str_text(&page), rows[i].sample);
        if (found != rows[i].value)
            fail_msg("%s %.17g", rows[i].sample, found);
    }
    str_free(&page);
    print("ampere", GPU_NAMES_BOTH, &page);
    assert_non_null(strstr(str_text(&page), "DCGM_FI_DEV_GPU_TEMP"));
    assert_non_null(strstr(str_text(&page), "fsdp_gpu_temperature_celsius"));
    assert_null(strstr(str_text(&page), "TENSOR")); /* no GPU tells: no line */
    assert_null(strstr(str_text(&page), "ENC_UTIL"));
}

/* ---- beside the training ---- */

struct seen {
    pthread_mutex_t lock;
    pthread_cond_t more;
    char page[PAGE_BYTES];
};

static void take_page(void *ctx, const char *text, size_t bytes)
{
    struct seen *seen = ctx;
    pthread_mutex_lock(&seen->lock);
    memcpy(seen->page, text, bytes);
    seen->page[bytes] = '\0';
    pthread_cond_signal(&seen->more);
    pthread_mutex_unlock(&seen->lock);
}

static struct gpu_poller *poll_fake(const char *kind, struct seen *seen)
{
    const struct gpu_poller_setting setting = {.pci = gpus,
                                               .gpus = 2,
                                               .names = GPU_NAMES_BOTH,
                                               .labels = labels,
                                               .interval_ms = 3600 * 1000,
                                               .page = take_page,
                                               .ctx = seen};
    struct gpu_poller *poller;
    struct error err;
    setenv("FAKE_NVML", kind, 1);
    assert_ok(gpu_poller_open(&poller, &setting, &err), &err);
    return poller;
}

/* The first page comes before open returns; critical errors do not wait for the interval. */
static void a_critical_error_is_on_the_page_at_once(void **state)
{
    (void)state;
    static struct seen seen = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, ""};
    struct gpu_poller *poller = poll_fake("xid", &seen);
    pthread_mutex_lock(&seen.lock);
    assert_non_null(strstr(seen.page, "DCGM_FI_DRIVER_VERSION=\"550.54.15\""));
    while (!strstr(seen.page, "xid=\"79\"} 2\n"))
        pthread_cond_wait(&seen.more, &seen.lock);
    assert_non_null(strstr(seen.page, "xid=\"31\"} 1\n"));
    assert_non_null(
        strstr(seen.page, "err_code=\"79\",err_msg=\"GPU has fallen off the bus\"} 79\n"));
    exposition_check(seen.page);
    pthread_mutex_unlock(&seen.lock);
    gpu_poller_close(poller);
}

/* However soon the end comes after it. */
static void a_critical_error_is_seen_before_the_end(void **state)
{
    (void)state;
    static struct seen seen = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, ""};
    gpu_poller_close(poll_fake("xid", &seen));
    assert_non_null(strstr(seen.page, "xid=\"31\"} 1\n"));
    assert_non_null(strstr(seen.page, "xid=\"79\"} 2\n"));
    assert_non_null(strstr(seen.page, "xid=\"79\",meaning=\"GPU has fallen off the bus\","
                                      "action=\"restart the machine\"} 1\n"));
}

/* Each Xid once, however often it comes, with what to do; the metric counts all. */
static void a_critical_error_is_logged_once_with_what_to_do(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "GPU 1 reports Xid 48: double bit ECC error (ROBUST_CHANNEL_GPU_ECC_DBE): reset the GPU "
        "before it is used again\n",
        "GPU 1 reports Xid 63: row remapping recorded (INFOROM_DRAM_RETIREMENT_EVENT): the GPU "
        "needs no action\n",
        "GPU 1 reports Xid 900: look it up at https://docs.nvidia.com/deploy/xid-errors\n",
    };
    static struct seen seen = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, ""};
    char told[2000];
    support_stderr_begin();
    gpu_poller_close(poll_fake("xid=48,900,48,63,48,900", &seen));
    support_stderr_end(told, sizeof told);
    for (size_t i = 0; i < array_length(lines); i++) {
        const char *first = strstr(told, lines[i]);
        assert_non_null(first);
        assert_null(strstr(first + 1, lines[i]));
    }
    assert_non_null(strstr(seen.page, "xid=\"48\"} 3\n"));
    assert_non_null(strstr(seen.page, "xid=\"900\"} 2\n"));
}

int main(int argc, char **argv)
{
    (void)argc;
    /* build/<variant>/tests/agent/test_nvml -> build/<variant>/fakes */
    auto_free char *fakes =
        xasprintf("%.*s/fakes", (int)(strstr(argv[0], "/tests/agent/") - argv[0]), argv[0]);
    setenv(ENV_LIBRARY_PATH, fakes, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_are_counted_as_cuda_counts_them),
        cmocka_unit_test(what_is_not_there_is_said),
        cmocka_unit_test(the_machine_is_told_of),
        cmocka_unit_test(values_are_in_base_units),
        cmocka_unit_test(ranks_of_one_launcher_are_counted_together),
        cmocka_unit_test(dashboards_find_the_names_they_ask_for),
        cmocka_unit_test(our_own_names_are_the_default),
        cmocka_unit_test(a_critical_error_is_on_the_page_at_once),
        cmocka_unit_test(a_critical_error_is_seen_before_the_end),
        cmocka_unit_test(a_critical_error_is_logged_once_with_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
