/* Small programs of PTX, for tests of single instructions. Speaks TAP. */
#ifndef SHOAL_TESTS_PTX_INSTRUCTION_TEST_H
#define SHOAL_TESTS_PTX_INSTRUCTION_TEST_H

#ifdef __cplusplus
#include "tests/ptx/warp.h"

namespace ptx
{

constexpr int WARP_THREADS = LANES, GROUP_THREADS = 4 * LANES, WORDS = 16;

/* Runs a block. %r0 is the thread; %rd0 where its part of `words` is, all of which are device
 * memory; %rd1 where they begin; `bytes` is shared memory; %rd8 is the address of `map`, which
 * is a parameter. Throws fault. */
void run(const std::string &body, unsigned threads, std::vector<uint32_t> *words,
         const std::vector<unsigned char> &map = {});
constexpr int SHARED_BYTES = 32 * 1024;

void report(bool good, const std::string &what, const std::string &why = "");
int end_of_tests(); /* main's result */

/* What the body leaves in a thread's %r1. Thread t's words are 16 t .., the second of all ~0. */
struct result_row {
    const char *body;
    uint32_t expected;
    unsigned thread = 0;
};
void test_result(const result_row &row, unsigned threads);

/* What is told of the body. */
struct fault_row {
    std::string body, text;
};
void test_fault(const fault_row &row, unsigned threads, const std::vector<unsigned char> &map = {});

/* async_instructions.cc */
void test_async_instructions();

} // namespace ptx
#endif
#endif
