/* The files beside a tokenizer that name its special tokens: added_tokens.json,
 * special_tokens_map.json and tokenizer_config.json of a Hugging Face directory. Each may be
 * missing. */
#ifndef SHOAL_AGENT_TEXT_TOKENIZER_CONFIG_H
#define SHOAL_AGENT_TEXT_TOKENIZER_CONFIG_H

#include "agent/text/spec.h"

struct tokenizer_config {
    const char *bos, *eos, *pad, *unk, *mask, *cls, *sep; /* texts; NULL: not said */
    const char *tokenizer_class;                          /* of transformers; NULL: not said */
    struct spec_option add_bos_token, add_eos_token, add_prefix_space;
    struct spec_option do_lower_case, tokenize_chinese_chars, strip_accents; /* BERT's */
    struct {
        bool set;
        int64_t value;
    } extra_ids;              /* T5's sentinels */
    struct spec_added *added; /* each with an id */
    size_t added_count;
};

/* Reads what is in the directory; the last of the three has the last word. Memory from `arena`.
 * ERR_INPUT names file and field. */
int tokenizer_config_read(struct arena *arena, const char *directory,
                          struct tokenizer_config *ret_config, struct error *err);
#endif
