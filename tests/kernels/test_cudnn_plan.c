/* Whether the real cuDNN makes plans of attention's graphs. That needs no GPU: one is described to
 * it, and a libcuda.so.1 of ours takes the kernels it compiles. Where there is no libcudnn this is
 * skipped. */
#include "kernels/cuda/cudnn_attention.h"
#include "tests/support.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As cudnnBackendGetAttribute gives them for a GPU of the architecture. */
static const char properties[] =
    "{\"cudaDeviceId\":0,\"deviceName\":\"NVIDIA\",\"deviceVer\":%d,\"driverVer\":13000,"
    "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":9008,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,"
    "\"l2CacheSize\":52428800,\"totalGlobalMem\":85029158912}";

/* Columns of one packed tensor. */
#define SHAPE(b, t, h, kv, width)                                                                  \
    .B = b, .T_q = t, .T_k = t, .heads = h, .kv_heads = kv, .hd = width,                           \
    .q_stride = (h + 2 * kv) * width, .k_stride = (h + 2 * kv) * width,                            \
    .v_stride = (h + 2 * kv) * width, .scale = 0.125f
static const struct plan_row {
    const char *name;
    int architecture, shared_bytes;
    bool backward;
    struct attention_shape shape;
    int64_t most_workspace; /* bytes */
} plan_rows[] = {
    {"H100, forward, Llama's heads, causal",
     90,
     232448,
     false,
     {SHAPE(1, 8192, 32, 8, 64), .causal = true},
     1 << 20},
    {"H100, forward, 128 wide", 90, 232448, false, {SHAPE(2, 1000, 4, 4, 128)}, 1 << 20},
    {"H100, backward, groups, causal",
     90,
     232448,
     true,
     {SHAPE(2, 1024, 12, 4, 64), .causal = true},
     (2 * 12 * 1024 * 1024 * 2) + (8 << 20)},
    {"B200, forward, causal",
     100,
     232448,
     false,
     {SHAPE(1, 2048, 16, 2, 128), .causal = true},
     1 << 20},
    {"A100, backward", 80, 166912, true, {SHAPE(1, 100, 2, 2, 128)}, 64 << 20},
};

static void check_plan(const struct cudnn_api *api, const struct plan_row *row)
{
    char text[sizeof properties + 32];
    struct cudnn_graph gpu;
    struct cudnn_attention attention;
    int length = snprintf(text, sizeof text, properties, 10 * row->architecture, row->shared_bytes);
    cudnn_graph_open(&gpu, api);
    cudnn_descriptor device = cudnn_make(&gpu, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "a GPU");
    cudnn_set(&gpu, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length,
              text);
    cudnn_finalize(&gpu, device, "a GPU");
    if (gpu.failed)
        fail_msg("%s: properties: %s", row->name, gpu.reason);
    cudnn_attention_open(&attention, api, device, &row->shape, row->backward, row->most_workspace);
    if (!attention.plan)
        fail_msg("%s: %s: %s", row->name, attention.graph.failed, attention.graph.reason);
    cudnn_graph_close(&attention.graph);
    cudnn_graph_close(&gpu);
}

static void test_plans(void **state)
{
    (void)state;
    struct cudnn_api api;
    struct error err;
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(length > 0);
    path[length] = '\0';
    char *end = strstr(path, "/tests/kernels/");
    assert_non_null(end);
    strcpy(end, "/fakes/libcuda.so.1");
    assert_non_null(dlopen(path, RTLD_NOW | RTLD_GLOBAL));
    if (cudnn_api_open(&api, &err) < 0) {
        print_message("# skipped: %s\n", err.msg);
        skip();
    }
    for (size_t i = 0; i < sizeof plan_rows / sizeof *plan_rows; i++)
        check_plan(&api, &plan_rows[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
