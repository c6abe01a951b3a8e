/* A text as the pieces of a SentencePiece model spell it: replacements by the longest beginning
 * that has one, white space as U+2581, user-defined pieces as they are (normalizer.cc of
 * sentencepiece 0.2.3). */
#ifndef SHOAL_AGENT_TEXT_SPM_NORMALIZER_H
#define SHOAL_AGENT_TEXT_SPM_NORMALIZER_H

#include "agent/text/added.h"
#include "base/error.h"

struct precompiled;
struct spm_proto;
struct str;

struct spm_normalizer {
    const struct spm_proto *proto;   /* not owned */
    const struct added *user_pieces; /* not owned; its tokens are taken as they stand */
    struct precompiled *charsmap;    /* owned; NULL: none */
};

/* ERR_INPUT names the table of replacements. close after failure too. */
int spm_normalizer_open(const struct spm_proto *proto, const struct added *user_pieces,
                        struct spm_normalizer *normalizer, struct error *err);
void spm_normalizer_close(struct spm_normalizer *normalizer);

/* Adds the text, well-formed as the one that it gets. */
void spm_normalize(const struct spm_normalizer *normalizer, const char *text, size_t bytes,
                   struct str *out);
#endif
