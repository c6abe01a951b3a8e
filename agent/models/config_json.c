#include "agent/models/config_json.h"

#include "agent/models/config_json_parts.h"

#include <jansson.h>
#include <string.h>

/* ---- which model ---- */

static const struct type {
    const char *name;       /* model_type */
    const char *classes[3]; /* what `architectures` may say; the first is what is built */
    enum architecture_kind kind;
    const char *family; /* of Llama */
    enum bert_head head;
} types[] = {
    /* clang-format off */
    {"llama", {"LlamaForCausalLM", "LlamaModel"}, ARCHITECTURE_LLAMA, "Llama", 0},
    {"mistral", {"MistralForCausalLM", "MistralModel"}, ARCHITECTURE_LLAMA, "Mistral", 0},
    {"gpt2", {"GPT2LMHeadModel", "GPT2Model"}, ARCHITECTURE_GPT2, NULL, 0},
    {"t5", {"T5ForConditionalGeneration", "T5WithLMHeadModel"}, ARCHITECTURE_T5, NULL, 0},
    {"bert", {"BertForMaskedLM", "BertModel"}, ARCHITECTURE_BERT, NULL, BERT_MASKED_LM},
    {"bert", {"BertForPreTraining"}, ARCHITECTURE_BERT, NULL, BERT_PRETRAINING},
    {"bert", {"BertForSequenceClassification"}, ARCHITECTURE_BERT, NULL, BERT_CLASSIFICATION},
    /* clang-format on */
};

struct head {
    const char *model_type;
    const char **architectures;
    size_t architecture_count;
};

static const struct json_field head_fields[] = {
    JSON_TEXT("model_type", struct head, model_type),
    JSON_TEXTS("architectures", struct head, architectures, architecture_count),
    JSON_END,
};

static bool has_class(const struct type *type, const char *name)
{
    for (size_t i = 0; type->classes[i]; i++)
        if (strcmp(type->classes[i], name) == 0)
            return true;
    return false;
}

/* The first row that has the model type and the class, as far as they are given. */
static const struct type *match_type(const char *model_type, const char *class_name)
{
    for (size_t i = 0; (model_type || class_name) && i < array_length(types); i++)
        if ((!model_type || strcmp(types[i].name, model_type) == 0) &&
            (!class_name || has_class(&types[i], class_name)))
            return &types[i];
    return NULL;
}

/* What works of a model type, for messages: "BertForMaskedLM, BertForPreTraining". */
static const char *list_classes(struct arena *arena, const char *model_type)
{
    const char *list = NULL;
    for (size_t i = 0; i < array_length(types); i++)
        if (strcmp(types[i].name, model_type) == 0)
            list = list ? arena_printf(arena, "%s, %s", list, types[i].classes[0])
                        : types[i].classes[0];
    return list;
}

static const struct type *find_type(struct json_reader *reader, const json_t *root)
{
    struct head head = {0};
    struct lines *notes = take(reader->notes);
    json_read(reader, root, head_fields, &head);
    reader->notes = notes;
    const char *class_name = head.architecture_count ? head.architectures[0] : NULL;
    const struct type *type = match_type(head.model_type, class_name);
    if (type)
        return type;
    if (match_type(head.model_type, NULL))
        json_problem(reader, "architectures: unsupported architecture \"%.60s\"; of %s works: %s",
                     class_name, head.model_type, list_classes(reader->arena, head.model_type));
    else
        json_problem(
            reader,
            "model_type: unsupported model \"%.40s\": llama, mistral, gpt2, t5 and bert work",
            head.model_type ? head.model_type
            : class_name    ? class_name
                            : "");
    return NULL;
}

static const struct json_field *fields_of(enum architecture_kind kind)
{
    static const struct json_field *const tables[] = {
        [ARCHITECTURE_LLAMA] = config_json_llama,
        [ARCHITECTURE_GPT2] = config_json_gpt2,
        [ARCHITECTURE_T5] = config_json_t5,
        [ARCHITECTURE_BERT] = config_json_bert,
    };
    return tables[kind];
}

/* ---- reading ---- */

/* What no single field can tell. */
static void check_rope(struct json_reader *reader, const struct rope *rope)
{
    if (rope->type != ROPE_LLAMA3)
        return;
    if (rope->original_max_positions < 1)
        json_problem(reader, "rope_scaling.original_max_position_embeddings: missing; rope type "
                             "llama3 needs it");
    if (!(rope->low_freq_factor > 0))
        json_problem(reader, "rope_scaling.low_freq_factor: missing; rope type llama3 needs it");
    else if (!(rope->high_freq_factor > rope->low_freq_factor))
        json_problem(reader,
                     "rope_scaling: high_freq_factor %g must be above low_freq_factor %g for rope "
                     "type llama3",
                     rope->high_freq_factor, rope->low_freq_factor);
}

static int fail(const char *path, const struct lines *problems, struct error *err)
{
    return error_set(err, ERR_CONFIG, "%s: %s", path, lines_join(problems));
}

int config_json_read(struct arena *arena, const char *path, const char *text, size_t bytes,
                     struct architecture *ret_architecture, struct lines *notes, struct error *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return error_set(err, ERR_CONFIG, "%s: line %d: %s", path, where.line, where.text);
    struct lines problems;
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems, .notes = notes};
    const struct type *type = json_is_object_here(&reader, root) ? find_type(&reader, root) : NULL;
    struct architecture architecture = {0};
    if (type) {
        architecture = architecture_default(type->kind);
        if (type->family)
            architecture.llama.family = type->family;
        architecture.bert.head = type->head;
        json_read(&reader, root, fields_of(type->kind), &architecture);
        check_rope(&reader, &architecture.llama.rope);
        if (architecture.llama.sliding_window)
            json_note(&reader,
                      "sliding_window %lld: nothing is masked by it, longer sequences are "
                      "refused",
                      (long long)architecture.llama.sliding_window);
    }
    json_decref(root);
    if (problems.count > 0)
        return fail(path, &problems, err);
    if (architecture_check(&architecture, err) < 0)
        return error_wrap(err, "%s", path);
    *ret_architecture = architecture;
    return 0;
}
