#include "agent/dataset/packed_file.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    CHUNK_BYTES = 256 * 1024,
    GZIP_FORMAT = 16 + MAX_WBITS, /* inflateInit2: gzip's head and tail, and no other's */
};

struct packed_file {
    int fd;
    bool is_gzip;
    bool in_member;     /* one has begun and not ended */
    bool is_at_end;     /* of the file */
    int64_t read_bytes; /* of the file */
    z_stream stream;    /* its input lies in `chunk` */
    unsigned char chunk[CHUNK_BYTES];
};

/* Reads until so many bytes of the chunk are there, or the file ends. A pipe may give one byte at a
 * time. More than one only right after opening: what is read lies at the chunk's beginning. */
static int fill(struct packed_file *f, size_t least, struct error *err)
{
    assert(least == 1 || f->read_bytes == 0);
    while (f->stream.avail_in < least && !f->is_at_end) {
        size_t there = f->stream.avail_in;
        ssize_t got = read(f->fd, f->chunk + there, sizeof f->chunk - there);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_errno(err, errno, "read");
        f->is_at_end = got == 0;
        f->read_bytes += got;
        f->stream.next_in = f->chunk;
        f->stream.avail_in = (unsigned)(there + (size_t)got);
    }
    return 0;
}

int packed_file_open(const char *path, struct packed_file **ret_file, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "%s", path);
    return packed_file_open_fd(fd, path, ret_file, err);
}

int packed_file_open_fd(int fd, const char *name, struct packed_file **ret_file, struct error *err)
{
    struct packed_file *f = xcalloc(1, sizeof *f);
    f->fd = fd;
    enum { MAGIC_BYTES = 2 };
    int result = fill(f, MAGIC_BYTES, err);
    f->is_gzip = f->stream.avail_in >= MAGIC_BYTES && f->chunk[0] == 0x1f && f->chunk[1] == 0x8b;
    if (result == 0 && f->is_gzip && inflateInit2(&f->stream, GZIP_FORMAT) != Z_OK)
        result = error_set(err, ERR_MEMORY, "no memory to unpack with");
    if (result < 0) {
        error_wrap(err, "%s", name);
        close(fd);
        free(f);
        return -1;
    }
    f->in_member = f->is_gzip;
    *ret_file = f;
    return 0;
}

void packed_file_close(struct packed_file *f)
{
    if (!f)
        return;
    if (f->is_gzip)
        inflateEnd(&f->stream);
    close(f->fd);
    free(f);
}

static int read_plain(struct packed_file *f, void *buffer, size_t room, size_t *ret_bytes,
                      struct error *err)
{
    if (fill(f, 1, err) < 0)
        return -1;
    size_t bytes = f->stream.avail_in < room ? f->stream.avail_in : room;
    memcpy(buffer, f->stream.next_in, bytes);
    f->stream.next_in += bytes;
    f->stream.avail_in -= (unsigned)bytes;
    *ret_bytes = bytes;
    return 0;
}

/* Behind a member: to the next one, or to the end. */
static int begin_member(struct packed_file *f, struct error *err)
{
    bool has_zeros = false;
    for (;;) {
        if (fill(f, 1, err) < 0)
            return -1;
        if (f->is_at_end)
            return 0;
        if (f->stream.next_in[0] != 0)
            break;
        has_zeros = true;
        f->stream.next_in++;
        f->stream.avail_in--;
    }
    if (has_zeros || f->stream.next_in[0] != 0x1f)
        return error_set(err, ERR_INPUT, "followed by what is none");
    inflateReset(&f->stream);
    f->in_member = true;
    return 0;
}

static int read_gzip(struct packed_file *f, void *buffer, size_t room, size_t *ret_bytes,
                     struct error *err)
{
    f->stream.next_out = buffer;
    f->stream.avail_out = (unsigned)room;
    while (f->stream.avail_out == room) {
        if (!f->in_member && begin_member(f, err) < 0)
            return -1;
        if (!f->in_member)
            break;
        if (fill(f, 1, err) < 0)
            return -1;
        if (f->is_at_end)
            return error_set(err, ERR_INPUT, "cut off");
        int code = inflate(&f->stream, Z_NO_FLUSH);
        if (code != Z_OK && code != Z_STREAM_END)
            return error_set(err, ERR_INPUT, "%s", f->stream.msg ? f->stream.msg : "damaged");
        f->in_member = code != Z_STREAM_END;
    }
    *ret_bytes = room - f->stream.avail_out;
    return 0;
}

int packed_file_read(struct packed_file *f, void *buffer, size_t room, size_t *ret_bytes,
                     struct error *err)
{
    *ret_bytes = 0;
    int result = f->is_gzip ? read_gzip(f, buffer, room, ret_bytes, err)
                            : read_plain(f, buffer, room, ret_bytes, err);
    if (result == 0)
        return 0;
    const struct error why = *err;
    long long offset = f->read_bytes - f->stream.avail_in;
    if (why.code != ERR_INPUT)
        return error_wrap(err, "offset %lld", offset);
    return error_set(err, ERR_INPUT, "offset %lld: the gzip stream is %s: download it again",
                     offset, why.msg);
}

bool packed_file_is_gzip(const struct packed_file *f)
{
    return f->is_gzip;
}

int packed_file_skip(struct packed_file *f, int64_t bytes, struct error *err)
{
    if (!f->is_gzip && bytes > 0) {
        f->stream.avail_in = 0;
        f->is_at_end = false;
        f->read_bytes = lseek(f->fd, bytes, SEEK_SET);
        return f->read_bytes == bytes ? 0 : error_errno(err, errno, "lseek");
    }
    auto_free char *passed = xmalloc(CHUNK_BYTES);
    while (bytes > 0) {
        size_t got, most = bytes < CHUNK_BYTES ? (size_t)bytes : CHUNK_BYTES;
        if (packed_file_read(f, passed, most, &got, err) < 0)
            return -1;
        if (got == 0)
            return error_set(err, ERR_INPUT, "it ends before");
        bytes -= (int64_t)got;
    }
    return 0;
}
