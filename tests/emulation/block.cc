/* Blocks and their threads. A thread gets a fiber when it first runs and keeps it while it waits;
 * one that never waits leaves it to the next, so a kernel without barriers is a loop. */
#include "tests/emulation/async_calls.h"
#include "tests/emulation/races.h"

#include <boost/context/detail/fcontext.hpp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <sys/mman.h>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulation
{
namespace
{

enum { STACK_BYTES = 256 * 1024, GUARD_BYTES = 4096, WARP = 32, MAX_THREADS = 1024 };

/* ---- fibers ---- */

struct fiber {
    unsigned char *stack; /* behind a guard page */
    fcontext_t context;
    void *fake_stack;
};

/* What runs kernels: the host thread that drives, as the fibers see it. */
struct {
    fcontext_t context;
    const void *stack;
    size_t stack_bytes;
    void *fake_stack;
} host;

void run_threads(transfer_t from);

void fiber_prepare(fiber *f)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(f->stack, STACK_BYTES);
#endif
    f->fake_stack = nullptr;
    f->context = make_fcontext(f->stack + STACK_BYTES, STACK_BYTES, run_threads);
}

fiber *fiber_open()
{
    void *memory = mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE)) {
        perror("emulation: stack of a fiber");
        abort();
    }
    fiber *f = new fiber;
    f->stack = (unsigned char *)memory + GUARD_BYTES;
    fiber_prepare(f);
    return f;
}

/* Goes on with the fiber until it waits or its thread ends. */
void fiber_resume(fiber *f)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&host.fake_stack, f->stack, STACK_BYTES);
#endif
    transfer_t back = jump_fcontext(f->context, f);
    f->context = back.fctx;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(host.fake_stack, nullptr, nullptr);
#endif
}

/* In a fiber: what it finds when somebody came to it. */
void fiber_arrive(fiber *f, transfer_t from)
{
    (void)f;
    host.context = from.fctx;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(f->fake_stack, &host.stack, &host.stack_bytes);
#endif
}

/* In a fiber: back to the host, until it is resumed. */
void fiber_leave(fiber *f)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&f->fake_stack, host.stack, host.stack_bytes);
#endif
    fiber_arrive(f, jump_fcontext(host.context, nullptr));
}

/* ---- a block ---- */

enum class state { ready, waits_for_warp, waits_for_block, waits_for_phase, done };

struct thread {
    state now;
    fiber *on; /* NULL before it first ran and after its end */
    site at;   /* where it waits */
    int turn;  /* which of its warp's two sets of slots is next */
};

struct warp {
    int lanes, waiting;
    site at; /* where they wait */
    unsigned char slots[2][WARP][WARP_SLOT_BYTES];
};

struct {
    const launch *work;
    uint64_t number; /* of all blocks so far */
    int threads, done;
    int waiting, votes, last_votes; /* at the block's barrier */
    site at;                        /* where that is */
    int current;
    bool failed;
    thread all[MAX_THREADS];
    warp warps[MAX_THREADS / WARP];
    std::vector<fiber *> &idle = *new std::vector<fiber *>; /* never freed: it serves to the end */
    unsigned char *shared;
} block;

void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fail(const char *format, ...)
{
    fprintf(stderr, "emulation: %s, launched at %s:%d, block (%u, %u, %u): ", block.work->kernel,
            block.work->from.file, block.work->from.line, blockIdx.x, blockIdx.y, blockIdx.z);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (seed %ld)\n", option_number("seed", 1));
    block.failed = true;
}

void place_thread(int index)
{
    block.current = index;
    unsigned i = (unsigned)index;
    threadIdx = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
}

/* A fiber's life: thread after thread. */
void run_threads(transfer_t from)
{
    fiber *self = (fiber *)from.data;
    fiber_arrive(self, from);
    for (;;) {
        block.work->thread();
        thread *t = &block.all[block.current];
        t->now = state::done;
        t->on = nullptr;
        block.done++;
        block.idle.push_back(self);
        fiber_leave(self);
    }
}

