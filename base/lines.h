/* A list of one-line texts with a cap, in the order they were added: problems found,
 * notes to show. */
#ifndef SHOAL_BASE_LINES_H
#define SHOAL_BASE_LINES_H

#include <stddef.h>

struct arena;

#define LINES_MAX 64

struct lines {
    struct arena *arena; /* holds the texts */
    const char *items[LINES_MAX];
    size_t count;
    size_t dropped; /* how many came after the list was full */
};

void lines_init(struct lines *lines, struct arena *arena);

/* Control characters become spaces; what is longer than 1023 bytes is cut. */
void lines_add(struct lines *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* All of them in one line, joined by "; ", with the number of those left out if there are any. In
 * the arena. */
const char *lines_join(const struct lines *lines);
#endif
