/* Texts to ids, for tests of tokenizers. */
#ifndef SHOAL_TESTS_AGENT_TOKENIZED_H
#define SHOAL_TESTS_AGENT_TOKENIZED_H

#include "agent/text/tokenizer.h"

/* The ids of a text, in place of those in `ids`; `around`: with what the tokenizer
 * puts around it. */
void tokenized(const struct tokenizer *t, const char *text, bool around, struct tokens *ids);
/* Fails the test if the ids of a text, with what is around it, are not these. */
void tokenized_as(const struct tokenizer *t, const char *text, const int32_t *wanted, size_t count);
#endif
