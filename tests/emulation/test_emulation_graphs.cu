/* Graphs of the emulated GPU: a capture queues nothing, a launch runs what the nodes then hold, and
 * what CUDA forbids meanwhile is an error. */
#include "tests/emulation/asan.h"
#include "tests/emulation/emulation.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string>

#define LAUNCH(stream, kernel, blocks, threads, shared_bytes, ...)                                 \
    emulation::launch_kernel(stream, #kernel, {__FILE__, __LINE__}, dim3(blocks), dim3(threads),   \
                             (size_t)(shared_bytes), kernel, __VA_ARGS__)

static __global__ void add_kernel(int *y, int value)
{
    *y += value;
}

/* A stream, a number on the GPU that starts as 0, and another stream's event that was recorded. */
struct fixture {
    cudaStream_t stream, other;
    cudaEvent_t recorded, fresh;
    int *y;
};

static fixture fixture_open()
{
    fixture f;
    assert_int_equal(cudaStreamCreateWithFlags(&f.stream, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithFlags(&f.other, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaEventCreateWithFlags(&f.recorded, cudaEventDefault), cudaSuccess);
    assert_int_equal(cudaEventCreateWithFlags(&f.fresh, cudaEventDefault), cudaSuccess);
    assert_int_equal(cudaMalloc((void **)&f.y, sizeof *f.y), cudaSuccess);
    assert_int_equal(cudaMemsetAsync(f.y, 0, sizeof *f.y, f.stream), cudaSuccess);
    assert_int_equal(cudaEventRecord(f.recorded, f.other), cudaSuccess);
    return f;
}

static void fixture_close(fixture *f)
{
    cudaStreamSynchronize(f->stream);
    cudaEventDestroy(f->recorded);
    cudaEventDestroy(f->fresh);
    cudaFree(f->y);
    cudaStreamDestroy(f->stream);
    cudaStreamDestroy(f->other);
    cudaGetLastError();
}

static int number_of(const fixture &f)
{
    int host = -1;
    assert_int_equal(cudaMemcpyAsync(&host, f.y, sizeof host, cudaMemcpyDefault, f.stream),
                     cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(f.stream), cudaSuccess);
    return host;
}

static void begin(const fixture &f)
{
    assert_int_equal(cudaStreamBeginCapture(f.stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
}

/* Adds each of the values, and sets the number to 0 first if `clears`. */
static cudaGraph_t graph_of(const fixture &f, bool clears, int first, int second)
{
    cudaGraph_t graph;
    begin(f);
    if (clears)
        cudaMemsetAsync(f.y, 0, sizeof *f.y, f.stream);
    LAUNCH(f.stream, add_kernel, 1, 1, 0, f.y, first);
    if (!clears)
        LAUNCH(f.stream, add_kernel, 1, 1, 0, f.y, second);
    assert_int_equal(cudaStreamEndCapture(f.stream, &graph), cudaSuccess);
    return graph;
}

static void test_launches(void **)
{
    fixture f = fixture_open();
    cudaGraph_t one = graph_of(f, false, 1, 2), ten = graph_of(f, false, 10, 20),
                clears = graph_of(f, true, 5, 0);
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo why;
    size_t count;
    assert_int_equal(number_of(f), 0); /* nothing has run */
    assert_int_equal(cudaGraphGetNodes(one, nullptr, &count), cudaSuccess);
    assert_int_equal(count, 2);
    assert_int_equal(cudaGraphInstantiate(&exec, one, 0), cudaSuccess);
    assert_int_equal(cudaGraphLaunch(exec, f.stream), cudaSuccess);
    /* what was launched keeps its arguments */
    assert_int_equal(cudaGraphExecUpdate(exec, ten, &why), cudaSuccess);
    assert_int_equal(number_of(f), 3);
    assert_int_equal(cudaGraphLaunch(exec, f.stream), cudaSuccess);
    assert_int_equal(cudaGraphLaunch(exec, f.stream), cudaSuccess);
    assert_int_equal(number_of(f), 63);
    /* of as many nodes, but a memset is no kernel; the old form stays good */
    assert_int_equal(cudaGraphExecUpdate(exec, clears, &why), cudaErrorGraphExecUpdateFailure);
    assert_int_equal(cudaGetLastError(), cudaErrorGraphExecUpdateFailure);
    assert_int_equal(cudaGraphLaunch(exec, f.stream), cudaSuccess);
    assert_int_equal(number_of(f), 93);
    cudaGraphDestroy(one);
    cudaGraphDestroy(ten);
    cudaGraphDestroy(clears);
    assert_int_equal(cudaGraphExecDestroy(exec), cudaSuccess);
    fixture_close(&f);
}

/* What is done while f.stream is captured, its status, and that of the capture's end. */
static void nothing(void *)
{
}
static const struct {
    const char *name;
    cudaError_t (*run)(const fixture &f);
    cudaError_t status, end;
} uses[] = {
    {"sync", [](const fixture &f) { return cudaStreamSynchronize(f.stream); },
     cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated},
    {"query", [](const fixture &f) { return cudaStreamQuery(f.stream); },
     cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated},
    {"sync of the device", [](const fixture &) { return cudaDeviceSynchronize(); },
     cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated},
    {"another capture",
     [](const fixture &f) {
         return cudaStreamBeginCapture(f.stream, cudaStreamCaptureModeRelaxed);
     },
     cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated},
    {"a host function, which no graph of ours holds",
     [](const fixture &f) { return cudaLaunchHostFunc(f.stream, nothing, nullptr); },
     cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated},
    {"a wait for what is not captured",
     [](const fixture &f) { return cudaStreamWaitEvent(f.stream, f.recorded, 0); },
     cudaErrorStreamCaptureIsolation, cudaErrorStreamCaptureInvalidated},
    {"a wait of another stream",
     [](const fixture &f) {
         cudaError_t status = cudaEventRecord(f.fresh, f.stream);
         return status == cudaSuccess ? cudaStreamWaitEvent(f.other, f.fresh, 0) : status;
     },
     cudaSuccess, cudaErrorStreamCaptureUnjoined},
    {"the host waits for a captured event",
     [](const fixture &f) {
         cudaError_t status = cudaEventRecord(f.fresh, f.stream);
         return status == cudaSuccess ? cudaEventSynchronize(f.fresh) : status;
     },
     cudaErrorCapturedEvent, cudaSuccess},
    {"other streams go on", [](const fixture &f) { return cudaStreamSynchronize(f.other); },
     cudaSuccess, cudaSuccess},
};

static void test_uses(void **)
{
    for (const auto &use : uses) {
        fixture f = fixture_open();
        cudaGraph_t graph;
        begin(f);
        LAUNCH(f.stream, add_kernel, 1, 1, 0, f.y, 1);
        cudaError_t status = use.run(f);
        cudaError_t next = LAUNCH(f.stream, add_kernel, 1, 1, 0, f.y, 1);
        cudaError_t end = cudaStreamEndCapture(f.stream, &graph);
        if (status != use.status || end != use.end)
            fail_msg("%s: %s, at the end %s", use.name, cudaGetErrorString(status),
                     cudaGetErrorString(end));
        assert_true((graph != nullptr) == (end == cudaSuccess));
        if (end == cudaErrorStreamCaptureInvalidated) /* nothing more is captured */
            assert_int_equal(next, cudaErrorStreamCaptureInvalidated);
        assert_int_equal(number_of(f), 0); /* the stream is as it was */
        cudaGraphDestroy(graph);
        fixture_close(&f);
    }
}

static void test_none(void **)
{
    fixture f = fixture_open();
    cudaGraph_t graph;
    assert_int_equal(cudaStreamEndCapture(f.stream, &graph), cudaErrorInvalidValue);
    setenv("SHOAL_EMULATION", "graphs=0", 1);
    assert_int_equal(cudaStreamBeginCapture(f.stream, cudaStreamCaptureModeRelaxed),
                     cudaErrorNotSupported);
    unsetenv("SHOAL_EMULATION");
    fixture_close(&f);
}

static __global__ void leaving_kernel(int *)
{
    if (threadIdx.x == 0)
        __syncthreads();
}

/* A kernel that fails in a graph fails the GPU, as any. */
static void test_failing_node(void **)
{
    fixture f = fixture_open();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    begin(f);
    LAUNCH(f.stream, leaving_kernel, 1, 64, 0, f.y);
    assert_int_equal(cudaStreamEndCapture(f.stream, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    assert_int_equal(cudaGraphLaunch(exec, f.stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(f.stream), cudaErrorLaunchFailure);
    assert_int_equal(cudaDeviceReset(), cudaSuccess);
    cudaGraphDestroy(graph);
    cudaGraphExecDestroy(exec);
    fixture_close(&f);
}

/* ---- what ends the program ---- */

static int launch_freed(void)
{
    fixture f = fixture_open();
    cudaGraphExec_t exec;
    cudaGraphInstantiate(&exec, graph_of(f, false, 1, 2), 0);
    cudaStreamSynchronize(f.stream);
    cudaFree(f.y);
    cudaGraphLaunch(exec, f.stream);
    cudaStreamSynchronize(f.stream);
    return 0;
}
static int destroy_running(void)
{
    fixture f = fixture_open();
    cudaGraphExec_t exec;
    cudaGraphInstantiate(&exec, graph_of(f, false, 1, 2), 0);
    cudaGraphLaunch(exec, f.stream);
    cudaGraphExecDestroy(exec);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
    bool needs_asan;
} ends[] = {
    {"launch-freed", launch_freed, true},
    {"destroy-running", destroy_running, false},
};

static std::string program;

static void test_ends(void **)
{
    for (const auto &e : ends)
        if ((!e.needs_asan || HAS_ASAN) &&
            system((program + " " + e.name + " 2>/dev/null").c_str()) == 0)
            fail_msg("%s was not found", e.name);
}

int main(int argc, char **argv)
{
    program = argv[0];
    cudaSetDevice(0);
    for (const auto &e : ends)
        if (argc > 1 && argv[1] == std::string(e.name))
            return e.run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches),     cmocka_unit_test(test_uses),
        cmocka_unit_test(test_none),         cmocka_unit_test(test_ends),
        cmocka_unit_test(test_failing_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
