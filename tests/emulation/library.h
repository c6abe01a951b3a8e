/* The functions of an emulated library, for base/library.h's calls. */
#ifndef SHOAL_TESTS_EMULATION_LIBRARY_H
#define SHOAL_TESTS_EMULATION_LIBRARY_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct emulated_function {
    const char *name; /* NULL: no more */
    void (*address)(void);
};
#define EMULATED(function)                                                                         \
    {                                                                                              \
#function, (void (*)(void))(function)                                                      \
    }

/* cudnn.cc */
extern const struct emulated_function emulated_cudnn[];
bool emulation_has_cudnn(void);
bool emulation_cudnn_is_half(void); /* parts of it are not there */

/* Not so if NVRTC was opened without its builtins, which it needs in order to compile. */
bool emulation_compiler_is_whole(void);

#ifdef __cplusplus
}
#endif
#endif
