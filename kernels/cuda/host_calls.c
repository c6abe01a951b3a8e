#include "kernels/cuda/host_calls.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct call {
    struct call *next;
    uint32_t number;
    void (*run)(void *arg);
    void *arg;
};

/* cuStreamWaitValue32 of the driver: the stream waits until the word is at or past the value. The
 * driver's results have the runtime's numbers. */
typedef cudaError_t wait_value(cudaStream_t stream, uintptr_t word, uint32_t value, unsigned flags);

struct host_calls {
    wait_value *wait;
    uint32_t *done; /* page-locked: the number of the last that has run */
    pthread_t worker;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    uint32_t queued, due; /* numbers: of the last queued, of the last the stream has come to */
    bool closing;
    struct call *first, **end;
};

static cudaError_t find_wait_value(wait_value **ret_wait)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    cudaError_t status =
        cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &function, 12000, 0, &found);
#else
    cudaError_t status = cudaGetDriverEntryPoint("cuStreamWaitValue32", &function, 0, &found);
#endif
    *ret_wait = (wait_value *)function;
    return status == cudaSuccess && !function ? cudaErrorNotSupported : status;
}

static void *work(void *arg)
{
    struct host_calls *h = arg;
    pthread_mutex_lock(&h->lock);
    for (;;) {
        /* Numbers wrap round at 2^32, so their difference tells which is later; cuStreamWaitValue32
         * compares so, too. */
        while (!h->closing && (!h->first || (int32_t)(h->due - h->first->number) < 0))
            pthread_cond_wait(&h->changed, &h->lock);
        if (h->closing)
            break;
        struct call *call = h->first;
        h->first = call->next;
        if (!h->first)
            h->end = &h->first;
        pthread_mutex_unlock(&h->lock);
        call->run(call->arg);
        /* The stream goes on at once: what the call wrote must be in memory before the number
         * is. */
        __atomic_store_n(h->done, call->number, __ATOMIC_RELEASE);
        free(call->arg);
        free(call);
        pthread_mutex_lock(&h->lock);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* On CUDA's thread: the stream has come to its next call. */
static void note_due(void *arg)
{
    struct host_calls *h = arg;
    pthread_mutex_lock(&h->lock);
    h->due++;
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

cudaError_t host_calls_open(struct host_calls **ret_calls)
{
    struct host_calls *h = xcalloc(1, sizeof *h);
    h->end = &h->first;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    cudaError_t status = find_wait_value(&h->wait);
    if (status == cudaSuccess)
        status = cudaHostAlloc((void **)&h->done, sizeof *h->done, cudaHostAllocPortable);
    if (status == cudaSuccess) {
        *h->done = 0;
        if (pthread_create(&h->worker, NULL, work, h) == 0) {
            *ret_calls = h;
            return cudaSuccess;
        }
        status = cudaErrorOperatingSystem;
    }
    cudaFreeHost(h->done);
    free(h);
    return status;
}

void host_calls_close(struct host_calls *h)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    h->closing = true;
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->worker, NULL);
    for (struct call *call; (call = h->first);) {
        h->first = call->next;
        free(call->arg);
        free(call);
    }
    cudaFreeHost(h->done);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->changed);
    free(h);
}

cudaError_t host_calls_launch(struct host_calls *h, cudaStream_t stream, void (*run)(void *arg),
                              void *arg)
{
    struct call *call = xcalloc(1, sizeof *call);
    pthread_mutex_lock(&h->lock);
    uint32_t number = ++h->queued;
    *call = (struct call){NULL, number, run, arg};
    *h->end = call;
    h->end = &call->next;
    pthread_mutex_unlock(&h->lock);
    /* An idle stream comes to it at once: the call may be gone before the wait is queued. */
    cudaError_t status = cudaLaunchHostFunc(stream, note_due, h);
    return status == cudaSuccess ? h->wait(stream, (uintptr_t)h->done, number, 0) : status;
}
