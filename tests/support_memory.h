/* What happens when memory runs out: the program ends, and says so. */
#ifndef SHOAL_TESTS_SUPPORT_MEMORY_H
#define SHOAL_TESTS_SUPPORT_MEMORY_H

/* In a process of its own, which has no memory left: run(context) must end it as xmalloc does.
 * Skips the test under sanitizers, whose allocators have words of their own for it. */
void support_assert_needs_memory(void (*run)(const void *context), const void *context);
#endif
