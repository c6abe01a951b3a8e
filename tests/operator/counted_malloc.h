/* Counts the bytes of the heap that a test has in use, each piece with its header. The allocator's
 * own figures take what it caches for what is used. Defines malloc and its like, so it is included
 * by one file of a program, its test. */
#ifndef SHOAL_TESTS_OPERATOR_COUNTED_MALLOC_H
#define SHOAL_TESTS_OPERATOR_COUNTED_MALLOC_H

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_size_t bytes_in_use;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

#define COUNTS false /* the allocator is the sanitizer's, which looks for leaks instead */

#else

#define COUNTS true

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *old);

static void *counted(void *p)
{
    bytes_in_use += p ? malloc_usable_size(p) + sizeof(size_t) : 0;
    return p;
}

static void uncount(void *p)
{
    bytes_in_use -= p ? malloc_usable_size(p) + sizeof(size_t) : 0;
}

void *malloc(size_t bytes)
{
    return counted(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return counted(__libc_calloc(count, bytes));
}

void *realloc(void *old, size_t bytes)
{
    uncount(old);
    return counted(__libc_realloc(old, bytes));
}

void free(void *old)
{
    uncount(old);
    __libc_free(old);
}

#endif
#endif
