/* Events of the emulated runtime. */
#include "tests/emulation/streams.h"

#include <cstdio>
#include <dlfcn.h>
#include <execinfo.h>
#include <set>

using namespace emulation;

struct CUevent_st {
    std::shared_ptr<queue> on; /* NULL before the first record */
    uint64_t point = 0;
    bool timed = false;
    bool is_captured = false; /* it was recorded in a capture: a graph's, no point of a stream */
    std::shared_ptr<emulation::clock::time_point> when;
};

static std::atomic<int64_t> worked_us;

void emulation::spend(int64_t us)
{
    worked_us += us;
}

/* What an event tells that is reached now. */
static emulation::clock::time_point now()
{
    static const bool by_work = option("clock", "wall") == "work";
    return by_work ? emulation::clock::time_point(std::chrono::microseconds(worked_us))
                   : emulation::clock::now();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = new CUevent_st;
    (*event)->timed = !(flags & cudaEventDisableTiming);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    must_have_device("cudaEventDestroy");
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    must_have_device("cudaEventRecord");
    if (!stream) { /* the default stream, which has no other work */
        event->on = std::make_shared<queue>();
        event->when = std::make_shared<emulation::clock::time_point>(now());
        return cudaSuccess;
    }
    gpu *g = the_gpu();
    {
        std::unique_lock held = g->locked();
        event->is_captured = stream->works->captured != nullptr;
        event->on = stream->works;
        if (event->is_captured)
            return cudaSuccess;
    }
    auto when = std::make_shared<emulation::clock::time_point>();
    cudaError_t status = put(stream, {.run = [when] { *when = now(); }});
    std::unique_lock held = g->locked();
    event->point = stream->works->queued;
    event->when = when;
    return status;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (event->is_captured)
        return noted(cudaErrorCapturedEvent);
    gpu *g = the_gpu();
    std::unique_lock held = g->locked();
    if (event->on)
        drive(g, &held, [event] { return is_done(*event->on, event->point); });
    return noted(g->broken);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    must_have_device("cudaEventQuery");
    if (event->is_captured)
        return noted(cudaErrorCapturedEvent);
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
    if (start->is_captured || end->is_captured)
        return noted(cudaErrorCapturedEvent);
    if (cudaEventQuery(start) == cudaErrorNotReady || cudaEventQuery(end) == cudaErrorNotReady)
        return cudaErrorNotReady;
    *ms = std::chrono::duration<float, std::milli>(*end->when - *start->when).count();
    return cudaSuccess;
}

/* A wait that crosses the border of a capture. In CUDA the stream that waits for a captured event
 * joins the capture; nobody here brings it back before the end. Lock held. */
static cudaError_t cross(queue *waiting, const CUevent_st &event)
{
    queue *recorded = event.on.get();
    if (!event.is_captured)
        return break_capture(waiting, cudaErrorStreamCaptureIsolation);
    if (!recorded->captured)
        return noted(cudaErrorInvalidValue); /* its graph is made: it means nothing any more */
    if (waiting != recorded)
        recorded->captured->broken = cudaErrorStreamCaptureUnjoined;
    return cudaSuccess;
}

/* For tests that leave out one wait after the other. */
static void tell_once(const std::string &wait)
{
    static std::mutex lock;
    static std::set<std::string> told;
    std::lock_guard guard(lock);
    if (told.insert(wait).second)
        fprintf(stderr, "wait: %s\n", wait.c_str());
}

/* Who asks for a wait: the last calls on the way into this library, "0xCALL/0xCALL/...", the
 * innermost first. Offsets of the program's file, for addr2line. */
static std::string who_waits()
{
    enum { FRAMES = 12, TOLD = 4 };
    void *frames[FRAMES];
    Dl_info here, at;
    std::string place;
    int count = backtrace(frames, FRAMES), told = 0;
    dladdr((void *)who_waits, &here);
    for (int i = 0; i < count && told < TOLD; i++) {
        if (!dladdr(frames[i], &at) || at.dli_fbase == here.dli_fbase)
            continue;
        char call[24]; /* what is on the stack comes after it */
        snprintf(call, sizeof call, "0x%zx",
                 (size_t)((char *)frames[i] - (char *)at.dli_fbase) - 1);
        place.append(told++ ? "/" : "").append(call);
    }
    return place;
}

/* Whether the test leaves the wait out. */
static bool is_skipped(const std::string &pair)
{
    static const std::string skipped = std::string("+").append(option("skip_wait", "")) + "+";
    static const bool tells = option_number("tell_waits", 0) != 0;
    if (!tells && skipped == "++")
        return false;
    std::string place = who_waits();
    if (tells)
        tell_once(pair + " " + place);
    return skipped == "+" + pair + "+" || skipped.find("+" + place + "+") != skipped.npos;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    if (!event->on || is_skipped(stream->works->name + "<-" + event->on->name))
        return cudaSuccess;
    {
        std::unique_lock held = the_gpu()->locked();
        if (stream->works->captured || event->is_captured)
            return cross(stream->works.get(), *event);
    }
    return put(stream, {.wait_for = event->on, .point = event->point});
}
