/* Streams of the emulated runtime. They are queues; whoever waits for one drives: it draws which
 * queue goes on, until what it waits for is done. A host function runs on one thread of its own
 * while its stream stands still; nobody else holds up the queues. */
#include "tests/emulation/async_calls.h"
#include "tests/emulation/streams.h"

#include <map>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <thread>

namespace emulation
{
namespace
{

/* One thread runs the host functions of all streams, as a driver may. */
void run_host_calls(gpu *g)
{
    std::unique_lock held = g->locked();
    for (;;) {
        g->changed.wait(held, [g] { return !g->host_calls.empty(); });
        host_call call = g->host_calls.front();
        g->host_calls.pop_front();
        held.unlock();
        call.function(call.args);
        held.lock();
        call.from->busy = false;
        call.from->works.pop_front();
        call.from->done++;
        g->moves++;
        g->changed.notify_all();
    }
}

/* The queue to go on with: of those that can, the one of the highest priority; it is drawn anew now
 * and then. NULL if none can. */
queue *draw(gpu *g)
{
    queue *best = nullptr;
    for (const auto &q : g->queues) {
        if (q->works.empty() || q->busy || q->rests_until > clock::now())
            continue;
        const work &next = q->works.front();
        if (next.wait_for && !is_done(*next.wait_for, next.point))
            continue;
        if (next.word && (int32_t)(__atomic_load_n(next.word, __ATOMIC_ACQUIRE) - next.value) < 0)
            continue;
        if (!best || q->priority > best->priority)
            best = q.get();
    }
    if (best && g->random.below(8) == 0)
        best->priority = g->random.below(1 << 16);
    return best;
}

/* Runs the first work of q; lock held. */
void step(gpu *g, queue *q)
{
    work &next = q->works.front();
    g->moves++;
    if (next.host_function) {
        q->busy = true;
        for (const auto &each : g->queues)
            if (each.get() == q)
                g->host_calls.push_back({each, next.host_function, next.args});
        g->changed.notify_all();
        return;
    }
    if (next.advance && !next.advance(next.args, g->broken != cudaSuccess)) {
        q->rests_until = clock::now() + std::chrono::microseconds(200);
        return;
    }
    if (next.run && g->broken == cudaSuccess)
        next.run();
    q->works.pop_front();
    q->done++;
    g->changed.notify_all();
}

/* Where nobody has waited for a while, work goes on by itself. */
void run_unasked(gpu *g)
{
    uint64_t seen = 0;
    for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::unique_lock held = g->locked();
        if (g->moves == seen)
            drive(g, &held, [g] { return !draw(g); });
        seen = g->moves;
    }
}

} // namespace

bool is_done(const queue &q, uint64_t point)
{
    return q.done >= point;
}

void drive(gpu *g, std::unique_lock<std::mutex> *held, const std::function<bool()> &enough)
{
    g->moves++;
    while (!enough()) {
        queue *q = draw(g);
        if (!q) { /* now and then, others may have come */
            g->changed.wait_for(*held, std::chrono::microseconds(200));
            continue;
        }
        memory_allow();
        for (; q && !enough(); q = draw(g))
            step(g, q);
        memory_forbid();
    }
}

void drive_device(int device)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    std::vector<std::pair<std::shared_ptr<queue>, uint64_t>> before;
    for (const auto &q : g->queues)
        if (q->device == device)
            before.emplace_back(q, q->queued);
    drive(g, &held, [&before] {
        for (const auto &[q, point] : before)
            if (!is_done(*q, point))
                return false;
        return true;
    });
}

gpu *the_gpu()
{
    static gpu *g = [] {
        gpu *fresh = new gpu;
        std::thread(run_host_calls, fresh).detach();
        std::thread(run_unasked, fresh).detach();
        return fresh;
    }();
    return g;
}

cudaError_t put(cudaStream_t stream, work &&w)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    if (g->broken != cudaSuccess)
        return noted(g->broken);
    if (stream->works->captured)
        return break_capture(stream->works.get());
    stream->works->works.push_back(std::move(w));
    stream->works->queued++;
    return cudaSuccess;
}

cudaError_t the_fault()
{
    return the_gpu()->broken;
}

/* After as many kernels as option("breaks") says. */
static void break_in_time(gpu *g)
{
    static const std::string when = option("breaks", "");
    unsigned long kernels = 0;
    int status = 0;
    g->kernels++;
    if (sscanf(when.c_str(), "%lu:%d", &kernels, &status) == 2 && g->kernels == kernels)
        g->broken = (cudaError_t)status;
}

/* The most dynamic shared memory that a kernel may have. */
static size_t &shared_limit(const void *kernel)
{
    static std::map<const void *, size_t> limits;
    return limits.try_emplace(kernel, 48 * 1024).first->second;
}

static bool may_share(const launch &work)
{
    std::unique_lock held = the_gpu()->locked();
    return work.shared_bytes <= shared_limit(work.function);
}

