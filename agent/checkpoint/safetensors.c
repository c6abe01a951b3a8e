#include "agent/checkpoint/safetensors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "data is read and written as it is");

enum { HASH_CHUNK_BYTES = 1 << 20 };

struct safetensors {
    struct arena *arena; /* the header's */
    char *path;
    int fd;
    int64_t file_bytes;
    uint64_t header_xxh64;
    struct safetensors_header header;
};

static int read_at(const struct safetensors *f, int64_t offset, void *out, size_t bytes,
                   struct error *err)
{
    char *p = out;
    /* read(2) returns 2 GiB at most, and less if a signal comes. */
    while (bytes > 0) {
        ssize_t n = pread(f->fd, p, bytes, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "read %s", f->path);
        if (n == 0)
            return error_set(err, ERR_INPUT, "%s: it has become shorter while it was read",
                             f->path);
        p += n;
        offset += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int read_header(struct safetensors *f, struct error *err)
{
    uint8_t length[8];
    size_t have = f->file_bytes < 8 ? (size_t)f->file_bytes : 8;
    int64_t header_bytes;
    if (read_at(f, 0, length, have, err) < 0 ||
        safetensors_header_bytes(f->path, length, have, f->file_bytes, &header_bytes, err) < 0)
        return -1;
    auto_free uint8_t *bytes = xmalloc((size_t)header_bytes);
    if (read_at(f, 0, bytes, (size_t)header_bytes, err) < 0)
        return -1;
    f->header_xxh64 = XXH64(bytes, (size_t)header_bytes, 0);
    return safetensors_parse(f->arena, f->path, bytes, (size_t)header_bytes, f->file_bytes,
                             &f->header, err);
}

int safetensors_open(const char *path, struct safetensors **ret_file, struct error *err)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, ERR_INPUT, "%s: not a regular file", path);
    struct safetensors *f = xcalloc(1, sizeof *f);
    f->arena = arena_open();
    f->path = xstrdup(path);
    f->fd = take_fd(fd);
    f->file_bytes = st.st_size;
    if (read_header(f, err) < 0) {
        safetensors_close(f);
        return -1;
    }
    *ret_file = f;
    return 0;
}

void safetensors_close(struct safetensors *file)
{
    if (!file)
        return;
    close(file->fd);
    free(file->path);
    arena_close(file->arena);
    free(file);
}

const struct safetensors_header *safetensors_header(const struct safetensors *file)
{
    return &file->header;
}

int safetensors_read(const struct safetensors *file, const struct safetensors_tensor *tensor,
                     int64_t first, int64_t count, void *out, struct error *err)
{
    assert(first >= 0 && count >= 0 && first <= tensor->count - count);
    int64_t size = safetensors_dtype_bytes(tensor->dtype);
    int64_t offset = file->header.header_bytes + tensor->data_begin + first * size;
    return read_at(file, offset, out, (size_t)(count * size), err);
}

uint64_t safetensors_hash_header(const struct safetensors *file)
{
    return file->header_xxh64;
}

int safetensors_hash(const struct safetensors *file, uint64_t *ret_xxh64, struct error *err)
{
    auto_free void *chunk = xmalloc(HASH_CHUNK_BYTES);
    XXH64_state_t *hash = XXH64_createState();
    assert(hash);
    XXH64_reset(hash, 0);
    int result = 0;
    for (int64_t at = 0; at < file->file_bytes && result == 0; at += HASH_CHUNK_BYTES) {
        int64_t left = file->file_bytes - at;
        size_t bytes = left < HASH_CHUNK_BYTES ? (size_t)left : HASH_CHUNK_BYTES;
        result = read_at(file, at, chunk, bytes, err);
        if (result == 0)
            XXH64_update(hash, chunk, bytes);
    }
    if (result == 0)
        *ret_xxh64 = XXH64_digest(hash);
    XXH64_freeState(hash);
    return result;
}
