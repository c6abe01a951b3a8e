/* Why a GPU cannot be had: one line for each reason. Those of a driver and a GPU are told by the
 * emulated one, where the tests run on it. */
#include "kernels/device.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

/* First of all: what is loaded once stays. */
static void test_library(void **state)
{
    (void)state;
    const char *named = getenv("SHOAL_CUDA_LIBRARY");
    char *before = named ? strdup(named) : NULL;
    struct device *device;
    struct error err;
    setenv("SHOAL_CUDA_LIBRARY", "/nowhere/libshoal_cuda.so", 1);
    assert_fails(device_open("cuda", 1, &device, &err), &err, ERR_UNSUPPORTED,
                 "the GPU backend cannot be loaded: /nowhere/libshoal_cuda.so");
    assert_int_equal(device_count_gpus(&err), 0);
    assert_non_null(strstr(err.msg, "/nowhere/"));
    setenv("SHOAL_CUDA_LIBRARY", "libm.so.6", 1);
    assert_fails(device_open("cuda:1", 1, &device, &err), &err, ERR_UNSUPPORTED,
                 "libm.so.6 is of another build than this program");
    unsetenv("SHOAL_CUDA_LIBRARY");
    /* test programs have none beside them */
    assert_fails(device_open("cuda", 1, &device, &err), &err, ERR_UNSUPPORTED,
                 "no GPU support in this build: libshoal_cuda.so is neither in /");
    if (before)
        setenv("SHOAL_CUDA_LIBRARY", before, 1);
    free(before);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {"cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda1", "gpu"};
    struct device *device;
    struct error err;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_fails(device_open(names[i], 1, &device, &err), &err, ERR_UNSUPPORTED, names[i]);
}

struct reason {
    const char *emulation, *device, *told;
    int count;            /* of device_count_gpus() */
    enum error_code code; /* its reason; ERR_NONE: there are some */
};
static const struct reason reasons[] = {
    {"driver=0", "cuda", "no NVIDIA driver answers on this machine (libcuda.so.1)", 0,
     ERR_NOT_FOUND},
    {"driver=12040", "cuda", "driver is too old: it knows CUDA 12.4, this build needs 13.0", 0,
     ERR_UNSUPPORTED},
    {"gpus=0", "cuda", "this process sees no GPU: no CUDA-capable device is detected", 0,
     ERR_NOT_FOUND},
    {"count_error=802", "cuda",
     "system not yet initialized; machines with NVSwitch need nvidia-fab", 0, ERR_UNSUPPORTED},
    {"count_error=803", "cuda", "of two versions: restart the machine, or remove the other", 0,
     ERR_UNSUPPORTED},
    {"gpus=2", "cuda:2", "no GPU 2: this process sees 2, counted from 0", 2, ERR_NONE},
    {"capability=70", "cuda", "GPU 0 (emulated GPU) has compute capability 7.0: at least 7.5", 1,
     ERR_NONE},
    {"built_for=80+90,capability=89", "cuda",
     "no code for GPU 0 (emulated GPU, compute capability 8.9): build it with CUDA_ARCHS=89", 1,
     ERR_NONE},
    {"built_for=80+90,capability=75", "cuda",
     "no code for GPU 0 (emulated GPU, compute capability 7.5): build it with CUDA_ARCHS=75", 1,
     ERR_NONE},
};

static void test_reasons(void **state)
{
    (void)state;
    const char *set = getenv("SHOAL_EMULATION");
    char *before = set ? strdup(set) : NULL;
    struct device *device;
    struct error err;
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        setenv("SHOAL_EMULATION", reasons[i].emulation, 1);
        err.code = ERR_NONE;
        assert_int_equal(device_count_gpus(&err), reasons[i].count);
        assert_int_equal(err.code, reasons[i].code);
        assert_fails(device_open(reasons[i].device, 1, &device, &err), &err, ERR_UNSUPPORTED,
                     reasons[i].told);
    }
    setenv("SHOAL_EMULATION", "gpus=2,built_for=80+90", 1);
    assert_ok(device_open("cuda:1", 1, &device, &err), &err);
    assert_string_equal(device_name(device), "cuda");
    assert_string_equal(device_uuid(device), "GPU-00000000-0000-0000-0000-000000000001");
    assert_false(device_is_host(device));
    char pci[DEVICE_PCI_BYTES];
    assert_true(device_pci("cuda:1", pci));
    assert_string_equal(pci, "0000:a1:00.0");
    assert_false(device_pci("cuda:2", pci) || device_pci("cpu", pci));
    assert_int_equal(device_cuda_version(device), 13000);
    device_close(device);
    /* the driver of an older minor version */
    setenv("SHOAL_EMULATION", "runtime=12080,driver=12020", 1);
    assert_ok(device_open("cuda", 1, &device, &err), &err);
    assert_int_equal(device_cuda_version(device), 12020);
    device_close(device);
    unsetenv("SHOAL_EMULATION");
    if (before)
        setenv("SHOAL_EMULATION", before, 1);
    free(before);
}

/* Device memory that is not there is an error that says what it was for. */
static void test_out_of_memory(void **state)
{
    (void)state;
    struct device *device;
    struct error err;
    void *memory;
    assert_ok(device_open(support_device(), 1, &device, &err), &err);
    int64_t total, left = device_memory_free_bytes(device, &total);
    assert_true(left > 0 && left <= total);
    assert_fails(device_alloc(device, MEMORY_SHARD, (size_t)total + 1, "fc1", &memory, &err), &err,
                 ERR_MEMORY, "no device memory for fc1 (shard)");
    assert_ok(device_alloc(device, MEMORY_SHARD, 1000, "fc1", &memory, &err), &err);
    device_free(device, memory);
    assert_ok(device_host_alloc(device, 1000, "batch", &memory, &err), &err);
    assert_int_equal((uintptr_t)memory % 64, 0);
    memset(memory, 0, 1000);
    device_host_free(device, memory);
    device_close(device);
}

/* Stamps are in the order of the work and far enough apart. */
static void test_stamps(void **state)
{
    (void)state;
    struct device *device;
    struct stream *stream;
    struct error err;
    enum { STAMPS = 40 };
    int64_t ns[STAMPS];
    assert_ok(device_open(support_device(), 1, &device, &err), &err);
    assert_ok(stream_open(device, "stamps", &stream, &err), &err);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < STAMPS; i++)
            stream_timestamp(stream, &ns[i]);
        assert_ok(stream_sync(stream, &err), &err);
        for (int i = 1; i < STAMPS; i++)
            assert_true(ns[i] >= ns[i - 1] && ns[i] - ns[i - 1] < 10 * INT64_C(1000000000));
    }
    stream_close(stream);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest anywhere[] = {
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_stamps),
    };
    const struct CMUnitTest gpu[] = {
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_stamps),
    };
    const struct CMUnitTest emulated_gpu[] = {
        cmocka_unit_test(test_library), cmocka_unit_test(test_names),
        cmocka_unit_test(test_reasons), cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_stamps),
    };
    if (support_is_emulated())
        return cmocka_run_group_tests(emulated_gpu, NULL, NULL);
    if (strcmp(support_device(), "cuda") == 0)
        return cmocka_run_group_tests(gpu, NULL, NULL);
    return cmocka_run_group_tests(anywhere, NULL, NULL);
}