void resume(int index)
{
    thread *t = &block.all[index];
    place_thread(index);
    if (!t->on && block.idle.empty())
        block.idle.push_back(fiber_open());
    if (!t->on) {
        t->on = block.idle.back();
        block.idle.pop_back();
    }
    races_enter(index, t->on->stack, STACK_BYTES);
    fiber_resume(t->on);
    races_leave();
}

/* The running thread waits until its state is ready again. */
void wait(state how, site at)
{
    thread *t = &block.all[block.current];
    t->now = how;
    t->at = at;
    fiber_leave(t->on);
}

bool same(site a, site b)
{
    return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

/* The running thread comes to `at`, `waiting` others wait at *others (set by the first): it stays
 * there for good if that is another place. */
void meet(state how, int waiting, site *others, site at)
{
    if (!waiting)
        *others = at;
    if (same(*others, at))
        return;
    fail("thread %d is at %s:%d, others of its %s wait at %s:%d", block.current, at.file, at.line,
         how == state::waits_for_warp ? "warp" : "block", others->file, others->line);
    wait(how, at);
}

void release(int first, int count, state from)
{
    for (int i = first; i < first + count; i++)
        if (block.all[i].now == from)
            block.all[i].now = state::ready;
}

/* Nobody can go on: tells of one who waits. */
void tell_stuck()
{
    int stuck = 0;
    for (int i = 0; i < block.threads; i++)
        if (block.all[i].now == state::waits_for_phase) {
            site at = block.all[i].at;
            fail("thread %d waits at %s:%d: %s", i, at.file, at.line, async_waits_for(i).c_str());
            return;
        } else if (block.all[i].now == state::waits_for_warp ||
                   (block.all[i].now == state::waits_for_block &&
                    block.all[stuck].now == state::done))
            stuck = i;
    const thread *t = &block.all[stuck];
    fail("thread %d waits at %s:%d for threads of its %s that never come (%d of %d have ended)",
         stuck, t->at.file, t->at.line, t->now == state::waits_for_warp ? "warp" : "block",
         block.done, block.threads);
}

/* One turn for each thread of the warp that can go on. Whether any could. */
bool run_warp(int base, random_numbers *random)
{
    bool moved = false;
    int lanes = block.warps[base / WARP].lanes;
    int lane = (int)random->below((unsigned)lanes);
    int step = random->below(2) ? 1 : lanes - 1; /* forwards or backwards */
    for (int i = 0; i < lanes && !block.failed; i++, lane = (lane + step) % lanes)
        if (block.all[base + lane].now == state::ready) {
            resume(base + lane);
            moved = true;
        }
    return moved;
}

/* Lets threads run until all are done or the kernel has failed. A warp has one turn or goes as far
 * as it can, past shuffles too. */
void run_block(random_numbers *random)
{
    int warps = (block.threads + WARP - 1) / WARP;
    while (!block.failed && block.done < block.threads) {
        bool moved = false, far = random->below(2);
        int first = (int)random->below((unsigned)warps);
        for (int w = 0; w < warps && !block.failed; w++) {
            int base = (first + w) % warps * WARP;
            bool again = run_warp(base, random);
            moved = moved || again;
            while (far && again && !block.failed)
                again = run_warp(base, random);
        }
        if (!moved && !async_land(random))
            tell_stuck();
    }
}

void prepare_block(const launch &work)
{
    block.number++;
    block.done = block.waiting = block.votes = 0;
    for (int i = 0; i < block.threads; i++)
        block.all[i] = {state::ready, nullptr, {"", 0}, 0};
    for (int w = 0; w * WARP < block.threads; w++) {
        int left = block.threads - w * WARP;
        block.warps[w].lanes = left < WARP ? left : WARP;
        block.warps[w].waiting = 0;
    }
    memset(block.shared, 0xff, work.shared_bytes);
}

/* Threads that a failed kernel left waiting give up their fibers. */
void abandon()
{
    for (int i = 0; i < block.threads; i++)
        if (block.all[i].on) {
            fiber_prepare(block.all[i].on);
            block.idle.push_back(block.all[i].on);
        }
}

} // namespace

