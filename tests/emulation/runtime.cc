/* Streams and events of the emulated runtime. Streams are queues; whoever waits for one
 * drives: it draws which queue goes on, until what it waits for is done. A host function runs on
 * one thread of its own while its stream stands still; nobody else holds up the queues. */
#include "tests/emulation/emulation.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <thread>
#include <vector>

namespace emulation
{
namespace
{

using clock = std::chrono::steady_clock;

struct work;

/* What events keep of a stream. */
struct queue {
    std::deque<work> works;
    uint64_t queued = 0, done = 0;
    unsigned priority = 0;
    bool busy = false;                  /* its first work is a host function that runs */
    clock::time_point rests_until = {}; /* its first work waits for others */
    std::string name;
};

struct work {
    std::function<void()> run = {};       /* a kernel, a copy, a record; or */
    bool (*advance)(void *) = nullptr;    /* what may have to wait for others; or */
    cudaHostFn_t host_function = nullptr; /* this */
    void *args = nullptr;
    std::shared_ptr<queue> wait_for = {}; /* or a wait for this one's `point` */
    uint64_t point = 0;
    const uint32_t *word = nullptr; /* or a wait until this is at or past `value` */
    uint32_t value = 0;
};

struct host_call {
    std::shared_ptr<queue> from;
    cudaHostFn_t function;
    void *args;
};

struct gpu {
    std::mutex lock; /* guards all; held while a kernel or a copy runs */
    std::condition_variable changed;
    std::vector<std::shared_ptr<queue>> queues;
    std::deque<host_call> host_calls;
    random_numbers random{(uint64_t)option_number("seed", 1)};
    cudaError_t broken = cudaSuccess; /* a kernel failed: nothing works any more */
    uint64_t moves = 0; /* works done and waits begun, for the one who looks now and then */
    std::unique_lock<std::mutex> locked()
    {
        return std::unique_lock(lock);
    }
};

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

bool is_done(const queue &q, uint64_t point)
{
    return q.done >= point;
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
    if (next.advance && !next.advance(next.args)) {
        q->rests_until = clock::now() + std::chrono::microseconds(200);
        return;
    }
    if (next.run && g->broken == cudaSuccess)
        next.run();
    q->works.pop_front();
    q->done++;
    g->changed.notify_all();
}

/* Works until `enough`, waiting for host functions and other drivers where nothing can go on. */
template <typename Condition>
void drive(gpu *g, std::unique_lock<std::mutex> *held, Condition enough)
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

} // namespace
} // namespace emulation

using namespace emulation;

struct CUstream_st {
    std::shared_ptr<queue> works;
};

struct CUevent_st {
    std::shared_ptr<queue> on; /* NULL before the first record */
    uint64_t point = 0;
    bool timed = false;
    std::shared_ptr<emulation::clock::time_point> when;
};

namespace emulation
{
namespace
{

cudaError_t put(cudaStream_t stream, work &&w)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    if (g->broken != cudaSuccess)
        return noted(g->broken);
    stream->works->works.push_back(std::move(w));
    stream->works->queued++;
    return cudaSuccess;
}

} // namespace

cudaError_t launch_on(cudaStream_t stream, launch work)
{
    unsigned long threads = (unsigned long)work.block.x * work.block.y * work.block.z;
    unsigned long blocks = (unsigned long)work.grid.x * work.grid.y * work.grid.z;
    bool possible = threads && blocks && threads <= 1024 && blocks < 1ul << 31 &&
                    work.grid.y < 65536 && work.grid.z < 65536 && work.block.z <= 64;
    if (!possible || work.shared_bytes > 227 * 1024)
        return noted(cudaErrorInvalidConfiguration);
    return put(stream, {.run = [work = std::move(work)] {
                   if (!run_kernel(work))
                       the_gpu()->broken = cudaErrorLaunchFailure;
               }});
}

} // namespace emulation

cudaError_t cudaDeviceSynchronize(void)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
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

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind;
    return put(stream, {.run = [=] { memcpy(dst, src, bytes); }});
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    return put(stream, {.run = [=] { memset(memory, value, bytes); }});
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    *stream = new CUstream_st{std::make_shared<queue>()};
    (*stream)->works->priority = g->random.below(1 << 16);
    g->queues.push_back((*stream)->works);
    return noted(g->broken);
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
    return is_done(*stream->works, stream->works->queued) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *args)
{
    return put(stream, {.host_function = function, .args = args});
}

void emulation_put(void *stream, bool (*advance)(void *), void *args)
{
    put((cudaStream_t)stream, {.advance = advance, .args = args});
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
    *function = strcmp(symbol, "cuStreamWaitValue32") == 0 ? (void *)wait_for_word : nullptr;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = new CUevent_st;
    (*event)->timed = !(flags & cudaEventDisableTiming);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (!stream) { /* the default stream, which has no other work */
        event->on = std::make_shared<queue>();
        event->when = std::make_shared<emulation::clock::time_point>(emulation::clock::now());
        return cudaSuccess;
    }
    auto when = std::make_shared<emulation::clock::time_point>();
    cudaError_t status = put(stream, {.run = [when] { *when = emulation::clock::now(); }});
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    event->on = stream->works;
    event->point = stream->works->queued;
    event->when = when;
    return status;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    if (event->on)
        drive(g, &held, [event] { return is_done(*event->on, event->point); });
    return noted(g->broken);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    if (g->broken != cudaSuccess)
        return noted(g->broken);
    return !event->on || is_done(*event->on, event->point) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    if (!start->timed || !end->timed || !start->on || !end->on)
        return noted(cudaErrorInvalidValue);
    if (cudaEventQuery(start) == cudaErrorNotReady || cudaEventQuery(end) == cudaErrorNotReady)
        return cudaErrorNotReady;
    *ms = std::chrono::duration<float, std::milli>(*end->when - *start->when).count();
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    static const std::string skipped = option("skip_wait", "");
    if (!event->on || (!skipped.empty() && skipped == stream->works->name + "<-" + event->on->name))
        return cudaSuccess;
    return put(stream, {.wait_for = event->on, .point = event->point});
}

void nvtxNameCudaStreamA(cudaStream_t stream, const char *name)
{
    stream->works->name = name;
}
