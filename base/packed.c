#include "base/packed.h"

#define ZLIB_CONST /* else it takes no constant text */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"

/* As everywhere, running out of memory ends the program. */
static void *get_memory(void *context, uInt count, uInt bytes)
{
    (void)context;
    return xcalloc(count, bytes);
}

static void free_memory(void *context, void *memory)
{
    (void)context;
    free(memory);
}

/* Small ones, of 40 KB while a text is packed: most texts are no longer than such a window, and of
 * long ones what repeats lies near. Without zlib's header and checksum. */
enum { WINDOW_BITS = -12, MEMORY_LEVEL = 5 };

enum { ROOM_STEP_BYTES = 64 };

static size_t room_of(size_t bytes)
{
    size_t all = sizeof(struct packed) + bytes;
    return (all + ROOM_STEP_BYTES - 1) / ROOM_STEP_BYTES * ROOM_STEP_BYTES;
}

struct packed *packed_keep(struct packed *old, const char *text)
{
    size_t text_bytes = strlen(text);
    z_stream z = {.next_in = (const unsigned char *)text,
                  .avail_in = (uInt)text_bytes,
                  .zalloc = get_memory,
                  .zfree = free_memory};
    assert(text_bytes < UINT32_MAX / 2);
    int begun =
        deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
    assert(begun == Z_OK);
    size_t most = deflateBound(&z, (uLong)text_bytes);
    auto_free unsigned char *data = xmalloc(most);
    z.next_out = data;
    z.avail_out = (uInt)most;
    int done = deflate(&z, Z_FINISH);
    assert(done == Z_STREAM_END);
    deflateEnd(&z);
    size_t bytes = most - z.avail_out;
    struct packed *packed =
        old && room_of(old->bytes) == room_of(bytes) ? old : xrealloc(old, room_of(bytes));
    packed->bytes = (uint32_t)bytes;
    packed->text_bytes = (uint32_t)text_bytes;
    memcpy(packed->data, data, bytes);
    return packed;
}

char *packed_text(const struct packed *packed)
{
    char *text = xmalloc((size_t)packed->text_bytes + 1);
    z_stream z = {.next_in = packed->data,
                  .avail_in = packed->bytes,
                  .next_out = (unsigned char *)text,
                  .avail_out = packed->text_bytes,
                  .zalloc = get_memory,
                  .zfree = free_memory};
    int begun = inflateInit2(&z, WINDOW_BITS);
    assert(begun == Z_OK);
    int done = inflate(&z, Z_FINISH);
    assert(done == Z_STREAM_END && z.avail_out == 0); /* it was packed by us */
    inflateEnd(&z);
    text[packed->text_bytes] = '\0';
    return text;
}
