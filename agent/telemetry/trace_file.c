#include "agent/telemetry/trace_file.h"

#include "base/durable.h"
#include "base/mem.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    PIECE_BYTES = 64 * 1024,
    GZIP = 16 + MAX_WBITS, /* deflateInit2's word for a gzip header */
    GZIP_MEMORY = 8,       /* zlib's default */
};

struct trace_file {
    char *path, *temp;
    struct durable_file *file;
    bool gzip;
    z_stream deflate;
};

static int make_folder(const char *path, struct error *err)
{
    auto_free char *copy = xstrdup(path);
    return durable_make_dirs(&file_ops_system, dirname(copy), err);
}

static void free_file(struct trace_file *f)
{
    if (f->gzip)
        deflateEnd(&f->deflate);
    free(f->path);
    free(f->temp);
    free(f);
}

int trace_file_create(const char *path, bool gzip, struct trace_file **ret_file, struct error *err)
{
    struct trace_file *f = xcalloc(1, sizeof *f);
    f->path = xstrdup(path);
    f->temp = durable_temp_name(path);
    if (make_folder(path, err) || durable_create(&file_ops_system, f->temp, &f->file, err)) {
        free_file(f);
        return -1;
    }
    f->gzip = gzip;
    if (gzip && deflateInit2(&f->deflate, Z_BEST_SPEED, Z_DEFLATED, GZIP, GZIP_MEMORY,
                             Z_DEFAULT_STRATEGY) != Z_OK)
        abort(); /* it only fails for want of memory */
    *ret_file = f;
    return 0;
}

/* Compresses what the stream was given. */
static int deflate_all(struct trace_file *f, int flush, struct error *err)
{
    unsigned char piece[PIECE_BYTES];
    do {
        f->deflate.next_out = piece;
        f->deflate.avail_out = sizeof piece;
        deflate(&f->deflate, flush);
        if (durable_write(f->file, piece, sizeof piece - f->deflate.avail_out, err))
            return -1;
    } while (f->deflate.avail_out == 0);
    return 0;
}

int trace_file_write(struct trace_file *f, const void *data, size_t bytes, struct error *err)
{
    if (!f->gzip)
        return durable_write(f->file, data, bytes, err);
    f->deflate.next_in = (unsigned char *)(uintptr_t)data; /* only read */
    f->deflate.avail_in = (unsigned)bytes;
    return deflate_all(f, Z_NO_FLUSH, err);
}

int trace_file_finish(struct trace_file *f, struct error *err)
{
    struct durable_result ignored;
    if (f->gzip && deflate_all(f, Z_FINISH, err)) {
        trace_file_abandon(f);
        return -1;
    }
    int result = durable_finish(take(f->file), &ignored, err);
    if (result == 0)
        result = durable_rename(&file_ops_system, f->temp, f->path, err);
    free_file(f);
    return result;
}

void trace_file_abandon(struct trace_file *f)
{
    if (!f)
        return;
    durable_abandon(f->file);
    free_file(f);
}