bool run_kernel(const launch &work)
{
    static random_numbers random((uint64_t)option_number("seed", 1));
    unsigned blocks = work.grid.x * work.grid.y * work.grid.z;
    unsigned first = random.below(blocks), step = 1 + random.below(blocks);
    while (std::gcd(step, blocks) != 1)
        step++;
    block.work = &work;
    block.failed = false;
    block.threads = (int)(work.block.x * work.block.y * work.block.z);
    block.shared = (unsigned char *)aligned_alloc(16, (work.shared_bytes + 16) / 16 * 16);
#ifdef __SANITIZE_ADDRESS__
    __asan_poison_memory_region(block.shared + work.shared_bytes, 16 - work.shared_bytes % 16);
#endif
    blockDim = work.block;
    gridDim = work.grid;
    races_begin(block.shared, work.shared_bytes);
    for (unsigned i = 0, b = first; i < blocks && !block.failed; i++) {
        blockIdx = {b % gridDim.x, b / gridDim.x % gridDim.y, b / gridDim.x / gridDim.y};
        prepare_block(work);
        races_begin_block(b);
        async_begin_block(block.shared, work.shared_bytes, (unsigned)block.threads);
        run_block(&random);
        if (!block.failed)
            async_end_block();
        b = (unsigned)(((uint64_t)b + step) % blocks);
    }
    if (block.failed)
        abandon();
    free(block.shared);
    return !block.failed;
}

void fail_kernel(const std::string &why)
{
    fail("%s", why.c_str());
}

void *dynamic_shared()
{
    return block.shared;
}

void static_shared(void *memory, size_t bytes, const char *name, uint64_t *number)
{
    if (*number == block.number)
        return;
    races_static(memory, bytes, name);
    *number = block.number;
    memset(memory, 0xff, bytes);
}

void trap(site at)
{
    fail("thread %d stops at %s:%d", block.current, at.file, at.line);
    for (;;)
        wait(state::waits_for_block, at);
}

unsigned running_thread()
{
    return (unsigned)block.current;
}

void wait_for_phase(site at)
{
    wait(state::waits_for_phase, at);
}

void look_at_phases()
{
    release(0, block.threads, state::waits_for_phase);
}

void stop_thread(const char *why, site at)
{
    fail("thread %d at %s:%d: %s", block.current, at.file, at.line, why);
    wait(state::waits_for_block, at);
}

int lane()
{
    return block.current % WARP;
}

const unsigned char *warp_exchange(unsigned mask, const void *mine, size_t bytes, site at)
{
    thread *t = &block.all[block.current];
    int number = block.current / WARP;
    warp *w = &block.warps[number];
    if (bytes == 0 && is_left_out(at)) /* a barrier */
        return nullptr;
    if (mask != 0xffffffffu || w->lanes < WARP) {
        fail("thread %d at %s:%d: the mask must be all 32 lanes (0x%x) of a full warp (%d lanes)",
             block.current, at.file, at.line, mask, w->lanes);
        wait(state::waits_for_warp, at);
    }
    meet(state::waits_for_warp, w->waiting, &w->at, at);
    unsigned char(*slots)[WARP_SLOT_BYTES] = w->slots[t->turn];
    t->turn ^= 1;
    memcpy(slots[lane()], mine, bytes);
    if (++w->waiting == WARP) {
        w->waiting = 0;
        if (bytes == 0)
            races_warp_barrier(number);
        release(number * WARP, WARP, state::waits_for_warp);
    } else {
        wait(state::waits_for_warp, at);
    }
    return slots[0];
}

int block_barrier(int value, site at)
{
    if (is_left_out(at))
        return value != 0;
    meet(state::waits_for_block, block.waiting, &block.at, at);
    block.votes += value != 0;
    if (++block.waiting == block.threads) {
        block.last_votes = block.votes;
        races_block_barrier();
        async_block_barrier();
        block.waiting = block.votes = 0;
        release(0, block.threads, state::waits_for_block);
    } else {
        wait(state::waits_for_block, at);
    }
    return block.last_votes;
}

} // namespace emulation
