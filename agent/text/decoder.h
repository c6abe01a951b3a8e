/* Puts the pieces of tokens together to a text again, as the decoder of a tokenizer.json says. */
#ifndef SHOAL_AGENT_TEXT_DECODER_H
#define SHOAL_AGENT_TEXT_DECODER_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct pattern;
struct pattern_workspace;
struct spec_component;

enum { DECODER_MAX_STEPS = 16, DECODER_MAX_BYTES = 1 << 30 /* of all pieces, at each step */ };

enum decoder_kind {
    DECODER_BYTE_LEVEL,    /* characters of the byte alphabet become bytes */
    DECODER_BYTE_FALLBACK, /* pieces <0xNN> become bytes */
    DECODER_REPLACE,       /* each match by `content` */
    DECODER_METASPACE,     /* `content` becomes a space, in the first piece nothing */
    DECODER_STRIP,         /* `content` at the ends goes */
    DECODER_FUSE,          /* all pieces become one */
    DECODER_WORDPIECE,     /* a space before all but the first and those that begin with `content`,
                              which goes */
};

struct decoder_step {
    enum decoder_kind kind;
    const char *content; /* not owned */
    struct pattern *pattern;
    bool keep_first;     /* METASPACE: the first piece is like the others */
    bool cleanup;        /* WORDPIECE: no space before punctuation and what "'" cuts off */
    int64_t start, stop; /* STRIP: at most so many */
};

struct decoder {
    struct decoder_step steps[DECODER_MAX_STEPS];
    int count;
    bool absent; /* pieces are joined with spaces */
};

/* Builds from a component that may be absent; `component` must outlive it. ERR_UNSUPPORTED and
 * ERR_INPUT name the component. decoder_close after failure too. */
int decoder_open(const struct spec_component *component, struct decoder *decoder,
                 struct error *err);
void decoder_close(struct decoder *decoder);

struct decoder_piece {
    const char *text;
    size_t bytes;
};

/* Adds the text of the pieces to `out`. Bytes of a character that is not whole stay as they are.
 * ERR_LIMIT if it does not fit. */
int decoder_run(const struct decoder *decoder, struct pattern_workspace *work,
                const struct decoder_piece *pieces, size_t count, struct str *out,
                struct error *err);
#endif
