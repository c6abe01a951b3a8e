/* PTX, the text that nvcc makes of kernels, as far as nvcc makes it of ours (NVIDIA, "Parallel
 * Thread Execution ISA"). statements.cc and program.cc read it, forms.cc says what each instruction
 * is, grid.cc runs it. What is not known is a fault with its line: nothing is passed over.
 *
 * Knows nothing of the emulated GPU. */
#ifndef SHOAL_TESTS_PTX_PROGRAM_H
#define SHOAL_TESTS_PTX_PROGRAM_H

#ifdef __cplusplus
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx
{

/* What is wrong, and where. */
struct fault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* A value: what a register holds, plus a constant. An address is the same. */
struct operand {
    int reg = -1; /* index in kernel.registers; -1: none */
    uint64_t constant = 0;
    bool is_label = false, is_address = false; /* a label's constant: index of the instruction */
    bool is_sink = false;                      /* `_`: nobody wants the result */
};

struct form; /* forms.h */

struct instruction {
    const form *what;
    std::vector<operand> operands; /* those in braces, and both of a|b, one after the other */
    int guard = -1;                /* the predicate that it runs under; -1: always */
    bool guard_negated = false;
    bool is_inline; /* from an asm statement */
    int line;       /* of the file */
};

struct register_name {
    std::string name; /* "%r12" */
    unsigned bytes;   /* 1: a predicate */
};

struct kernel {
    std::string file, name; /* as the compiler mangles it */
    std::vector<instruction> code;
    std::vector<register_name> registers;
    std::map<std::string, int> special; /* "%tid.x": a register that is set when a warp starts */
    uint64_t parameter_bytes = 0;       /* of all */
    unsigned most_threads = 0;          /* of a block; 0: not told */
    unsigned least_blocks = 1;          /* that a multiprocessor has room for */
};

/* Where the spaces begin. Not at 0, so that a missing address is seen, and as on GPUs of 8.0 and
 * newer (their first KiB of shared memory is the driver's). */
enum : uint64_t { PARAMETERS_AT = 0x160, SHARED_AT = 1024 };

/* All kernels of a file. Throws fault. */
std::vector<kernel> parse_file(const std::string &file);
std::vector<kernel> parse_text(const std::string &text, const std::string &file);

} // namespace ptx
#endif
#endif
