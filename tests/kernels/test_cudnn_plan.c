/* Whether the real cuDNN makes plans of attention's graphs, with which kernels and how much memory.
 * That needs no GPU: one is described to it, and a libcuda.so.1 of ours takes the kernels it
 * compiles. Where there is no libcudnn this is skipped. */
#include "base/mem.h"
#include "kernels/cuda/cudnn_attention.h"
#include "tests/support.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As cudnnBackendGetAttribute gives them for a GPU of the architecture. Versions from 9.28 on want
 * the last three, older ones pass them over. */
static const char properties[] =
    "{\"cudaDeviceId\":0,\"deviceName\":\"NVIDIA\",\"deviceVer\":%d,\"driverVer\":13000,"
    "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":9008,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,"
    "\"l2CacheSize\":52428800,\"totalGlobalMem\":85029158912,"
    "\"oversizedSharedMemoryPerBlock\":0,\"memoryBusWidth\":5120,\"smCountOrigin\":132}";

/* Columns of one packed tensor. */
#define SHAPE(b, t, h, kv, width)                                                                  \
    .B = b, .T_q = t, .T_k = t, .heads = h, .kv_heads = kv, .hd = width,                           \
    .q_stride = (h + 2 * kv) * width, .k_stride = (h + 2 * kv) * width,                            \
    .v_stride = (h + 2 * kv) * width, .scale = 0.125f

static const char *(*take_kernels)(void);

/* What came of a graph. */
struct outcome {
    bool has_plan;
    int64_t workspace; /* bytes; without a plan, what the last engine wanted */
    const char *kernels;
};

/* name: for messages. */
static struct outcome make_plan(const struct cudnn_api *api, const char *name, int architecture,
                                const struct attention_shape *shape, bool backward,
                                int64_t most_workspace)
{
    char text[sizeof properties + 32];
    struct cudnn_graph gpu;
    struct cudnn_attention a;
    int shared_bytes = architecture == 80 ? 166912 : 232448;
    int length = snprintf(text, sizeof text, properties, 10 * architecture, shared_bytes);
    cudnn_graph_open(&gpu, api);
    cudnn_descriptor device = cudnn_make(&gpu, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "a GPU");
    cudnn_set(&gpu, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length,
              text);
    cudnn_finalize(&gpu, device, "a GPU");
    if (gpu.failed)
        fail_msg("%s: properties: %s", name, gpu.reason);
    take_kernels();
    cudnn_attention_open(&a, api, device, shape, backward, most_workspace);
    if (!a.plan && !strstr(a.graph.reason, "of workspace are needed"))
        fail_msg("%s: %s: %s", name, a.graph.failed, a.graph.reason);
    struct outcome outcome = {a.plan, a.workspace, take_kernels()};
    cudnn_graph_close(&a.graph);
    cudnn_graph_close(&gpu);
    return outcome;
}

/* Kinds of GPUs and layouts that the targets have not. */
static const struct other_row {
    const char *name;
    int architecture;
    bool backward;
    struct attention_shape shape;
    int64_t most_workspace; /* bytes */
} other_rows[] = {
    {"H100, no mask", 90, false, {SHAPE(2, 1000, 4, 4, 128)}, 1 << 20},
    {"H100, backward, groups", 90, true, {SHAPE(2, 1024, 12, 4, 64), .causal = true}, 64 << 20},
    {"B200, causal", 100, false, {SHAPE(1, 2048, 16, 2, 128), .causal = true}, 1 << 20},
    {"A100, backward", 80, true, {SHAPE(1, 100, 2, 2, 128)}, 64 << 20},
};

/* What is trained, on an H100, with the workspace that each form takes. The backward with equal
 * bits keeps scores, 2 B heads T T bytes, and where heads are grouped 4 B heads T hd of gradients;
 * the other one the latter alone. */
enum form { FORWARD, BACKWARD, ANY_ORDER, FORMS };
static const struct target {
    const char *name;
    struct attention_shape shape;
    int64_t mib[FORMS];
} targets[] = {
    {"Llama 3.2 1B", {SHAPE(1, 8192, 32, 8, 64), .causal = true}, {0, 4160, 64}},
    {"Llama 3.1 8B", {SHAPE(1, 8192, 32, 8, 128), .causal = true}, {0, 4224, 128}},
    {"GPT-2", {SHAPE(16, 1024, 12, 12, 64), .causal = true}, {0, 384, 0}},
    {"GPT-2, half the batch", {SHAPE(8, 1024, 12, 12, 64), .causal = true}, {0, 192, 0}},
    {"Qwen 2.5 1.5B", {SHAPE(16, 1024, 12, 2, 128), .causal = true}, {0, 480, 96}},
    {"Llama 3.2 1B, short", {SHAPE(1, 2048, 32, 8, 64), .causal = true}, {0, 272, 16}},
};

static void check_target(const struct cudnn_api *api, const struct target *it, enum form form)
{
    const char *kernel = form == FORWARD ? "sm90_flash_fprop_wgmma" : "sm90_flash_bprop_wgmma";
    const int64_t most = 256; /* MiB, as cudnn_plans.c gives */
    struct attention_shape shape = it->shape;
    shape.nondeterministic = form == ANY_ORDER;
    const struct outcome got = make_plan(api, it->name, 90, &shape, form != FORWARD, most << 20);
    bool fits = it->mib[form] <= most;
    /* one that is refused is followed by others; a plan's is its own */
    if (!strstr(got.kernels, kernel) || (fits && strstr(strchr(got.kernels, '\n'), "sdpa")))
        fail_msg("%s, form %d: another kernel than %s: %s", it->name, form, kernel, got.kernels);
    if (got.has_plan != fits || got.workspace >> 20 != it->mib[form])
        fail_msg("%s, form %d: %s, with %lld MiB of workspace", it->name, form,
                 got.has_plan ? "a plan" : "no plan", (long long)(got.workspace >> 20));
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
    void *cuda = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    assert_non_null(cuda);
    *(void **)&take_kernels = dlsym(cuda, "fake_cuda_kernels");
    assert_non_null(take_kernels);
    if (cudnn_api_open(&api, &err) < 0) {
        print_message("# skipped: %s\n", err.msg);
        skip();
    }
    for (size_t i = 0; i < array_length(other_rows); i++) {
        const struct other_row *row = &other_rows[i];
        assert_true(make_plan(&api, row->name, row->architecture, &row->shape, row->backward,
                              row->most_workspace)
                        .has_plan);
    }
    for (size_t i = 0; i < array_length(targets); i++)
        for (int form = 0; form < FORMS; form++)
            check_target(&api, &targets[i], (enum form)form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
