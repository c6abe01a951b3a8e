#include "agent/text/tokenizer_class.h"

#include "base/mem.h"

#include <string.h>

/* Slow or fast: "BertTokenizer" and "BertTokenizerFast" are one. */
static bool is_class_of(const struct tokenizer_config *config, const char *const *families)
{
    static const char suffix[] = "Tokenizer";
    const char *name = config->tokenizer_class;
    for (; name && *families; families++) {
        size_t length = strlen(*families);
        if (strncmp(name, *families, length) == 0 &&
            strncmp(name + length, suffix, strlen(suffix)) == 0)
            return true;
    }
    return false;
}

static bool is_bert(const struct tokenizer_config *config)
{
    static const char *const families[] = {"Bert",   "DistilBert", "Electra",     "MobileBert",
                                           "Funnel", "MPNet",      "SqueezeBert", NULL};
    return is_class_of(config, families);
}

static bool is_of_type(const struct spec_component *component, const char *type)
{
    return component->type && strcmp(component->type, type) == 0;
}

static void change(struct spec_option option, bool *value)
{
    if (option.set)
        *value = option.value;
}

void tokenizer_class_change_spec(const struct tokenizer_config *config, struct spec *spec)
{
    if (is_bert(config) && is_of_type(&spec->normalizer, "BertNormalizer")) {
        change(config->do_lower_case, &spec->normalizer.lowercase);
        change(config->tokenize_chinese_chars, &spec->normalizer.handle_chinese_chars);
        if (config->strip_accents.set)
            spec->normalizer.strip_accents = config->strip_accents;
    }
    if (is_of_type(&spec->pre_tokenizer, "ByteLevel"))
        change(config->add_prefix_space, &spec->pre_tokenizer.add_prefix_space);
}

bool tokenizer_class_adds_bos_and_eos(const struct tokenizer_config *config)
{
    static const char *const families[] = {"Llama", "CodeLlama", "Gemma", "Cohere", NULL};
    return is_class_of(config, families) &&
           (config->add_bos_token.set || config->add_eos_token.set);
}
