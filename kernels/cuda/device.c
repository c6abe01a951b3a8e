/* A GPU as a device, and the backend's table, which is all that the shared object exports. */
#include "base/contract.h"
#include "base/mem.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cupti.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/range.h"
#include "kernels/cuda/stream.h"
#include "kernels/cuda/survey.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 75 }; /* Turing, the oldest that CUDA 13 knows; it is for fp32 alone */

/* CUDA keeps a current device for each thread; this is what we know of it. */
static cudaError_t make_current(int index)
{
    static _Thread_local int current = -1;
    cudaError_t status = current == index ? cudaSuccess : cudaSetDevice(index);
    if (status == cudaSuccess)
        current = index;
    return status;
}

void cuda_use(const struct cuda_device *device)
{
    make_current(device->index);
}

int cuda_error(const struct cuda_device *device, struct error *err, cudaError_t status,
               const char *what)
{
    cudaGetLastError(); /* it is reported here: the next launch, of any stream, is none of it */
    if (data_fault_read(device->fault, err))
        return -1;
    enum error_code code = status == cudaErrorMemoryAllocation ? ERR_MEMORY : ERR_DEVICE;
    return error_set(err, code, "GPU: %s: %s", what, cudaGetErrorString(status));
}

/* What is to do on the node: no pod can mend these. */
static const char *mend_of(cudaError_t status)
{
    if (status == cudaErrorSystemNotReady)
        return "; machines with NVSwitch need nvidia-fabricmanager, of the driver's own version "
               "(systemctl status nvidia-fabricmanager)";
    if (status == cudaErrorSystemDriverMismatch)
        return "; the kernel's driver and libcuda.so.1 are of two versions: restart the machine, or "
               "remove the other libcuda.so.1";
    return "";
}

static int cuda_device_count(struct error *ret_reason)
{
    int driver = 0, runtime = 0, count = 0;
    /* Read when CUDA starts: streams that share a queue of the GPU would wait for each other's host
     * functions. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (!driver)
        return error_set(ret_reason, ERR_NOT_FOUND,
                         "no NVIDIA driver answers on this machine (libcuda.so.1)") +
               1;
    /* CUDA's minor versions are compatible with each other, its major ones are not. */
    if (driver / 1000 < runtime / 1000)
        return error_set(ret_reason, ERR_UNSUPPORTED,
                         "the NVIDIA driver is too old: it knows CUDA %d.%d, this build needs %d.0",
                         driver / 1000, driver % 1000 / 10, runtime / 1000) +
               1;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count < 1) {
        cudaGetLastError();
        bool is_none = status == cudaSuccess || status == cudaErrorNoDevice;
        error_set(ret_reason, is_none ? ERR_NOT_FOUND : ERR_UNSUPPORTED,
                  "this process sees no GPU: %s%s", cudaGetErrorString(status), mend_of(status));
        return 0;
    }
    return count;
}

static bool cuda_device_pci(int index, char *out)
{
    struct error ignored;
    if (index >= cuda_device_count(&ignored) ||
        cudaDeviceGetPCIBusId(out, DEVICE_PCI_BYTES, index) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    for (char *c = out; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return true;
}

static void survey(struct gpu_survey *ret)
{
    cuda_survey(cuda_device_count(&ret->no_gpus), ret);
    for (int i = 0; i < ret->gpus; i++)
        if (!cuda_device_pci(i, ret->gpu[i].pci))
            ret->gpu[i].pci[0] = '\0';
}

static void identify(struct cuda_device *d, const struct cudaDeviceProp *properties)
{
    const unsigned char *b = (const unsigned char *)properties->uuid.bytes;
    snprintf(d->base.uuid, sizeof d->base.uuid,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    snprintf(d->base.model, sizeof d->base.model, "%.*s", DEVICE_MODEL_BYTES - 1, properties->name);
}

/* Reads which GPU it is; refuses one that this build has no code for. */
static int check_architecture(struct cuda_device *d, struct error *err)
{
    struct cudaDeviceProp properties;
    cudaError_t status = cudaGetDeviceProperties(&properties, d->index);
    if (status != cudaSuccess)
        return cuda_error(d, err, status, "read its properties");
    identify(d, &properties);
    const char *name = properties.name;
    int capability = d->base.compute_capability;
    int major = capability / 10, minor = capability % 10;
    if (capability < OLDEST)
        return error_set(err, ERR_UNSUPPORTED,
                         "GPU %d (%s) has compute capability %d.%d: at least %d.%d is needed",
                         d->index, name, major, minor, OLDEST / 10, OLDEST % 10);
    status = cuda_probe(); /* CUDA has two names for what is not there */
    if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction)
        return error_set(err, ERR_UNSUPPORTED,
                         "this build has no code for GPU %d (%s, compute capability %d.%d): build "
                         "it with CUDA_ARCHS=%d",
                         d->index, name, major, minor, capability);
    if (status != cudaSuccess)
        return cuda_error(d, err, status, "look for its code");
    return 0;
}

static int read_attributes(struct cuda_device *d, struct error *err)
{
    int major = 0, minor = 0;
    cudaError_t status = make_current(d->index);
    if (status == cudaSuccess)
        status =
            cudaDeviceGetAttribute(&d->multiprocessors, cudaDevAttrMultiProcessorCount, d->index);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d->index);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, d->index);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&d->shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                        d->index);
    d->base.compute_capability = 10 * major + minor;
    return status == cudaSuccess ? 0 : cuda_error(d, err, status, "open it");
}

