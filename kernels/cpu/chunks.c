/* Work that the threads of a stream share. */
#include "kernels/cpu/cpu.h"

#include <string.h>

struct chunks_args {
    cpu_chunk *chunk;
    int64_t count, grain;
    _Alignas(16) unsigned char args[STREAM_CALL_MAX_BYTES];
};

static void chunks_run(void *args)
{
    const struct chunks_args *a = args;
    int64_t chunks = (a->count + a->grain - 1) / a->grain;
#pragma omp parallel for schedule(static) if (chunks > 1)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t last = (i + 1) * a->grain;
        a->chunk(a->args, i * a->grain, last < a->count ? last : a->count);
    }
}

void cpu_queue_chunks(struct stream *s, const char *name, cpu_chunk *chunk, int64_t count,
                      int64_t grain, const void *args, size_t bytes)
{
    assert(count >= 0 && grain >= 1 && bytes <= STREAM_CALL_MAX_BYTES);
    struct chunks_args chunks = {.chunk = chunk, .count = count, .grain = grain};
    memcpy(chunks.args, args, bytes);
    cpu_queue(s, name, chunks_run, &chunks, sizeof chunks);
}
