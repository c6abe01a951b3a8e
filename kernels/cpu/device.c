/* The CPU as a device: its memory is the machine's, its streams are threads. */
#include "base/mem.h"
#include "kernels/cpu/stream.h"

#include <stdlib.h>
#include <unistd.h>

static int cpu_device_count(struct error *ret_reason)
{
    (void)ret_reason;
    return 1;
}

static int cpu_device_open(int index, int threads, struct device **ret_device, struct error *err)
{
    (void)index, (void)threads, (void)err;
    struct cpu_device *device = xcalloc(1, sizeof *device);
    device->capacity_bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    *ret_device = &device->base;
    return 0;
}

static void cpu_device_close(struct device *device)
{
    assert(!device->streams);
    free(device);
}

static void *cpu_memory_alloc(void *ctx, size_t bytes)
{
    const struct cpu_device *device = ctx;
    /* Linux promises more memory than there is (overcommit) and kills later, so the limit is ours.
     * 64 bytes are a cache line and AVX-512's longest load. */
    return bytes <= device->capacity_bytes ? aligned_alloc(64, bytes) : NULL;
}

static void cpu_memory_free(void *ctx, void *block)
{
    (void)ctx;
    free(block);
}

static void cpu_memory_wait_idle(void *ctx)
{
    cpu_streams_wait_idle(ctx);
}

static int64_t cpu_memory_free_bytes(const struct device *device, int64_t *ret_total)
{
    *ret_total = (int64_t)((const struct cpu_device *)device)->capacity_bytes;
    return (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

static void *cpu_host_alloc(struct device *device, size_t bytes)
{
    return cpu_memory_alloc(device, (bytes + 63) / 64 * 64);
}

static void cpu_host_free(struct device *device, void *memory)
{
    (void)device;
    free(memory);
}

/* Any memory of the host is its own. */
static bool cpu_host_register(struct device *device, void *memory, size_t bytes)
{
    (void)device, (void)memory, (void)bytes;
    return true;
}

static void cpu_host_unregister(struct device *device, void *memory)
{
    (void)device, (void)memory;
}

static int cpu_graph_open(struct stream *stream, struct graph **ret_graph, struct error *err)
{
    (void)stream, (void)ret_graph;
    return error_set(err, ERR_UNSUPPORTED, "the CPU has no graphs of ops");
}

const struct backend cpu_backend = {
    .name = "cpu",
    .ops = &cpu_ops,
    BACKEND_TABLE_SIZES,
    .device_count = cpu_device_count,
    .device_open = cpu_device_open,
    .device_close = cpu_device_close,
    .memory = {cpu_memory_alloc, cpu_memory_free, cpu_memory_wait_idle, NULL},
    .is_host = true,
    .memory_free_bytes = cpu_memory_free_bytes,
    .host_alloc = cpu_host_alloc,
    .host_free = cpu_host_free,
    .host_register = cpu_host_register,
    .host_unregister = cpu_host_unregister,
    .stream_open = cpu_stream_open,
    .stream_close = cpu_stream_close,
    .stream_native = cpu_stream_native,
    .stream_sync = cpu_stream_sync,
    .stream_call = cpu_stream_call,
    .stream_copy = cpu_stream_copy,
    .stream_timestamp = cpu_stream_timestamp,
    .event_open = cpu_event_open,
    .event_close = cpu_event_close,
    .event_record = cpu_event_record,
    .event_query = cpu_event_query,
    .stream_wait = cpu_stream_wait,
    .graph_open = cpu_graph_open,
};
