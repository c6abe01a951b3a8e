#include "base/mem.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each block is twice the last one: most arenas hold little, and many may be open at once. */
enum { ARENA_FIRST_BYTES = 1024, ARENA_MOST_BYTES = 16 * 1024, ARENA_ALIGN = 16 };

enum { KEPT_STEP_BYTES = 128 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(ARENA_ALIGN) unsigned char bytes[];
};

struct arena {
    struct arena_block *first;
};

/* Linux grants memory that it does not have, so an allocation that fails is a size gone wrong.
 * Nothing could be freed, or reported, that would help. */
static void *checked(void *p, size_t bytes)
{
    if (!p) {
        fprintf(stderr, "shoal: out of memory (%zu bytes)\n", bytes);
        abort();
    }
    return p;
}

void *xmalloc(size_t bytes)
{
    /* malloc(0) may return NULL (C11 7.22.3), which would look like a failure. */
    return checked(malloc(bytes ? bytes : 1), bytes);
}

void *xcalloc(size_t count, size_t bytes)
{
    return checked(calloc(count ? count : 1, bytes ? bytes : 1), count * bytes);
}

void *xrealloc(void *old, size_t bytes)
{
    return checked(realloc(old, bytes ? bytes : 1), bytes);
}

char *xstrdup(const char *text)
{
    return checked(strdup(text), strlen(text));
}

/* The room of a kept text. It moves once in a while, not whenever a number gets a digit more. */
static size_t kept_bytes(const char *text)
{
    return strlen(text) / KEPT_STEP_BYTES * KEPT_STEP_BYTES + KEPT_STEP_BYTES;
}

void mem_keep_text(char **kept, const char *text)
{
    size_t bytes = kept_bytes(text);
    if (!*kept || kept_bytes(*kept) != bytes)
        *kept = xrealloc(*kept, bytes);
    memcpy(*kept, text, strlen(text) + 1);
}

static char *vprintf_malloc(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    return checked(text, 0);
}

char *xasprintf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = vprintf_malloc(format, args);
    va_end(args);
    return text;
}

struct arena *arena_open(void)
{
    return xcalloc(1, sizeof(struct arena));
}

void arena_close(struct arena *arena)
{
    if (!arena)
        return;
    for (struct arena_block *b = arena->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(arena);
}

static size_t block_bytes(const struct arena_block *last, size_t needed)
{
    size_t size = last ? 2 * last->size : ARENA_FIRST_BYTES;
    size = size < ARENA_MOST_BYTES ? size : ARENA_MOST_BYTES;
    return needed > size ? needed : size;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    assert(arena && bytes < SIZE_MAX / 2);
    bytes = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    struct arena_block *b = arena->first;
    if (!b || b->size - b->used < bytes) {
        size_t size = block_bytes(b, bytes);
        b = xcalloc(1, sizeof *b + size);
        b->size = size;
        b->next = arena->first;
        arena->first = b;
    }
    void *p = b->bytes + b->used;
    b->used += bytes;
    return p;
}

char *arena_strndup(struct arena *arena, const char *text, size_t bytes)
{
    char *copy = arena_alloc(arena, bytes + 1);
    memcpy(copy, text, bytes);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return text ? arena_strndup(arena, text, strlen(text)) : NULL;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    auto_free char *text = vprintf_malloc(format, args);
    va_end(args);
    return arena_strdup(arena, text);
}

void mem_cleanup_free(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

void mem_cleanup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

void mem_cleanup_fclose(FILE **file)
{
    if (*file)
        fclose(*file);
}

void mem_cleanup_arena(struct arena **arena)
{
    arena_close(*arena);
}
