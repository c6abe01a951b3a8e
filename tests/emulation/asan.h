/* Whether a test is built with AddressSanitizer, which alone finds some mistakes. */
#ifndef SHOAL_TESTS_EMULATION_ASAN_H
#define SHOAL_TESTS_EMULATION_ASAN_H

#ifdef __SANITIZE_ADDRESS__
enum { HAS_ASAN = 1 };
#else
enum { HAS_ASAN = 0 };
#endif

#endif
