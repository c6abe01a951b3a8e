#include "agent/config/config_model.h"

#include "agent/config/config_keys.h"

#include <assert.h>
#include <string.h>

/* A key of model.config_overrides, or model.dropout: families name it without its group. */
static const char *override_name(const struct config_key *key)
{
    bool overrides = strcmp(key->group, "model.config_overrides") == 0;
    return overrides || key->offset == KEY_AT(model.dropout) ? key->name : NULL;
}

/* The family's next row for that key behind `after` (NULL: its first); NULL: there are no more. */
static const struct model_override *next_override(const struct model_family *family,
                                                  const char *name,
                                                  const struct model_override *after)
{
    const struct model_override *row = after ? after + 1 : family->overrides;
    for (; row && row->key; row++)
        if (strcmp(row->key, name) == 0)
            return row;
    return NULL;
}

/* Whether some family has the key: special tokens are of none, and of all. */
static bool is_listed(const char *name)
{
    for (int64_t i = 0; model_family(i); i++)
        if (next_override(model_family(i), name, NULL))
            return true;
    return false;
}

bool config_model_has(const struct model_family *family, int index)
{
    const char *name = override_name(config_key(index));
    return !name || !is_listed(name) || next_override(family, name, NULL);
}

static bool is_given(const struct agent_config *c, const struct config_key *key)
{
    const void *at = (const char *)c + key->offset;
    switch (key->type) {
    case TYPE_INT:
        return *(const int64_t *)at > 0;
    case TYPE_FLOAT:
        return *(const double *)at >= 0;
    case TYPE_CHOICE:
        return *(const int64_t *)at != CHOOSE_AUTO;
    default:
        return false;
    }
}

static void take_one(const struct agent_config *c, const struct config_key *key,
                     struct architecture *a, size_t field)
{
    const void *from = (const char *)c + key->offset;
    void *to = (char *)a + field;
    if (key->type == TYPE_CHOICE)
        *(bool *)to = *(const int64_t *)from == CHOOSE_YES;
    else
        memcpy(to, from, sizeof(int64_t)); /* a double, or an int64_t */
}

/* What follows from another number follows the new one. */
static void forget_derived(struct architecture *a, const struct model_override *row)
{
    for (size_t d = 0; d < array_length(row->derived) && row->derived[d]; d++)
        *(int64_t *)((char *)a + row->derived[d]) = 0;
}

/* derived: forgets what follows from what is given; else takes what is given. */
static int take_all(const struct agent_config *c, struct architecture *a, bool derived,
                    struct error *err)
{
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        const char *name = override_name(key);
        if (!name || !is_listed(name) || !is_given(c, key))
            continue;
        /* a dropout that is without effect is a warning (config_unused.c) */
        if (!config_model_has(a->family, i) && !strstr(name, "drop"))
            return error_set(err, ERR_CONFIG, "%s.%s: a %s has none", key->group, name,
                             a->family->name);
        const struct model_override *row = NULL;
        while ((row = next_override(a->family, name, row)))
            if (derived)
                forget_derived(a, row);
            else
                take_one(c, key, a, row->field);
    }
    return 0;
}

static int override_rope(const struct agent_config *c, struct architecture *a, struct error *err)
{
    enum rope_type type = (enum rope_type)c->rope.type;
    bool has_factors = c->rope.factor > 0 || c->rope.low_freq_factor > 0 ||
                       c->rope.high_freq_factor > 0 || c->rope.original_max_position_embeddings > 0;
    if (c->rope.type == ROPE_OF_CONFIG && !has_factors)
        return 0;
    struct rope *rope = a->family->rope ? a->family->rope(a) : NULL;
    if (!rope)
        return error_set(err, ERR_CONFIG, "model.rope_scaling: a %s has no rotary positions",
                         a->family->name);
    if (c->rope.type == ROPE_OF_CONFIG)
        return error_set(err, ERR_CONFIG,
                         "model.rope_scaling: numbers without model.rope_scaling.rope_type");
    *rope = (struct rope){
        .type = type,
        .theta = rope->theta,
        .factor = type == ROPE_DEFAULT ? 1 : c->rope.factor,
        .low_freq_factor = c->rope.low_freq_factor,
        .high_freq_factor = c->rope.high_freq_factor,
        .original_max_positions = c->rope.original_max_position_embeddings,
    };
    return 0;
}

