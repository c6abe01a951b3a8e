#include "cli/token_file.h"

#include "agent/dataset/llmc_bin.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_IDS = 4096 };

struct token_file {
    char *path, *temporary;
    FILE *out;
    bool wide;
    int64_t count;
};

static int io_error(const struct token_file *file, struct error *err)
{
    return error_errno(err, errno, "write %s", file->path);
}

static int write_header(struct token_file *file, struct error *err)
{
    int32_t header[LLMC_HEADER_BYTES / 4] = {
        file->wide ? LLMC_MAGIC_LLAMA3 : LLMC_MAGIC_GPT2,
        file->wide ? LLMC_VERSION_LLAMA3 : LLMC_VERSION_GPT2,
        (int32_t)file->count,
    };
    if (fseek(file->out, 0, SEEK_SET) < 0 || fwrite(header, sizeof header, 1, file->out) != 1)
        return io_error(file, err);
    return 0;
}

int token_file_create(const char *path, bool wide, struct token_file **ret_file, struct error *err)
{
    if (file_is_directory(path))
        return error_set(err, ERR_EXISTS, "%s is a directory: name a file", path);
    struct token_file *file = xcalloc(1, sizeof *file);
    file->path = xstrdup(path);
    file->temporary = durable_temp_name(path);
    file->wide = wide;
    int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        file->out = fdopen(fd, "wb");
    if (!file->out) {
        error_errno(err, errno, "create %s", path);
        token_file_abandon(file);
        return -1;
    }
    if (write_header(file, err) < 0) { /* its place; the count comes at the end */
        token_file_abandon(file);
        return -1;
    }
    *ret_file = file;
    return 0;
}

static int write_chunk(struct token_file *file, const int32_t *ids, size_t count, struct error *err)
{
    uint16_t narrow[CHUNK_IDS];
    assert(count <= CHUNK_IDS);
    for (size_t i = 0; i < count && !file->wide; i++) {
        assert(ids[i] >= 0 && ids[i] <= UINT16_MAX);
        narrow[i] = (uint16_t)ids[i];
    }
    const void *bytes = file->wide ? (const void *)ids : narrow;
    if (fwrite(bytes, file->wide ? sizeof *ids : sizeof *narrow, count, file->out) != count)
        return io_error(file, err);
    file->count += (int64_t)count;
    return 0;
}

int token_file_add(struct token_file *file, const int32_t *ids, size_t count, struct error *err)
{
    if ((int64_t)count > TOKEN_FILE_MAX_IDS - file->count)
        return error_set(err, ERR_LIMIT,
                         "%s: more than %d ids, which is what the format can count: write several "
                         "files",
                         file->path, TOKEN_FILE_MAX_IDS);
    for (size_t at = 0; at < count; at += CHUNK_IDS) {
        size_t chunk = count - at < CHUNK_IDS ? count - at : CHUNK_IDS;
        if (write_chunk(file, ids + at, chunk, err) < 0)
            return -1;
    }
    return 0;
}

static int put_in_place(struct token_file *file, struct error *err)
{
    if (write_header(file, err) < 0)
        return -1;
    if (fflush(file->out) != 0 || fsync(fileno(file->out)) < 0)
        return io_error(file, err);
    FILE *out = take(file->out);
    if (fclose(out) != 0)
        return io_error(file, err);
    return durable_rename(&file_ops_system, file->temporary, file->path, err);
}

int token_file_finish(struct token_file *file, int64_t *ret_ids, struct error *err)
{
    int64_t count = file->count;
    int result = put_in_place(file, err);
    token_file_abandon(file);
    if (result == 0)
        *ret_ids = count;
    return result;
}

void token_file_abandon(struct token_file *file)
{
    if (!file)
        return;
    if (file->out)
        fclose(file->out);
    unlink(file->temporary); /* gone already if it is in place */
    free(file->path);
    free(file->temporary);
    free(file);
}
