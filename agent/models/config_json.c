#include "agent/models/config_json.h"

#include "agent/models/families.h"
#include "base/json.h"
#include "base/json_read.h"

#include <string.h>

/* ---- which model ---- */

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

/* What works of a model type, for messages: "BertForMaskedLM, BertForPreTraining". */
static const char *list_classes(struct arena *arena, const struct model_family *family)
{
    const char *list = family->heads[0].classes[0];
    for (int h = 1; h < family->head_count; h++)
        list = arena_printf(arena, "%s, %s", list, family->heads[h].classes[0]);
    return list;
}

static void refuse(struct json_reader *reader, const char *model_type, const char *class_name)
{
    int head;
    const struct model_family *family = model_family_find(model_type, NULL, &head);
    if (family) {
        json_problem(reader, "architectures: unsupported architecture \"%.60s\"; of %s works: %s",
                     class_name, model_type, list_classes(reader->arena, family));
        return;
    }
    auto_str struct str names;
    str_init(&names, 256);
    model_family_names(~0u & ~(1u << MODEL_IMAGES), " and ", &names);
    json_problem(reader, "model_type: unsupported model \"%.40s\": %s work",
                 model_type   ? model_type
                 : class_name ? class_name
                              : "",
                 str_text(&names));
}

static const struct model_family *find_family(struct json_reader *reader, const struct json *root,
                                              int *ret_head)
{
    struct head head = {0};
    struct lines *notes = take(reader->notes);
    json_read(reader, root, head_fields, &head);
    reader->notes = notes;
    const char *class_name = head.architecture_count ? head.architectures[0] : NULL;
    const struct model_family *family = model_family_find(head.model_type, class_name, ret_head);
    if (!family)
        refuse(reader, head.model_type, class_name);
    return family;
}

/* ---- reading ---- */

/* What transformers takes null for: no such field. Of all others it refuses null. */
static const char nullable[] =
    "bos_token_id eos_token_id pad_token_id decoder_start_token_id num_key_value_heads head_dim "
    "n_inner num_decoder_layers sliding_window classifier_dropout attention_dropout rope_scaling "
    "rope_parameters original_max_position_embeddings problem_type id2label";
static const char nullable_if_undetermined[] =
    "tie_word_embeddings"; /* of families with undetermined_tie */

static int fail(const char *path, const struct lines *problems, struct error *err)
{
    return error_set(err, ERR_CONFIG, "%s: %s", path, lines_join(problems));
}

int config_json_read(struct arena *arena, const char *path, const char *text, size_t bytes,
                     struct architecture *ret_architecture, struct lines *notes, struct error *err)
{
    struct json *root = json_parse(text, bytes, JSON_STRICT, err);
    if (!root) {
        err->code = ERR_CONFIG;
        return error_wrap(err, "%s", path);
    }
    struct lines problems;
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems, .notes = notes};
    int head = 0;
    const struct model_family *family =
        json_is_object_here(&reader, root) ? find_family(&reader, root, &head) : NULL;
    struct architecture architecture = {0};
    if (family) {
        architecture = architecture_default(family);
        if (family->set_head)
            family->set_head(&architecture, head);
        reader.nullable = family->undetermined_tie
                              ? arena_printf(arena, "%s %s", nullable, nullable_if_undetermined)
                              : nullable;
        json_read(&reader, root, family->fields, &architecture);
        if (family->check_fields)
            family->check_fields(&reader, &architecture);
    }
    json_free(root);
    if (problems.count > 0)
        return fail(path, &problems, err);
    if (architecture_check(&architecture, err) < 0)
        return error_wrap(err, "%s", path);
    *ret_architecture = architecture;
    return 0;
}
