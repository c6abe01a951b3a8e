#include "agent/launch/output_tail.h"

#include "base/utf8.h"

#include <string.h>

void output_tail_add(struct output_tail *tail, const char *bytes, size_t count)
{
    if (count > OUTPUT_TAIL_BYTES) {
        tail->total += count - OUTPUT_TAIL_BYTES;
        bytes += count - OUTPUT_TAIL_BYTES;
        count = OUTPUT_TAIL_BYTES;
    }
    size_t at = tail->total % OUTPUT_TAIL_BYTES, room = OUTPUT_TAIL_BYTES - at;
    size_t first = count < room ? count : room;
    memcpy(tail->bytes + at, bytes, first);
    memcpy(tail->bytes, bytes + first, count - first);
    tail->total += count;
}

/* In their order; returns how many. */
static size_t unroll(const struct output_tail *tail, char text[OUTPUT_TAIL_BYTES])
{
    size_t at = tail->total % OUTPUT_TAIL_BYTES;
    if (tail->total <= OUTPUT_TAIL_BYTES) {
        memcpy(text, tail->bytes, tail->total);
        return tail->total;
    }
    memcpy(text, tail->bytes + at, OUTPUT_TAIL_BYTES - at);
    memcpy(text + OUTPUT_TAIL_BYTES - at, tail->bytes, at);
    return OUTPUT_TAIL_BYTES;
}

/* Where the last lines begin in text[0..end). The ring has lost the beginning of the first. */
static size_t find_lines(const char *text, size_t end, bool is_cut)
{
    size_t at = end;
    for (int lines = 0; at > 0; at--)
        if (text[at - 1] == '\n' && at < end && ++lines == OUTPUT_TAIL_LINES)
            return at;
    const char *newline = is_cut ? memchr(text, '\n', end) : NULL;
    return newline && newline + 1 < text + end ? (size_t)(newline + 1 - text) : 0;
}

void output_tail_print(const struct output_tail *tail, struct str *out)
{
    char text[OUTPUT_TAIL_BYTES];
    size_t end = unroll(tail, text);
    size_t at = find_lines(text, end, tail->total > OUTPUT_TAIL_BYTES);
    while (at < end) {
        const char *newline = memchr(text + at, '\n', end - at);
        size_t length = newline ? (size_t)(newline - text) - at : end - at;
        if (length > 0) {
            utf8_make_printable(text + at, length);
            str_add(out, "    ");
            str_add_bytes(out, text + at, length);
            str_add(out, "\n");
        }
        at += length + 1;
    }
}
