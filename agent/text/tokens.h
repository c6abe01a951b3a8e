/* A growing list of token ids. */
#ifndef SHOAL_AGENT_TEXT_TOKENS_H
#define SHOAL_AGENT_TEXT_TOKENS_H

#include <stddef.h>
#include <stdint.h>

/* All zero: empty. */
struct tokens {
    int32_t *ids; /* [count]; owned */
    size_t count;
    size_t capacity; /* ids allocated */
};

void tokens_add(struct tokens *tokens, int32_t id);
void tokens_add_many(struct tokens *tokens, const int32_t *ids, size_t count);
void tokens_clear(struct tokens *tokens); /* keeps the room */
void tokens_free(struct tokens *tokens);  /* also resets; NULL-safe */

#define auto_tokens __attribute__((cleanup(tokens_free)))
#endif
