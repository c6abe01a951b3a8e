/* What tokenizer_config.json's tokenizer_class means for the files beside it.
 *
 * transformers 4's fast classes change a tokenizer.json in their __init__ by what
 * tokenizer_config.json says (add_prefix_space in PreTrainedTokenizerFast's). What is not said
 * there stays as tokenizer.json has it, but for BERT's classes, whose own defaults then hold.
 * transformers 5 passes over add_bos_token and add_eos_token beside a tokenizer.json: here they
 * count, as they were asked for. tests/data/tokenizers/classes has what transformers 4.57 makes of
 * each. */
#ifndef SHOAL_AGENT_TEXT_TOKENIZER_CLASS_H
#define SHOAL_AGENT_TEXT_TOKENIZER_CLASS_H

#include "agent/text/tokenizer_config.h"

/* The files that there are. */
enum tokenizer_kind {
    TOKENIZER_JSON,
    TOKENIZER_T5,            /* spiece.model */
    TOKENIZER_SENTENCEPIECE, /* tokenizer.model */
    TOKENIZER_GPT2,          /* vocab.json, merges.txt */
    TOKENIZER_BERT,          /* vocab.txt */
};

/* Whether the class, if one is named, makes the ids of such a file that are made here. */
bool tokenizer_class_reads(const struct tokenizer_config *config, enum tokenizer_kind kind);

/* do_lower_case, tokenize_chinese_chars and strip_accents in a BertNormalizer, by a class of
 * BERT's; add_prefix_space in a ByteLevel, by any. Either is changed only where it is the whole
 * normalizer or pre-tokenizer, not within a Sequence. */
void tokenizer_class_change_spec(const struct tokenizer_config *config, struct spec *spec);

/* Whether add_bos_token and add_eos_token take the place of the post-processor: with a class of
 * Llama's or its like, if one of the two is said. *ret_bos: add_bos_token where it is not said;
 * add_eos_token is false then. */
bool tokenizer_class_adds_bos_and_eos(const struct tokenizer_config *config, bool *ret_bos);
#endif
