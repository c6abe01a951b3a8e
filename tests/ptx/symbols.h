/* The compiler's name of a function, mangled, of hidden ones too: dladdr() does not tell it. */
#ifndef SHOAL_TESTS_PTX_SYMBOLS_H
#define SHOAL_TESTS_PTX_SYMBOLS_H

#ifdef __cplusplus
#include <string>

namespace ptx
{

/* From the symbols of the file that has it; "" if it has none there. */
std::string symbol_of(const void *function);

} // namespace ptx
#endif
#endif
