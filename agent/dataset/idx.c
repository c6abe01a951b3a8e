#include "agent/dataset/idx.h"

#include "base/file.h"
#include "base/mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    IDX_TYPE_BYTE = 0x08,    /* third byte of the magic number; the fourth is the dimensions */
    DEFLATE_MAX_RATIO = 1032 /* zlib never expands more than this */
};

/* Bytes in order: memory, or a gzip stream in memory. */
struct idx_bytes {
    const char *name;
    const uint8_t *content;
    size_t size, at; /* plain: bytes handed out so far */
    bool gzip;
    z_stream z;
};

static int idx_bytes_open(struct idx_bytes *s, const char *name, const uint8_t *content,
                          size_t size, struct error *err)
{
    *s = (struct idx_bytes){.name = name, .content = content, .size = size};
    s->gzip = size >= 2 && content[0] == 0x1f && content[1] == 0x8b;
    if (!s->gzip)
        return 0;
    s->z.next_in = (Bytef *)content;
    s->z.avail_in = (uInt)size;
    if (inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK) /* 16: gzip framing, with its checksum */
        return error_set(err, ERR_IO, "%s: zlib does not start", name);
    return 0;
}

static void idx_bytes_close(struct idx_bytes *s)
{
    if (s->gzip)
        inflateEnd(&s->z);
}

/* Reads up to `bytes`; *ret_read is less only at the end. */
static int idx_bytes_read(struct idx_bytes *s, uint8_t *out, size_t bytes, size_t *ret_read,
                          struct error *err)
{
    if (!s->gzip) {
        size_t left = s->size - s->at;
        *ret_read = bytes < left ? bytes : left;
        memcpy(out, s->content + s->at, *ret_read);
        s->at += *ret_read;
        return 0;
    }
    s->z.next_out = out;
    s->z.avail_out = (uInt)bytes;
    int result = inflate(&s->z, Z_FINISH); /* Z_BUF_ERROR: out of room or of input */
    *ret_read = bytes - s->z.avail_out;
    if (result == Z_OK || result == Z_STREAM_END)
        return 0;
    if (result == Z_BUF_ERROR && s->z.avail_out == 0)
        return 0;
    if (result == Z_BUF_ERROR)
        return error_set(err, ERR_INPUT, "%s: the gzip stream is cut off: download it again",
                         s->name);
    return error_set(err, ERR_INPUT, "%s: the gzip stream is broken (%s): download it again",
                     s->name, s->z.msg ? s->z.msg : "checksum");
}

/* Nothing may follow the last byte; a gzip stream must also end well. */
static int idx_bytes_end(struct idx_bytes *s, struct error *err)
{
    uint8_t extra;
    size_t got;
    if (idx_bytes_read(s, &extra, 1, &got, err) < 0)
        return -1;
    if (got > 0 || (s->gzip && s->z.avail_in > 0))
        return error_set(err, ERR_INPUT,
                         "%s: there are bytes after the end of its data: not the file its header "
                         "says, download it again",
                         s->name);
    return 0;
}

static uint32_t read_u32_be(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Magic number and sizes. */
static int read_shape(struct idx_bytes *s, struct idx *idx, int64_t *ret_bytes, struct error *err)
{
    uint8_t head[4 + 4 * IDX_MAX_DIMS];
    size_t want = 4 + 4 * (size_t)idx->dims, got;
    if (idx_bytes_read(s, head, want, &got, err) < 0)
        return -1;
    uint32_t expected = IDX_TYPE_BYTE << 8 | (uint32_t)idx->dims;
    if (got >= 4 && read_u32_be(head) != expected)
        return error_set(err, ERR_INPUT,
                         "%s: magic number 0x%08x, expected 0x%08x (IDX, bytes, %d dimension%s): "
                         "not the right file",
                         s->name, read_u32_be(head), expected, idx->dims,
                         idx->dims == 1 ? "" : "s");
    if (got < want)
        return error_set(err, ERR_INPUT,
                         "%s: cut off in its header (%zu of %zu bytes): download it again", s->name,
                         got, want);
    int64_t bytes = 1;
    for (int d = 0; d < idx->dims; d++) {
        idx->shape[d] = read_u32_be(head + 4 + 4 * d);
        if (idx->shape[d] == 0)
            return error_set(err, ERR_INPUT, "%s: size %d is 0: there is nothing in it", s->name,
                             d + 1);
        if (idx->shape[d] > IDX_MAX_BYTES / bytes)
            return error_set(
                err, ERR_INPUT,
                "%s: its sizes need more than %d bytes, which is the most that is read", s->name,
                IDX_MAX_BYTES);
        bytes *= idx->shape[d];
    }
    *ret_bytes = bytes;
    return 0;
}

/* What the header promises must be possible before memory is taken for it. */
static int check_size(const struct idx_bytes *s, int64_t bytes, struct error *err)
{
    size_t most = s->gzip ? s->size * DEFLATE_MAX_RATIO : s->size - s->at;
    if ((size_t)bytes <= most)
        return 0;
    return error_set(err, ERR_INPUT,
                     "%s: cut off: its header announces %lld bytes, there are at most %zu: "
                     "download it again",
                     s->name, (long long)bytes, most);
}

static int read_all(struct idx_bytes *s, struct idx *idx, struct error *err)
{
    int64_t bytes = 0;
    if (read_shape(s, idx, &bytes, err) < 0 || check_size(s, bytes, err) < 0)
        return -1;
    idx->bytes = xmalloc((size_t)bytes);
    size_t got;
    if (idx_bytes_read(s, idx->bytes, (size_t)bytes, &got, err) < 0)
        return -1;
    if (got < (size_t)bytes)
        return error_set(err, ERR_INPUT, "%s: cut off after %zu of %lld bytes: download it again",
                         s->name, got, (long long)bytes);
    return idx_bytes_end(s, err);
}

int idx_parse(const char *name, const uint8_t *content, size_t size, int dims, struct idx *ret_idx,
              struct error *err)
{
    assert(dims == 1 || dims == 3);
    if (size > IDX_MAX_BYTES)
        return error_set(err, ERR_INPUT, "%s: %zu bytes; at most %d are read", name, size,
                         IDX_MAX_BYTES);
    struct idx_bytes source;
    struct idx idx = {.dims = dims};
    if (idx_bytes_open(&source, name, content, size, err) < 0)
        return -1;
    int result = read_all(&source, &idx, err);
    idx_bytes_close(&source);
    if (result < 0)
        idx_free(&idx);
    else
        *ret_idx = idx;
    return result;
}

int idx_read(const char *path, int dims, struct idx *ret_idx, struct error *err)
{
    const uint8_t *content;
    size_t size;
    if (file_map(path, &content, &size, err) < 0)
        return -1;
    int result = idx_parse(path, content, size, dims, ret_idx, err);
    file_unmap(content, size);
    return result;
}

void idx_free(struct idx *idx)
{
    if (!idx)
        return;
    free(idx->bytes);
    idx->bytes = NULL;
}
