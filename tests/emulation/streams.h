/* The emulated runtime's streams, as its parts see them: runtime.cc runs them, events.cc knows the
 * points they reach, graph.cc what they capture. Only these include this. */
#ifndef SHOAL_TESTS_EMULATION_STREAMS_H
#define SHOAL_TESTS_EMULATION_STREAMS_H

#ifdef __cplusplus
#include "tests/emulation/emulation.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace emulation
{

using clock = std::chrono::steady_clock;

struct work;

/* What a graph is made of, in the order of the stream it was captured from. */
struct node {
    enum { KERNEL, COPY, SET } kind;
    std::function<void()> run;
};
using nodes = std::vector<node>;

/* A capture. What CUDA does not allow meanwhile ends it: no graph comes of it. */
struct capture {
    nodes so_far;
    cudaError_t broken = cudaSuccess; /* how its end fails */
};

/* What events keep of a stream. */
struct queue {
    std::deque<work> works;
    uint64_t queued = 0, done = 0;
    unsigned priority = 0;
    std::unique_ptr<capture> captured;  /* what it is given goes there; else NULL */
    bool busy = false;                  /* its first work is a host function that runs */
    clock::time_point rests_until = {}; /* its first work waits for others */
    std::string name;
    int device = 0;
};

struct work {
    std::function<void()> run = {};          /* a kernel, a copy, a record; or */
    bool (*advance)(void *, bool) = nullptr; /* what may have to wait for others; or */
    cudaHostFn_t host_function = nullptr;    /* this */
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
    std::atomic<cudaError_t> broken = cudaSuccess; /* a kernel failed: nothing works any more */
    unsigned long kernels = 0;                     /* so far */
    uint64_t moves = 0; /* works done and waits begun, for the one who looks now and then */
    std::unique_lock<std::mutex> locked()
    {
        return std::unique_lock(lock);
    }
};

gpu *the_gpu();

bool is_done(const queue &q, uint64_t point);

/* Works until `enough`, waiting for host functions and other drivers where nothing can go on. */
void drive(gpu *g, std::unique_lock<std::mutex> *held, const std::function<bool()> &enough);

/* Works until all is done that the device has been given so far. */
void drive_device(int device);

/* Queues what the backend puts into no graph: it breaks a capture. */
cudaError_t put(cudaStream_t stream, work &&w);

/* ---- graph.cc ---- */

/* Queues it, or captures it. */
cudaError_t put_node(cudaStream_t stream, node &&n);
/* The stream was used in a way that CUDA does not allow while it is captured. Returns and notes the
 * error. Lock held. */
cudaError_t break_capture(queue *q, cudaError_t status = cudaErrorStreamCaptureUnsupported);

} // namespace emulation

struct CUstream_st {
    std::shared_ptr<emulation::queue> works;
};
#endif
#endif
