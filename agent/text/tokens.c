#include "agent/text/tokens.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static void reserve(struct tokens *tokens, size_t more)
{
    if (tokens->capacity - tokens->count >= more)
        return;
    size_t room = tokens->capacity ? tokens->capacity : 256;
    while (room - tokens->count < more)
        room *= 2;
    tokens->ids = xrealloc(tokens->ids, room * sizeof *tokens->ids);
    tokens->capacity = room;
}

void tokens_add(struct tokens *tokens, int32_t id)
{
    reserve(tokens, 1);
    tokens->ids[tokens->count++] = id;
}

void tokens_add_many(struct tokens *tokens, const int32_t *ids, size_t count)
{
    if (count == 0)
        return;
    reserve(tokens, count);
    memcpy(tokens->ids + tokens->count, ids, count * sizeof *ids);
    tokens->count += count;
}

void tokens_clear(struct tokens *tokens)
{
    tokens->count = 0;
}

void tokens_free(struct tokens *tokens)
{
    if (!tokens)
        return;
    free(tokens->ids);
    *tokens = (struct tokens){0};
}
