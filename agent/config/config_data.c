/* The rules of the data's keys: what is wrong, and what the model that is named does not read. */
#include "agent/config/config_model.h"
#include "agent/config/config_parser.h"

#include "agent/text/utf8.h"
#include "base/mem.h"

#include <string.h>

int config_check_data(const struct agent_config *c, struct error *err)
{
    if (c->data.label_pad_token_id < 0 && c->data.label_pad_token_id != -100)
        return error_set(err, ERR_CONFIG,
                         "data.label_pad_token_id: %lld is neither -100 nor the number of a token",
                         (long long)c->data.label_pad_token_id);
    if (c->data.mlm_probability <= 0 || c->data.mlm_probability >= 1)
        return error_set(err, ERR_CONFIG, "data.mlm_probability must be above 0 and below 1");
    if (!c->data.text_column[0] || !c->data.target_column[0] || !c->data.label_column[0])
        return error_set(err, ERR_CONFIG, "data.%s is empty; name a field of the rows",
                         !c->data.text_column[0]     ? "text_column"
                         : !c->data.target_column[0] ? "target_column"
                                                     : "label_column");
    size_t bytes = strlen(c->data.label_names);
    if (utf8_well_formed(c->data.label_names, bytes) < bytes)
        return error_set(err, ERR_CONFIG, "data.label_names is not UTF-8, as config.json has it");
    return 0;
}

/* What a model may learn, as a set. */
enum {
    IMAGES = 1 << MODEL_IMAGES,
    NEXT_TOKEN = 1 << MODEL_NEXT_TOKEN,
    TRANSLATION = 1 << MODEL_TRANSLATION,
    MASKED = 1 << MODEL_MASKED,
    PRETRAINING = 1 << MODEL_PRETRAINING,
    CLASSES = 1 << MODEL_CLASSES,
    SEQUENCES = MASKED | PRETRAINING | CLASSES,
};

/* All that are possible before a config.json is read. */
static unsigned learns(const struct agent_config *c)
{
    const struct model_family *family = config_family(c);
    unsigned tasks = 0;
    if (family && c->model.head != HEAD_AUTO)
        return 1u << c->model.head;
    for (int h = 0; family && h < family->head_count; h++)
        tasks |= 1u << family->heads[h].task;
    return family ? tasks : ~0u;
}

void config_note_data(struct config_parser *p)
{
    static const struct {
        size_t field;
        int readers;
        const char *needs;
    } rows[] = {
        {KEY_AT(data.text_column), ~IMAGES, "a language model"},
        {KEY_AT(data.text_pair_column), CLASSES, "sequence classification"},
        {KEY_AT(data.label_column), CLASSES, "sequence classification"},
        {KEY_AT(data.label_names), CLASSES, "sequence classification"},
        {KEY_AT(data.target_column), TRANSLATION, "a sequence-to-sequence model"},
        {KEY_AT(data.source_prefix), TRANSLATION, "a sequence-to-sequence model"},
        {KEY_AT(data.max_source_length), TRANSLATION, "a sequence-to-sequence model"},
        {KEY_AT(data.max_target_length), TRANSLATION, "a sequence-to-sequence model"},
        {KEY_AT(data.label_pad_token_id), TRANSLATION, "a sequence-to-sequence model"},
        {KEY_AT(data.padding), TRANSLATION | SEQUENCES, "t5 or bert"},
        {KEY_AT(data.pad_to_multiple_of), TRANSLATION | SEQUENCES, "t5 or bert"},
        {KEY_AT(data.mlm_probability), MASKED | PRETRAINING, "masked words to be learned"},
        {KEY_AT(data.max_seq_length), NEXT_TOKEN | SEQUENCES,
         "another model (sequence to sequence: data.max_source_length and max_target_length)"},
        {KEY_AT(data.packing), NEXT_TOKEN | MASKED, "documents: causal or masked words"},
        {KEY_AT(data.add_bos), NEXT_TOKEN | TRANSLATION, "another model"},
        {KEY_AT(data.add_eos), NEXT_TOKEN | TRANSLATION, "another model"},
        {KEY_AT(data.shuffle_buffer), NEXT_TOKEN, "a stream of documents"},
        {KEY_AT(data.prefetch_factor), NEXT_TOKEN, "a stream of documents"},
        {KEY_AT(data.loader_timeout_s), NEXT_TOKEN, "a stream of documents"},
    };
    int learned = learns(&p->config->value);
    for (int i = 0; i < config_key_count(); i++)
        for (size_t k = 0; k < array_length(rows); k++)
            if (config_key(i)->offset == rows[k].field && !(rows[k].readers & learned) &&
                config_is_asked_for(p, i))
                config_note(p, "data.%s is ignored: it needs %s", config_key(i)->name,
                            rows[k].needs);
}
