/* Whether two config.json are of one model. */
#include "agent/models/config_json.h"

#include "base/mem.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Fields that do not decide what the weights mean. */
static bool may_change(const char *key)
{
    static const char *const keys[] = {
        "attention_dropout",
        "attention_probs_dropout_prob",
        "attn_pdrop",
        "bos_token_id",
        "classifier_dropout",
        "decoder_start_token_id",
        "dropout_rate",
        "embd_pdrop",
        "eos_token_id",
        "hidden_dropout_prob",
        "id2label",
        "initializer_factor",
        "initializer_range",
        "label2id",
        "n_ctx",
        "max_position_embeddings",
        "n_positions",
        "pad_token_id",
        "resid_pdrop",
        "torch_dtype",
    };
    for (size_t i = 0; i < array_length(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static char *print(const json_t *value)
{
    return json_dumps(value,
                      JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15));
}

void config_json_compare(const char *saved, const char *now, struct lines *differences)
{
    json_t *before = json_loads(saved, 0, NULL), *after = json_loads(now, 0, NULL);
    const char *key;
    json_t *value;
    json_object_foreach(after, key, value)
    {
        const json_t *other = json_object_get(before, key);
        if (!other || may_change(key) || json_equal(value, other))
            continue;
        auto_free char *a = print(value), *b = print(other);
        lines_add(differences, "%s %s (saved: %s)", key, a, b);
    }
    json_decref(before);
    json_decref(after);
}
