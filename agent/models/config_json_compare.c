/* Whether two config.json are of one model. */
#include "agent/models/config_json.h"

#include "base/json.h"
#include "base/mem.h"

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

static char *print(const struct json *value)
{
    return json_print(value, JSON_SORTED);
}

void config_json_compare(const char *saved, const char *now, struct lines *differences)
{
    struct json *before = json_parse_text(saved, JSON_STRICT, NULL),
                *after = json_parse_text(now, JSON_STRICT, NULL);
    struct json *value;
    json_each_member(value, after) {
        const char *key = json_key(value);
        const struct json *other = json_get(before, key);
        if (!other || may_change(key) || json_is_equal(value, other))
            continue;
        auto_free char *a = print(value), *b = print(other);
        lines_add(differences, "%s %s (saved: %s)", key, a, b);
    }
    json_free(before);
    json_free(after);
}
