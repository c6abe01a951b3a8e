/* Host functions in stream order that may block, as collectives over the network do. CUDA may run
 * the host functions of all streams on one thread (cudaLaunchHostFunc), where one that blocks holds
 * up the others. So each stream has its own thread for them. The stream waits until that thread has
 * written the function's number to a word that the GPU watches (cuStreamWaitValue32). */
#ifndef SHOAL_KERNELS_CUDA_HOST_CALLS_H
#define SHOAL_KERNELS_CUDA_HOST_CALLS_H

#include <cuda_runtime.h>

struct host_calls;

/* For one stream. Starts the thread. */
cudaError_t host_calls_open(struct host_calls **ret_calls);
/* NULL-safe; the stream is idle, or will never go on. */
void host_calls_close(struct host_calls *calls);

/* Queues run(arg) on the stream; arg is from malloc and is freed after it. */
cudaError_t host_calls_launch(struct host_calls *calls, cudaStream_t stream, void (*run)(void *arg),
                              void *arg);
#endif
