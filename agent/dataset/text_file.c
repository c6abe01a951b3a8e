#include "agent/dataset/text_file.h"

#include "agent/dataset/packed_file.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 256 * 1024 };

struct text_file {
    const char *path;
    struct packed_file *packed;
    int64_t lines, offset;
    char *buffer;
    size_t capacity;
    size_t at, end; /* what was read and not yet given */
    bool ended;     /* there is no more to read */
};

bool text_line_is_blank(const struct text_line *line)
{
    for (size_t i = 0; i < line->bytes; i++)
        if (!memchr(" \t\r\v\f", line->text[i], 5))
            return false;
    return !line->too_long;
}

static struct text_file *new_file(const char *path, struct packed_file *packed)
{
    struct text_file *f = xcalloc(1, sizeof *f);
    *f = (struct text_file){.path = path, .packed = packed};
    return f;
}

int text_file_open_fd(int fd, const char *name, struct text_file **ret_file, struct error *err)
{
    struct packed_file *packed;
    if (packed_file_open_fd(fd, name, &packed, err) < 0)
        return -1;
    *ret_file = new_file(name, packed);
    return 0;
}

int text_file_open(const char *path, int64_t offset, int64_t lines, struct text_file **ret_file,
                   struct error *err)
{
    struct packed_file *packed;
    if (packed_file_open(path, &packed, err) < 0)
        return -1;
    /* In a gzip file this unpacks everything before the offset: a resumed run pays for it once. */
    if (packed_file_skip(packed, offset, err) < 0) {
        packed_file_close(packed);
        return error_wrap(err, "%s: cannot go to offset %lld", path, (long long)offset);
    }
    *ret_file = new_file(path, packed);
    (*ret_file)->offset = offset;
    (*ret_file)->lines = lines;
    return 0;
}

void text_file_close(struct text_file *file)
{
    if (!file)
        return;
    packed_file_close(file->packed);
    free(file->buffer);
    free(file);
}

/* Reads more behind what is there. */
static int read_more(struct text_file *f, struct error *err)
{
    if (f->at > 0) {
        memmove(f->buffer, f->buffer + f->at, f->end - f->at);
        f->end -= f->at;
        f->at = 0;
    }
    if (f->capacity - f->end < CHUNK_BYTES) {
        f->capacity = 2 * f->end + CHUNK_BYTES;
        f->buffer = xrealloc(f->buffer, f->capacity);
    }
    size_t got;
    if (packed_file_read(f->packed, f->buffer + f->end, CHUNK_BYTES, &got, err) < 0)
        return error_wrap(err, "%s: after line %lld", f->path, (long long)f->lines);
    f->ended = got == 0;
    f->end += got;
    return 0;
}

/* Takes what is read of a line that is too long and reads on until there is an LF. */
static int pass_over(struct text_file *f, struct error *err)
{
    for (;;) {
        f->offset += (int64_t)(f->end - f->at);
        f->at = f->end = 0;
        if (f->ended)
            return 0;
        if (read_more(f, err) < 0)
            return -1;
        const char *lf = memchr(f->buffer, '\n', f->end);
        if (lf) {
            f->at = (size_t)(lf - f->buffer) + 1;
            f->offset += (int64_t)f->at;
            return 0;
        }
    }
}

static void give(struct text_file *f, size_t length, struct text_line *ret_line)
{
    const char *text = f->buffer + f->at;
    size_t bytes = length;
    /* Windows' byte order mark and CR: neither is text. */
    if (f->offset == 0 && bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        bytes -= 3;
    }
    if (bytes > 0 && text[bytes - 1] == '\r')
        bytes--;
    *ret_line = (struct text_line){.text = text, .bytes = bytes, .number = f->lines};
    size_t taken = length + (f->at + length < f->end); /* the LF */
    f->at += taken;
    f->offset += (int64_t)taken;
}

int text_file_next(struct text_file *file, struct text_line *ret_line, bool *ret_end,
                   struct error *err)
{
    size_t searched = 0;
    for (;;) {
        size_t have = file->end - file->at;
        const char *from = file->buffer + file->at;
        const char *lf = have > searched ? memchr(from + searched, '\n', have - searched) : NULL;
        size_t length = lf ? (size_t)(lf - from) : have;
        *ret_end = !lf && file->ended && have == 0;
        if (*ret_end)
            return 0;
        if (length > TEXT_FILE_MAX_LINE_BYTES) {
            file->lines++;
            *ret_line = (struct text_line){.text = "", .number = file->lines, .too_long = true};
            if (!lf)
                return pass_over(file, err);
            file->at += length + 1;
            file->offset += (int64_t)length + 1;
            return 0;
        }
        if (lf || file->ended) {
            file->lines++;
            give(file, length, ret_line);
            return 0;
        }
        /* What was searched already is not looked at again: a long line would else cost its
         * square. */
        searched = have;
        if (read_more(file, err) < 0)
            return -1;
    }
}

int64_t text_file_offset(const struct text_file *file)
{
    return file->offset;
}

int64_t text_file_lines(const struct text_file *file)
{
    return file->lines;
}
