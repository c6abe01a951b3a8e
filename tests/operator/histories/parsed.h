/* Objects of the small world as JSON. Most come again and again in other states, and to parse them
 * takes longer than all else that happens to them: they are kept outside of the region. */
#ifndef SHOAL_TESTS_OPERATOR_HISTORIES_PARSED_H
#define SHOAL_TESTS_OPERATOR_HISTORIES_PARSED_H

#include <stdint.h>

struct json;

/* What this text says, in this resourceVersion. hash: of the text, the same for the same text.
 * Lives until the next call; of the program's own, as the region is for one state alone. */
const struct json *parsed(const char *text, uint64_t hash, int version);
void parsed_forget(void);
#endif
