/* Private to tokenizer.c, which runs a tokenizer, and to tokenizer_open.c and tokenizer_build.c,
 * which make it: what it is made of. */
#ifndef SHOAL_AGENT_TEXT_TOKENIZER_INTERNAL_H
#define SHOAL_AGENT_TEXT_TOKENIZER_INTERNAL_H

#include "agent/text/added.h"
#include "agent/text/bpe.h"
#include "agent/text/decoder.h"
#include "agent/text/normalizer.h"
#include "agent/text/pattern.h"
#include "agent/text/spec.h"
#include "agent/text/splitter.h"
#include "agent/text/spm.h"
#include "agent/text/tokenizer.h"
#include "agent/text/tokenizer_config.h"
#include "agent/text/unigram.h"
#include "agent/text/vocab.h"
#include "agent/text/wordpiece.h"

#include <pthread.h>

/* What one thread needs while it encodes or decodes. */
struct tokenizer_workspace {
    struct tokenizer_workspace *next; /* among the idle ones */
    struct pattern_workspace *pattern;
    struct splitter_workspace splitter;
    struct bpe_workspace *bpe;
    struct unigram_workspace *unigram;
    struct str repaired, one, two, word;
};

enum { TOKENIZER_MAX_IDLE = 64 }; /* works that are kept for the next thread */

struct tokenizer {
    struct arena *arena;
    char *name;         /* of the file, for errors */
    struct vocab vocab; /* added tokens too */
    bool *is_special;   /* [vocab.size] */
    struct tokenizer_special special;
    struct spec_template around;
    struct added added, added_normalized; /* looked for in the text, in the normalized text */
    struct normalizer normalizer;
    struct splitter splitter;
    struct decoder decoder;
    /* One of these: SentencePiece does all of it, the others spell the words that come out of the
     * parts above. */
    struct spm *spm;
    struct bpe *bpe;
    struct unigram *unigram;
    struct wordpiece *wordpiece;
    pthread_mutex_t mutex; /* of the idle works */
    struct tokenizer_workspace *idle;
    int idle_count;
};

/* What is there before the ids are known. */
struct tokenizer_sources {
    const struct spec *spec; /* NULL: a SentencePiece model */
    struct tokenizer_config config;
    const struct spec_added *added;
    size_t added_count;
};

/* Fill in all that comes from the sources; `spm` is open already. Errors name the field. */
int tokenizer_build_spec(struct tokenizer *tokenizer, const struct tokenizer_sources *sources,
                         struct error *err);
int tokenizer_build_spm(struct tokenizer *tokenizer, const struct tokenizer_sources *sources,
                        struct error *err);

/* A work for this thread, and back. */
struct tokenizer_workspace *tokenizer_acquire_workspace(const struct tokenizer *tokenizer);
void tokenizer_release_workspace(const struct tokenizer *tokenizer,
                                 struct tokenizer_workspace *work);
#endif
