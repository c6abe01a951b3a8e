/* The instructions that are known, each with what its operands are and what it does to a warp. A
 * row in one of the tables is all that another one costs. */
#ifndef SHOAL_TESTS_PTX_FORMS_H
#define SHOAL_TESTS_PTX_FORMS_H

#ifdef __cplusplus
#include "tests/ptx/program.h"

#include <cstddef>

namespace ptx
{

struct warp;

/* What an operand may be. */
struct operand_rule {
    /* LATER: read or written by the instruction when it likes, which checks it then; SINK: `_`. */
    enum { WRITTEN, READ, ADDRESS, LABEL, LATER, SINK } how;
    unsigned bytes;       /* of the register */
    bool or_more = false; /* loads, stores and conversions: it may be wider */
};

struct form {
    std::string name;
    std::vector<operand_rule> operands;
    void (*run)(warp &, const instruction &);
    enum { ANY_LANES, WHOLE_WARP } lanes = ANY_LANES; /* WHOLE_WARP: all 32 come here together */
};

/* Rows of one kind of instruction; each is in the file of its name. */
const std::vector<form> &arithmetic_forms();
const std::vector<form> &memory_forms();
const std::vector<form> &warp_forms();
const std::vector<form> &barrier_forms();
const std::vector<form> &bulk_copy_forms();
const std::vector<form> &warpgroup_forms();
const std::vector<form> &register_pool_forms();
const std::vector<form> &control_forms(); /* grid.cc */

/* That of the name with so many operands, else one of the name; NULL: unknown. */
const form *find_form(const std::string &name, size_t operands);

} // namespace ptx
#endif
#endif
