/* Work that the threads of a stream share. */
#include "kernels/cpu/cpu.h"

#include <string.h>

struct pieces_args {
    cpu_piece *piece;
    int64_t count, grain;
    _Alignas(16) unsigned char args[STREAM_CALL_MAX_BYTES];
};

static void pieces_run(void *args)
{
    const struct pieces_args *a = args;
    int64_t pieces = (a->count + a->grain - 1) / a->grain;
#pragma omp parallel for schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        int64_t last = (i + 1) * a->grain;
        a->piece(a->args, i * a->grain, last < a->count ? last : a->count);
    }
}

void cpu_queue_pieces(struct stream *s, const char *name, cpu_piece *piece, int64_t count,
                      int64_t grain, const void *args, size_t bytes)
{
    assert(count >= 0 && grain >= 1 && bytes <= STREAM_CALL_MAX_BYTES);
    struct pieces_args pieces = {.piece = piece, .count = count, .grain = grain};
    memcpy(pieces.args, args, bytes);
    cpu_queue(s, name, pieces_run, &pieces, sizeof pieces);
}
