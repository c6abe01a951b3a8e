/* What GCC calls where it compiles with -fsanitize=thread; its own library is not linked. The names
 * and meanings are those of gcc/sanitizer.def. In a library whose kernels are compiled otherwise
 * nobody calls them. A sanitizer brings its own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include "tests/emulation/races.h"

using namespace emulation;

#define EXPORT extern "C" __attribute__((visibility("default"), used))
#define BY     __builtin_return_address(0)

#define ACCESSES(bytes)                                                                            \
    EXPORT void __tsan_read##bytes(void *at)                                                       \
    {                                                                                              \
        races_touch(at, bytes, touch::reads, BY);                                                  \
    }                                                                                              \
    EXPORT void __tsan_write##bytes(void *at)                                                      \
    {                                                                                              \
        races_touch(at, bytes, touch::writes, BY);                                                 \
    }                                                                                              \
    EXPORT void __tsan_unaligned_read##bytes(void *at)                                             \
    {                                                                                              \
        races_touch(at, bytes, touch::reads, BY);                                                  \
    }                                                                                              \
    EXPORT void __tsan_unaligned_write##bytes(void *at)                                            \
    {                                                                                              \
        races_touch(at, bytes, touch::writes, BY);                                                 \
    }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

EXPORT void __tsan_read_range(void *at, size_t bytes)
{
    races_touch(at, bytes, touch::reads, BY);
}
EXPORT void __tsan_write_range(void *at, size_t bytes)
{
    races_touch(at, bytes, touch::writes, BY);
}

EXPORT void __tsan_init()
{
    races_watch();
}
EXPORT void __tsan_func_entry(void *)
{
}
EXPORT void __tsan_func_exit(void)
{
}
#endif
