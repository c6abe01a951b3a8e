/* What BERT does to a text before it is split: four rules over its characters. The tokenizers
 * library knows the characters' classes of Unicode 8, utf8proc those of 15: younger marks and
 * format characters may differ. */
#ifndef SHOAL_AGENT_TEXT_BERT_NORMALIZER_H
#define SHOAL_AGENT_TEXT_BERT_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>

struct str;

struct bert_normalizer {
    bool clean_text;           /* drops control, format and private characters and U+FFFD; white
                                  space becomes " " */
    bool handle_chinese_chars; /* a space on both sides of each CJK ideograph */
    bool strip_accents;        /* decomposed (NFD), without non-spacing marks */
    bool lowercase;
};

/* Adds the normalized form of a well-formed text. */
void bert_normalize(const struct bert_normalizer *normalizer, const char *text, size_t bytes,
                    struct str *out);
#endif