static int start_clock(struct cuda_device *d, struct error *err)
{
    /* CUDA reports times only as differences of two events: the first timestamp is counted from
     * this one. */
    cudaError_t status = cudaEventCreateWithFlags(&d->tick, cudaEventDefault);
    if (status == cudaSuccess)
        status = cudaEventRecord(d->tick, NULL); /* on the default stream */
    if (status == cudaSuccess)
        status = cudaEventSynchronize(d->tick);
    return status == cudaSuccess ? 0 : cuda_error(d, err, status, "start its clock");
}

static int open_fault(struct cuda_device *d, struct error *err)
{
    void *memory = NULL;
    cudaError_t status = cudaHostAlloc(&memory, sizeof *d->fault, cudaHostAllocMapped);
    if (status != cudaSuccess)
        return cuda_error(d, err, status, "lock a page of memory");
    memset(memory, 0, sizeof *d->fault);
    d->fault = memory;
    return 0;
}

static bool cuda_data_error(const struct device *device, struct error *ret)
{
    return data_fault_read(((const struct cuda_device *)device)->fault, ret);
}

static void cuda_device_close(struct device *device)
{
    struct cuda_device *d = (struct cuda_device *)device;
    cuda_use(d);
    cudnn_close(d->cudnn);
    blas_close(d->blas);
    if (d->tick)
        cudaEventDestroy(d->tick);
    cudaFreeHost(d->fault);
    free(d);
}

/* That what the environment asks for can be had here; what is new of it is told. */
static int check_attention(const struct cuda_device *d, enum attention_mode mode, struct error *err)
{
    char gpu[32];
    snprintf(gpu, sizeof gpu, "GPU %d", d->index);
    if (mode != ATTENTION_HOPPER)
        return 0;
    if (attention_mode_check(mode, gpu, d->base.compute_capability, err) < 0)
        return -1;
    if (!attention_hopper_is_built())
        return error_set(err, ERR_CONFIG,
                         ENV_ATTENTION "=hopper: this build has no code of sm_90a: build it with "
                                       "CUDA_ARCHS=90a, or leave " ENV_ATTENTION " unset");
    log_warning("attention: " ENV_ATTENTION "=hopper: kernels on wgmma and TMA, whose results and "
                "speed have been measured on no GPU yet");
    return 0;
}

static int cuda_device_open(int index, int threads, struct device **ret_device, struct error *err)
{
    (void)threads;
    struct error reason;
    enum attention_mode attention;
    int count = cuda_device_count(&reason);
    if (!count)
        return error_set(err, ERR_UNSUPPORTED, "%s", reason.msg);
    if (index >= count)
        return error_set(err, ERR_UNSUPPORTED, "no GPU %d: this process sees %d, counted from 0",
                         index, count);
    struct cuda_device *d = xcalloc(1, sizeof *d);
    d->index = index;
    cudaDriverGetVersion(&d->base.cuda_version);
    if (attention_mode_read(getenv(ENV_ATTENTION), &attention, err) < 0 ||
        read_attributes(d, err) < 0 || check_architecture(d, err) < 0 ||
        check_attention(d, attention, err) < 0 || start_clock(d, err) < 0 ||
        open_fault(d, err) < 0 || blas_open(&d->blas, err) < 0) {
        cuda_device_close(&d->base);
        return -1;
    }
    d->cudnn = cudnn_open(index, d->base.compute_capability, attention);
    *ret_device = &d->base;
    return 0;
}

