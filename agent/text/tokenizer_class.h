/* What transformers' tokenizer classes change of a tokenizer.json, where tokenizer_config.json says
 * so beside it: BertTokenizerFast, LlamaTokenizerFast and GPT2TokenizerFast of transformers, each
 * in its __init__. What is not said there stays as tokenizer.json has it: there transformers 4
 * takes the class's own default, and transformers 5 does not. */
#ifndef SHOAL_AGENT_TEXT_TOKENIZER_CLASS_H
#define SHOAL_AGENT_TEXT_TOKENIZER_CLASS_H

#include "agent/text/tokenizer_config.h"

/* do_lower_case, tokenize_chinese_chars and strip_accents in a BertNormalizer, by a class of
 * BERT's; add_prefix_space in a ByteLevel. Either is changed only where it is the whole normalizer
 * or pre-tokenizer, not within a Sequence. */
void tokenizer_class_change_spec(const struct tokenizer_config *config, struct spec *spec);

/* Whether add_bos_token and add_eos_token take the place of the post-processor: with a class of
 * Llama's, if one of the two is said. */
bool tokenizer_class_adds_bos_and_eos(const struct tokenizer_config *config);
#endif
