#include "agent/text/tokenizer_class.h"

#include "base/mem.h"

#include <string.h>

enum {
    ANY =
        1 << TOKENIZER_T5 | 1 << TOKENIZER_SENTENCEPIECE | 1 << TOKENIZER_GPT2 | 1 << TOKENIZER_BERT
};

/* By the name in front of "Tokenizer" or "TokenizerFast". */
static const struct family {
    const char *name;
    unsigned kinds;              /* beside tokenizer.json: bits of enum tokenizer_kind */
    bool is_bert, heeds_chinese; /* do_lower_case, strip_accents; tokenize_chinese_chars, too */
    bool adds_around, adds_bos;  /* add_bos_token and add_eos_token; the former if not said */
} families[] = {
#define BERT(name, chinese)                                                                        \
    {                                                                                              \
        name, 1 << TOKENIZER_BERT, true, chinese, false, false                                     \
    }
#define AROUND(name, bos)                                                                          \
    {                                                                                              \
        name, 1 << TOKENIZER_SENTENCEPIECE, false, false, true, bos                                \
    }
#define OTHER(name, kinds)                                                                         \
    {                                                                                              \
        name, kinds, false, false, false, false                                                    \
    }
    BERT("Bert", true),
    BERT("DistilBert", true),
    BERT("Electra", true),
    BERT("MobileBert", true),
    BERT("Funnel", true),
    BERT("MPNet", false),
    BERT("SqueezeBert", true),
    BERT("ConvBert", true),
    BERT("LayoutLM", true),
    BERT("Lxmert", true),
    BERT("Splinter", false),
    BERT("RetriBert", true),
    AROUND("Llama", true),
    AROUND("CodeLlama", true),
    AROUND("Gemma", true),
    AROUND("Cohere", true),
    AROUND("GPTNeoX", false),
    OTHER("GPT2", 1 << TOKENIZER_GPT2),
    OTHER("T5", 1 << TOKENIZER_T5),
    OTHER("MT5", 1 << TOKENIZER_T5),
    OTHER("PreTrained", ANY),
#undef BERT
#undef AROUND
#undef OTHER
};

/* All false: of no class that changes anything by these. */
static struct family family_of(const struct tokenizer_config *config)
{
    static const char suffix[] = "Tokenizer";
    const char *name = config->tokenizer_class;
    for (size_t i = 0; name && i < array_length(families); i++) {
        size_t length = strlen(families[i].name);
        if (strncmp(name, families[i].name, length) == 0 &&
            strncmp(name + length, suffix, strlen(suffix)) == 0)
            return families[i];
    }
    return (struct family){0};
}

static bool is_of_type(const struct spec_component *component, const char *type)
{
    return component->type && strcmp(component->type, type) == 0;
}

bool tokenizer_class_reads(const struct tokenizer_config *config, enum tokenizer_kind kind)
{
    const char *name = config->tokenizer_class;
    return !name || kind == TOKENIZER_JSON || strcmp(name, "TokenizersBackend") == 0 ||
           family_of(config).kinds >> kind & 1;
}

void tokenizer_class_change_spec(const struct tokenizer_config *config, struct spec *spec)
{
    const struct family family = family_of(config);
    if (family.is_bert && is_of_type(&spec->normalizer, "BertNormalizer")) {
        spec->normalizer.lowercase = spec_option_or(config->do_lower_case, true);
        spec->normalizer.strip_accents = config->strip_accents;
        if (family.heeds_chinese)
            spec->normalizer.handle_chinese_chars =
                spec_option_or(config->tokenize_chinese_chars, true);
    }
    if (is_of_type(&spec->pre_tokenizer, "ByteLevel"))
        spec->pre_tokenizer.add_prefix_space =
            spec_option_or(config->add_prefix_space, spec->pre_tokenizer.add_prefix_space);
}

bool tokenizer_class_adds_bos_and_eos(const struct tokenizer_config *config, bool *ret_bos)
{
    const struct family family = family_of(config);
    *ret_bos = family.adds_bos;
    return family.adds_around && (config->add_bos_token.set || config->add_eos_token.set);
}
