/* Graphs of the emulated runtime. A stream that is captured queues nothing: kernels, copies and
 * memsets become the nodes of a graph, and whatever CUDA does not allow meanwhile breaks the
 * capture. A launch queues the nodes with the arguments they have then, one by one, so that other
 * streams go on between them; memory that was freed since the capture is met as it would be on a
 * GPU. */
#include "tests/emulation/streams.h"

#include <cstdio>
#include <cstdlib>

using namespace emulation;

struct CUgraph_st {
    nodes all;
};

struct CUgraphExec_st {
    nodes all;
    std::shared_ptr<queue> on; /* where it was launched last, up to `point`; NULL: never */
    uint64_t point = 0;
};

/* Captures that this thread has begun and not ended. */
static thread_local int captures;

namespace emulation
{

void must_not_capture(const char *call)
{
    if (!captures)
        return;
    fprintf(stderr, "emulation: %s while a stream is captured\n", call);
    abort();
}

cudaError_t break_capture(queue *q, cudaError_t status)
{
    if (q->captured->broken != cudaSuccess)
        return noted(cudaErrorStreamCaptureInvalidated);
    q->captured->broken = cudaErrorStreamCaptureInvalidated;
    return noted(status);
}

cudaError_t put_node(cudaStream_t stream, node &&n)
{
    {
        std::unique_lock held = the_gpu()->locked();
        queue *q = stream->works.get();
        if (q->captured && q->captured->broken != cudaSuccess)
            return noted(cudaErrorStreamCaptureInvalidated);
        if (q->captured) {
            q->captured->so_far.push_back(std::move(n));
            return cudaSuccess;
        }
    }
    return put(stream, {.run = std::move(n.run)});
}

} // namespace emulation

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    if (mode != cudaStreamCaptureModeRelaxed || !option_number("graphs", 1))
        return noted(cudaErrorNotSupported); /* of the others, the allocator would break them */
    if (stream->works->captured)
        return break_capture(stream->works.get());
    stream->works->captured = std::make_unique<capture>();
    captures++;
    return noted(g->broken);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    std::unique_lock held = the_gpu()->locked();
    std::unique_ptr<capture> ended = std::move(stream->works->captured);
    *graph = nullptr;
    if (!ended)
        return noted(cudaErrorInvalidValue);
    captures--;
    if (ended->broken != cudaSuccess)
        return noted(ended->broken);
    *graph = new CUgraph_st{std::move(ended->so_far)};
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *array, size_t *count)
{
    if (array)
        return noted(cudaErrorNotSupported);
    *count = graph->all.size();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    if (option_number("no_more_graphs", 0))
        return noted(cudaErrorMemoryAllocation);
    *exec = new CUgraphExec_st{.all = graph->all, .on = {}};
    return cudaSuccess;
}

/* Of launches from now on. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *)
{
    bool is_equal = exec->all.size() == graph->all.size();
    for (size_t i = 0; is_equal && i < graph->all.size(); i++)
        is_equal = exec->all[i].kind == graph->all[i].kind;
    if (!is_equal)
        return noted(cudaErrorGraphExecUpdateFailure);
    if (!option_number("stale_graphs", 0))
        exec->all = graph->all;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    for (const node &each : exec->all) {
        cudaError_t status = put(stream, {.run = each.run});
        if (status != cudaSuccess)
            return status;
    }
    std::unique_lock held = the_gpu()->locked();
    exec->on = stream->works;
    exec->point = stream->works->queued;
    return cudaSuccess;
}

/* Stricter than CUDA: not while it runs. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    std::unique_lock held = the_gpu()->locked();
    if (exec->on && !is_done(*exec->on, exec->point)) {
        fprintf(stderr, "emulation: a graph is destroyed that has not ended\n");
        abort();
    }
    delete exec;
    return cudaSuccess;
}
