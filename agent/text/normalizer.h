/* What is done to a text before it is split: Unicode normal forms, replacements, a prefix, what
 * BERT and SentencePiece do. Debian's utf8proc has the forms of Unicode 15, the tokenizers library
 * those of 12: the few characters that came between them may differ. */
#ifndef SHOAL_AGENT_TEXT_NORMALIZER_H
#define SHOAL_AGENT_TEXT_NORMALIZER_H

#include "agent/text/bert_normalizer.h"
#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>

struct precompiled;
struct pattern;
struct pattern_workspace;
struct spec_component;

enum { NORMALIZER_MAX_STEPS = 16 };

enum normalizer_kind {
    NORMALIZER_FORM,    /* a Unicode normal form */
    NORMALIZER_PREPEND, /* `content` before a text that is not empty */
    NORMALIZER_REPLACE, /* each match of `pattern` by `content` */
    NORMALIZER_STRIP,   /* white space at the ends goes */
    NORMALIZER_BERT,
    NORMALIZER_PRECOMPILED,
};

struct normalizer_step {
    enum normalizer_kind kind;
    int form;            /* of utf8proc: its options */
    const char *content; /* not owned */
    struct pattern *pattern;
    bool left, right; /* STRIP */
    struct bert_normalizer bert;
    struct precompiled *precompiled;
};

/* All zero: the text stays as it is. */
struct normalizer {
    struct normalizer_step steps[NORMALIZER_MAX_STEPS];
    int count;
};

/* Builds from a component that may be absent; `component` must outlive it. ERR_UNSUPPORTED and
 * ERR_INPUT name the component. normalizer_close after failure too. */
int normalizer_open(const struct spec_component *component, struct normalizer *normalizer,
                    struct error *err);
void normalizer_close(struct normalizer *normalizer);

/* Runs all steps on *text, which is well-formed. It stays where it is if nothing changes;
 * else it points into `one` or `two` afterwards. ERR_LIMIT if it outgrows their caps. Many threads
 * may run it, each with its own work and buffers. */
int normalizer_run(const struct normalizer *normalizer, struct pattern_workspace *work,
                   struct str *one, struct str *two, const char **text, size_t *bytes,
                   struct error *err);
#endif
