/* Finds added tokens in a text: whole texts that are one id each, looked for before anything else
 * is done. At each place the longest one counts. */
#ifndef SHOAL_AGENT_TEXT_ADDED_H
#define SHOAL_AGENT_TEXT_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

struct added_token {
    const char *text; /* what is looked for; not owned */
    size_t bytes;     /* >= 1 */
    int32_t id;
    bool single_word;    /* only if no word character is beside it */
    bool lstrip, rstrip; /* takes the white space on that side along */
};

struct added {
    struct added_token *tokens; /* [count], ordered by text */
    size_t count;
    uint32_t first[257]; /* tokens that begin with byte b are first[b] .. first[b + 1] - 1 */
};

/* Orders the tokens, which must stay; of those with the same text the first counts. */
void added_init(struct added *added, struct added_token *tokens, size_t count);

/* The longest token at the beginning of text[0..bytes), bytes >= 1, whatever is beside it; NULL:
 * none. */
const struct added_token *added_find(const struct added *added, const char *text, size_t bytes);

/* Goes through a well-formed text piece by piece. */
struct added_walk {
    const struct added *added;
    const char *text;
    size_t bytes;
    size_t done;  /* bytes handed out */
    size_t look;  /* where the next token is looked for */
    int32_t held; /* id of the token that comes after what was handed out last; -1: none */
    size_t held_end;
};

struct added_piece {
    size_t begin, end; /* of the text */
    int32_t id;        /* -1: no added token */
};

void added_walk_init(struct added_walk *walk, const struct added *added, const char *text,
                     size_t bytes);
bool added_walk_next(struct added_walk *walk, struct added_piece *ret_piece);
#endif
