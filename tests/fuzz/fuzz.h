/* A fuzz target: one function that must survive any bytes. Each tests/fuzz/fuzz_NAME.c defines it;
 * its seed inputs are the files of tests/fuzz/corpus/NAME. `make check` runs all of them with
 * driver.c, `make fuzz T=NAME` runs one under clang's libFuzzer. */
#ifndef SHOAL_TESTS_FUZZ_FUZZ_H
#define SHOAL_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0; anything that must not be is an assert, or what a sanitizer finds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#endif
