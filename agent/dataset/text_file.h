/* Lines of a text file, plain or gzipped (recognized by content), from any offset on. */
#ifndef SHOAL_AGENT_DATASET_TEXT_FILE_H
#define SHOAL_AGENT_DATASET_TEXT_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_FILE_MAX_LINE_BYTES = 16 << 20 };

struct text_line {
    const char *text; /* without its end (LF or CRLF); valid until the next call */
    size_t bytes;
    int64_t number; /* 1 is the file's first */
    bool too_long;  /* longer than the cap: passed over, text is "" */
};

/* Whether it has nothing but white space; a line that is too long is not. */
bool text_line_is_blank(const struct text_line *line);

struct text_file;

/* offset: where a line begins, in bytes (of a .gz: unpacked; what is before it is unpacked too);
 * lines: how many are before it. The path must outlive the file. */
int text_file_open(const char *path, int64_t offset, int64_t lines, struct text_file **ret_file,
                   struct error *err);
/* As packed_file_open_fd(); the name must outlive the file. */
int text_file_open_fd(int fd, const char *name, struct text_file **ret_file, struct error *err);
void text_file_close(struct text_file *file); /* NULL-safe */

/* *ret_end: there is none left. A last line may lack its LF. A byte order mark at the file's
 * beginning is left out. Errors: ERR_INPUT naming the file and the offset where a gzip stream is
 * cut off or broken; ERR_IO. */
int text_file_next(struct text_file *file, struct text_line *ret_line, bool *ret_end,
                   struct error *err);

/* Where the next line begins, and how many are before it. */
int64_t text_file_offset(const struct text_file *file);
int64_t text_file_lines(const struct text_file *file);
#endif