static void *cuda_memory_alloc(void *ctx, size_t bytes)
{
    void *memory = NULL;
    cuda_use(ctx);
    if (cudaMalloc(&memory, bytes) == cudaSuccess)
        return memory;
    cudaGetLastError(); /* it has been reported */
    return NULL;
}

static void cuda_memory_free(void *ctx, void *block)
{
    cuda_use(ctx);
    cudaFree(block);
}

static void cuda_memory_wait_idle(void *ctx)
{
    cuda_streams_wait_idle(ctx);
}

/* Every call reports a fault that was before it: one more that needs no memory tells them apart. */
static int cuda_memory_check(void *ctx, struct error *err)
{
    size_t free_bytes = 0, total_bytes = 0;
    cuda_use(ctx);
    cudaError_t status = cudaMemGetInfo(&free_bytes, &total_bytes);
    return status == cudaSuccess ? 0 : cuda_error(ctx, err, status, "ask for memory");
}

static int64_t cuda_memory_free_bytes(const struct device *device, int64_t *ret_total)
{
    size_t free_bytes = 0, total_bytes = 0;
    cuda_use((const struct cuda_device *)device);
    cudaMemGetInfo(&free_bytes, &total_bytes);
    *ret_total = (int64_t)total_bytes;
    return (int64_t)free_bytes;
}

static void *cuda_host_alloc(struct device *device, size_t bytes)
{
    void *memory = NULL;
    cuda_use((const struct cuda_device *)device);
    /* Portable: page-locked for all devices of the process, and not for the current one alone. */
    if (cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocPortable) == cudaSuccess)
        return memory;
    cudaGetLastError();
    return NULL;
}

static void cuda_host_free(struct device *device, void *memory)
{
    cuda_use((const struct cuda_device *)device);
    cudaFreeHost(memory);
}

static bool cuda_host_register(struct device *device, void *memory, size_t bytes)
{
    cuda_use((const struct cuda_device *)device);
    if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable) == cudaSuccess)
        return true;
    cudaGetLastError();
    return false;
}

static void cuda_host_unregister(struct device *device, void *memory)
{
    cuda_use((const struct cuda_device *)device);
    cudaHostUnregister(memory);
}

extern const struct backend shoal_cuda_backend;
__attribute__((visibility("default"))) const struct backend shoal_cuda_backend = {
    .name = "cuda",
    .ops = &cuda_ops,
    BACKEND_TABLE_SIZES,
    .set_log_level = log_set_level,
    .device_count = cuda_device_count,
    .survey = survey,
    .device_pci = cuda_device_pci,
    .device_open = cuda_device_open,
    .device_close = cuda_device_close,
    .data_error = cuda_data_error,
    .memory = {cuda_memory_alloc, cuda_memory_free, cuda_memory_wait_idle, cuda_memory_check},
    .is_host = false,
    .memory_free_bytes = cuda_memory_free_bytes,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .host_register = cuda_host_register,
    .host_unregister = cuda_host_unregister,
    .stream_open = cuda_stream_open,
    .stream_close = cuda_stream_close,
    .stream_native = cuda_stream_native,
    .stream_sync = cuda_stream_sync,
    .stream_call = cuda_stream_call,
    .stream_copy = cuda_stream_copy,
    .stream_timestamp = cuda_stream_timestamp,
    .event_open = cuda_event_open,
    .event_close = cuda_event_close,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .stream_wait = cuda_stream_wait,
    .stream_range_begin = cuda_stream_range_begin,
    .stream_range_end = cuda_stream_range_end,
    .trace_begin = cuda_trace_begin,
    .trace_end = cuda_trace_end,
    .graph_open = cuda_graph_open,
    .graph_close = cuda_graph_close,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_get_use = cuda_graph_get_use,
};
