/* Memory. Running out of host memory aborts with a message: there are no half-built objects to
 * clean up and no untested paths. What dies together lives in an arena; what a function opens it
 * closes by attribute. */
#ifndef SHOAL_BASE_MEM_H
#define SHOAL_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Like their namesakes, but never return NULL (a size of 0 gives one byte). The caller frees. */
void *xmalloc(size_t bytes);
void *xcalloc(size_t count, size_t bytes);
void *xrealloc(void *old, size_t bytes);
char *xstrdup(const char *text);
/* Keeps another text in *kept (NULL: none yet), which the caller frees: where the last one was, if
 * there is room. Texts that change again and again would lie scattered among what was used while
 * they were made, and none of that could be given back to the system. */
void mem_keep_text(char **kept, const char *text);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An arena: many allocations, one end. Not thread-safe. */
struct arena;
struct arena *arena_open(void);
void arena_close(struct arena *arena); /* NULL-safe; frees all that was allocated from it */
void *arena_alloc(struct arena *arena, size_t bytes);      /* zeroed, aligned for any type */
char *arena_strdup(struct arena *arena, const char *text); /* NULL gives NULL */
char *arena_strndup(struct arena *arena, const char *text, size_t bytes);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define arena_new(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define arena_array(arena, type, count)                                                            \
    ((type *)arena_alloc((arena), sizeof(type) * (size_t)(count)))

/* Cleanup attributes: auto_free char *text = NULL; auto_close int fd = -1; */
void mem_cleanup_free(void *pointer_to_pointer);
void mem_cleanup_close(int *fd);
void mem_cleanup_fclose(FILE **file);
void mem_cleanup_arena(struct arena **arena);
#define auto_free   __attribute__((cleanup(mem_cleanup_free)))
#define auto_close  __attribute__((cleanup(mem_cleanup_close)))
#define auto_fclose __attribute__((cleanup(mem_cleanup_fclose)))
#define auto_arena  __attribute__((cleanup(mem_cleanup_arena)))

/* Hands a value out of a cleanup variable: return take(text); */
#define take(pointer)                                                                              \
    ({                                                                                             \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })
#define take_fd(fd)                                                                                \
    ({                                                                                             \
        int taken_ = (fd);                                                                         \
        (fd) = -1;                                                                                 \
        taken_;                                                                                    \
    })

#define array_length(array) (sizeof(array) / sizeof((array)[0]))
#endif
