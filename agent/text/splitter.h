/* Cuts a normalized text into the words that the model then spells, as the pre-tokenizers of a
 * tokenizer.json say. Knows no vocabulary. */
#ifndef SHOAL_AGENT_TEXT_SPLITTER_H
#define SHOAL_AGENT_TEXT_SPLITTER_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct pattern;
struct pattern_workspace;
struct spec_component;

enum { SPLITTER_MAX_STEPS = 8 };

/* What becomes of the matches of a pattern and of what lies between them. */
enum splitter_behavior {
    SPLITTER_ISOLATED, /* each is a word */
    SPLITTER_REMOVED,  /* matches are dropped */
    SPLITTER_MERGED_WITH_PREVIOUS,
    SPLITTER_MERGED_WITH_NEXT,
    SPLITTER_CONTIGUOUS, /* matches side by side are one word */
};

/* First the text is rewritten, then cut. */
struct splitter_step {
    const char *space;       /* each " " becomes this; NULL: stays */
    const char *prefix;      /* put before a text that does not begin with it; NULL: none */
    bool prefix_first_only;  /* only before what the whole text begins with */
    struct pattern *pattern; /* NULL: no cut */
    enum splitter_behavior behavior;
    bool invert; /* what does not match counts as a match */
};

/* All zero: the text is one word. */
struct splitter {
    struct splitter_step steps[SPLITTER_MAX_STEPS];
    int count;
    bool byte_level; /* words are spelled in the byte alphabet: the model's affair */
};

/* What one thread needs. */
struct splitter_workspace {
    struct pattern_workspace *pattern;        /* not owned */
    struct str rewritten[SPLITTER_MAX_STEPS]; /* of each step */
};

/* Builds from a component that may be absent; `component` must outlive it. ERR_UNSUPPORTED and
 * ERR_INPUT name the component. splitter_close after failure too. */
int splitter_open(const struct spec_component *component, struct splitter *splitter,
                  struct error *err);
void splitter_close(struct splitter *splitter);

void splitter_workspace_init(struct splitter_workspace *work, struct pattern_workspace *pattern,
                             size_t cap);
void splitter_workspace_free(struct splitter_workspace *work);

/* Gets the words in order; what it is given is valid until it returns. Nonzero stops. */
typedef int (*splitter_take)(void *ctx, const char *word, size_t bytes, struct error *err);

/* Cuts a well-formed text. first: it is the beginning of the input. Returns 0, or -1 with ERR_LIMIT
 * or what `take` said. Many threads may run it, each with its own work. */
int splitter_run(const struct splitter *splitter, struct splitter_workspace *work, const char *text,
                 size_t bytes, bool first, splitter_take take, void *ctx, struct error *err);
#endif