bool (*kernel_runner)(const launch &work) = run_kernel;

cudaError_t launch_on(cudaStream_t stream, launch work)
{
    unsigned long threads = (unsigned long)work.block.x * work.block.y * work.block.z;
    unsigned long blocks = (unsigned long)work.grid.x * work.grid.y * work.grid.z;
    bool possible = threads && blocks && threads <= 1024 && blocks < 1ul << 31 &&
                    work.grid.y < 65536 && work.grid.z < 65536 && work.block.z <= 64;
    if (!possible)
        return noted(cudaErrorInvalidConfiguration);
    if (!may_share(work))
        return noted(cudaErrorInvalidValue);
    return put_node(stream, {node::KERNEL, [stream, work = std::move(work)] {
                                 uint64_t begin = cupti_now();
                                 if (!kernel_runner(work))
                                     the_gpu()->broken = cudaErrorLaunchFailure;
                                 else
                                     break_in_time(the_gpu());
                                 cupti_kernel(work.kernel, stream, begin);
                             }});
}

} // namespace emulation

using namespace emulation;

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute, int value)
{
    int most = 0;
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    if (value < 0 || value > most)
        return noted(cudaErrorInvalidValue);
    std::unique_lock held = the_gpu()->locked();
    shared_limit(kernel) = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    for (const auto &q : g->queues)
        if (q->captured)
            return break_capture(q.get());
    drive(g, &held, [g] {
        for (const auto &q : g->queues)
            if (q->done < q->queued)
                return false;
        return true;
    });
    return noted(g->broken);
}

/* Only what a failed kernel left behind: streams and memory stay. */
cudaError_t cudaDeviceReset(void)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    g->broken = cudaSuccess;
    return cudaSuccess;
}

/* Of host memory that is not page-locked CUDA may take a copy before the call returns, and must not
 * (where the GPU can read it itself): so it is drawn. */
static bool stages(const void *src, cudaStream_t stream)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    return memory_is_pageable(src) && !stream->works->captured && g->random.below(2) == 0;
}

/* A copy has arrived. */
static void damage(void *dst, size_t bytes)
{
    static const std::string what = option("damages", "");
    unsigned long of = 0, at = 0;
    int value = 0;
    if (!what.empty() && sscanf(what.c_str(), "%lu:%lu:%d", &of, &at, &value) == 3 && of == bytes)
        memcpy((char *)dst + at * sizeof value, &value, sizeof value);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind;
    if (stages(src, stream)) {
        std::string staged((const char *)src, bytes);
        return put(stream, {.run = [=] {
                       uint64_t begin = cupti_now();
                       memcpy(dst, staged.data(), bytes);
                       damage(dst, bytes);
                       cupti_copy(bytes, stream, begin);
                   }});
    }
    return put_node(stream, {node::COPY, [=] {
                                 uint64_t begin = cupti_now();
                                 memcpy(dst, src, bytes);
                                 damage(dst, bytes);
                                 cupti_copy(bytes, stream, begin);
                             }});
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    return put_node(stream, {node::SET, [=] { memset(memory, value, bytes); }});
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    *stream = new CUstream_st{std::make_shared<queue>()};
    (*stream)->works->priority = g->random.below(1 << 16);
    (*stream)->works->device = current_device();
    g->queues.push_back((*stream)->works);
    return noted(g->broken);
}

/* A hint to a GPU, no order to rely on: the draw knows none. */
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    return priority > 0 || priority < -5 ? noted(cudaErrorInvalidValue)
                                         : cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t status = cudaStreamSynchronize(stream);
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    std::erase(g->queues, stream->works);
    delete stream;
    return status;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    queue *q = stream->works.get();
    if (q->captured)
        return break_capture(q);
    uint64_t point = q->queued;
    drive(g, &held, [q, point] { return is_done(*q, point); });
    return noted(g->broken);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    if (g->broken != cudaSuccess)
        return noted(g->broken);
    if (stream->works->captured)
        return break_capture(stream->works.get());
    return is_done(*stream->works, stream->works->queued) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *args)
{
    return put(stream, {.host_function = function, .args = args});
}

void emulation_put(void *stream, bool (*advance)(void *, bool), void *args)
{
    if (put((cudaStream_t)stream, {.advance = advance, .args = args}) != cudaSuccess)
        advance(args, true);
}

static cudaError_t wait_for_word(cudaStream_t stream, uintptr_t word, uint32_t value, unsigned)
{
    return put(stream, {.word = (const uint32_t *)word, .value = value});
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                             unsigned long long,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    *found = cudaDriverEntryPointSuccess;
    *function = strcmp(symbol, "cuStreamWaitValue32") == 0      ? (void *)wait_for_word
                : strcmp(symbol, "cuTensorMapEncodeTiled") == 0 ? (void *)encode_tensor_map
                                                                : nullptr;
    return cudaSuccess;
}

void nvtxNameCudaStreamA(cudaStream_t stream, const char *name)
{
    stream->works->name = name;
}
