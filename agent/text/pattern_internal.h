/* Private to pattern_rewrite.c and pattern_escape.c: an expression while it is rewritten. */
#ifndef SHOAL_AGENT_TEXT_PATTERN_INTERNAL_H
#define SHOAL_AGENT_TEXT_PATTERN_INTERNAL_H

#include "agent/text/pattern_rewrite.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a quantifier may stand behind. */
enum item { ITEM_NONE, ITEM_PLAIN, ITEM_QUANTIFIED };

struct group {
    size_t begin;  /* in `out`, of the group itself */
    int closings;  /* parentheses that were opened within it for flags */
    bool caseless; /* before it */
};

struct rewriting {
    const char *expression, *at;
    struct str *out;
    struct error *err;
    struct group groups[PATTERN_MAX_GROUPS];
    int depth;
    bool caseless;
    enum item item;    /* the last one */
    bool once;         /* its quantifier is {1} */
    size_t item_begin; /* in `out` */
    char last;         /* a letter that is the last item, if it is one: for the flag i */
};

/* ERR_UNSUPPORTED: names what is at r->at, of so many bytes, and its place. */
int pattern_refuse(const struct rewriting *r, size_t bytes, const char *why);
/* What is added next to `out` is an item that a quantifier may follow. */
void pattern_begin_item(struct rewriting *r);

/* What is at r->at, of one kind each: rewritten, r->at behind it. */
int pattern_rewrite_character(struct rewriting *r);
int pattern_rewrite_escape(struct rewriting *r);
int pattern_rewrite_class(struct rewriting *r); /* [...] */
#endif