static void override_tokens(const struct agent_config *c, struct architecture *a)
{
    if (c->overrides.bos_token_id >= 0)
        a->bos_token_id = c->overrides.bos_token_id;
    if (c->overrides.pad_token_id >= 0)
        a->pad_token_id = c->overrides.pad_token_id;
    if (c->overrides.eos_token_id >= 0) {
        a->eos_token_ids[0] = c->overrides.eos_token_id;
        a->eos_count = 1;
    }
}

static int unknown_name(const char *name, struct error *err)
{
    auto_str struct str names;
    str_init(&names, 512);
    for (int i = 0; architecture_name(i); i++)
        str_printf(&names, "%s%s", i ? " " : "", architecture_name(i));
    return error_set(err, ERR_CONFIG, "model.architecture: '%s' is not one of: %s", name,
                     str_text(&names));
}

const struct model_family *config_family(const struct agent_config *config)
{
    return config->model.type == MODEL_AUTO ? NULL : model_family(config->model.type);
}

void config_set_family(struct agent_config *config, const struct model_family *family)
{
    config->model.type = model_family_index(family);
}

bool config_is_language(const struct agent_config *config)
{
    return config_family(config) != &family_mnist_cnn;
}

/* What model.head asks for; it is not HEAD_AUTO. */
static enum model_task asked_task(const struct agent_config *c)
{
    return (enum model_task)c->model.head;
}

static int override(const struct agent_config *c, struct architecture *a, struct error *err)
{
    const struct model_family *asked = config_family(c);
    int head;
    if (asked && asked->layers_of && asked->layers_of == a->family) {
        a->family = asked;
        asked->adopt(a);
    }
    if (take_all(c, a, true, err) || take_all(c, a, false, err) || override_rope(c, a, err))
        return -1;
    if (c->model.head != HEAD_AUTO && a->family->set_head &&
        model_family_learns(a->family, asked_task(c), &head))
        a->family->set_head(a, head);
    override_tokens(c, a);
    return 0;
}

int config_check_head(const struct agent_config *config, const struct model_family *family,
                      struct error *err)
{
    int head;
    if (config->model.head == HEAD_AUTO || !family ||
        model_family_learns(family, asked_task(config), &head))
        return 0;
    auto_str struct str heads;
    str_init(&heads, 256);
    for (int h = 0; h < family->head_count; h++)
        str_printf(&heads, "%s%s",
                   h == 0                        ? ""
                   : h == family->head_count - 1 ? " or "
                                                 : ", ",
                   model_task_name(family->heads[h].task));
    return error_set(err, ERR_CONFIG, "model.head: %s is not for a %s model: it learns %s",
                     model_task_name(asked_task(config)), family->name, str_text(&heads));
}

static const struct model_family *layers_of(const struct model_family *family)
{
    return family->layers_of ? family->layers_of : family;
}

int config_architecture(const struct agent_config *config, const struct architecture *published,
                        struct architecture *ret_architecture, struct error *err)
{
    assert(config_is_language(config));
    const struct model_family *family = config_family(config);
    struct architecture a = architecture_default(family ? family : &family_llama);
    if (config->model.architecture[0]) {
        if (!architecture_find(config->model.architecture, &a))
            return unknown_name(config->model.architecture, err);
    } else if (published) {
        a = *published;
    }
    if (family && layers_of(a.family) != layers_of(family))
        return error_set(err, ERR_CONFIG, "model.type: the sizes given are a %s's", a.family->name);
    if (config->data.source.label_names[0] && a.family->set_labels)
        a.family->set_labels(&a, config->data.source.label_names);
    if (override(config, &a, err) || config_check_head(config, a.family, err) ||
        architecture_check(&a, err))
        return -1;
    *ret_architecture = a;
    return 0;
}
