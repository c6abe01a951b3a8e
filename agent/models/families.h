/* What a family of models is: its names, its fields of config.json, its published sizes, its
 * forward pass. Adding one takes a file that defines family_NAME, its row in LANGUAGE_FAMILIES and
 * its config in struct architecture; the configuration, config.json and checkpoints ask the row. */
#ifndef SHOAL_AGENT_MODELS_FAMILIES_H
#define SHOAL_AGENT_MODELS_FAMILIES_H

#include "agent/models/architecture.h"
#include "agent/models/model.h"
#include "base/str.h"

#include <stddef.h>

struct json_field;
struct json_reader;
struct json;

/* X(NAME, SPELLINGS, BLOCK), with AND between two rows. SPELLINGS: what model.type may say, the
 * first of them NAME, which is config.json's model_type. BLOCK: the class of a block,
 * for wrapping. */
/* clang-format off */
#define LANGUAGE_FAMILIES(X, AND)                          \
    X(llama, "llama=llama_v2=llama_v3", "LlamaDecoderLayer") AND \
    X(mistral, "mistral", "MistralDecoderLayer") AND       \
    X(gpt2, "gpt2", "GPT2Block") AND                       \
    X(t5, "t5", "T5Block") AND                             \
    X(bert, "bert", "BertLayer")
/* clang-format on */

/* What one of its heads learns, and the classes that `architectures` may name for it; the first is
 * what is built. */
struct model_head {
    enum model_task task;
    const char *classes[3]; /* NULL behind the last */
};
enum { MODEL_MAX_HEADS = 4 };

/* Where a key of model.config_overrides, or "dropout", goes. */
struct model_override {
    const char *key;   /* "hidden_size"; NULL: behind the last */
    size_t field;      /* in struct architecture: an int64_t, a double or a bool, as the key's */
    size_t derived[2]; /* int64_t there that then follow from it: they become 0; 0: none */
};

struct model_family {
    const char *name;        /* "mistral" */
    const char *block_class; /* "MistralDecoderLayer"; NULL: it has no blocks */
    /* Whose layers and config in struct architecture it has: Mistral has Llama's; NULL: its own. */
    const struct model_family *layers_of;
    void (*adopt)(struct architecture *a); /* makes a config of layers_of its own */
    struct model_head heads[MODEL_MAX_HEADS];
    int head_count;

    /* Sets the config of struct architecture, which is all 0, to transformers' defaults. */
    void (*set_defaults)(struct architecture *a);
    /* Which of `heads`; NULL: there is but one. */
    void (*set_head)(struct architecture *a, int head);
    int (*get_head)(const struct architecture *a);
    /* The names of classes, separated by commas; NULL: it has none. */
    void (*set_labels)(struct architecture *a, const char *names);
    /* Name i = 0, 1, .. of its published models, whose sizes go to *a unless that is NULL; NULL
     * behind the last. */
    const char *(*published)(int i, struct architecture *a);
    const struct model_override *overrides;
    /* Its rotary positions; NULL: it has none. */
    struct rope *(*rope)(struct architecture *a);
    /* Whether a token's logits depend on how long its sequence is, T tokens; NULL: never. */
    bool (*depends_on_length)(const struct architecture *a, int64_t T);
    /* Whether config.json leaves open if the head is the embedding: then the weights decide. NULL:
     * never. */
    bool *(*undetermined_tie)(struct architecture *a);
    const char *embedding,
        *head; /* of undetermined_tie: the two tensors, which differ if it is not */

    const struct json_field *fields; /* of config.json, into struct architecture */
    /* What no single field can show; NULL: nothing. */
    void (*check_fields)(struct json_reader *reader, const struct architecture *a);
    void (*write)(struct json *object, const struct architecture *a); /* the same fields */
    /* Fields of generation_config.json beside the special tokens; NULL: none. */
    void (*write_generation)(struct json *object, const struct architecture *a);

    /* Whether the sizes make a model. Errors: ERR_CONFIG naming the field and its value. */
    int (*check)(const struct architecture *a, struct error *err);
    struct model *(*build)(struct arena *arena, const struct architecture *a);
};

extern const struct model_family family_mnist_cnn; /* images: no config.json */
#define FAMILY_EXTERN(name, spellings, block) extern const struct model_family family_##name
LANGUAGE_FAMILIES(FAMILY_EXTERN, ;);
#undef FAMILY_EXTERN

/* The row: mnist_cnn, then those of LANGUAGE_FAMILIES; NULL: there are no more. */
const struct model_family *model_family(int64_t index);
int64_t model_family_index(const struct model_family *family);

/* The first family of that model_type (NULL: of any) with a head of that class (NULL: its first),
 * which goes to *ret_head. NULL: there is none. */
const struct model_family *model_family_find(const char *model_type, const char *class_name,
                                             int *ret_head);

/* Whether one of its heads learns it; which one goes to *ret_head. */
bool model_family_learns(const struct model_family *family, enum model_task task, int *ret_head);

/* Adds the names of those that learn one of the tasks (a bit each, 1 << task) to `out`: "llama,
 * gpt2 or t5"; last: what comes before the last, " or ". */
void model_family_names(unsigned tasks, const char *last, struct str *out);
#endif
