#include "agent/dataset/token_position.h"

#include "base/mem.h"

#include <assert.h>
#include <jansson.h>

static const struct field {
    const char *name;
    size_t offset;
} fields[] = {
    {"epoch", offsetof(struct token_position, epoch)},
    {"sample", offsetof(struct token_position, sample)},
    {"block", offsetof(struct token_position, block)},
    {"file", offsetof(struct token_position, file)},
    {"offset", offsetof(struct token_position, offset)},
    {"line", offsetof(struct token_position, line)},
    {"row", offsetof(struct token_position, row)},
    {"document", offsetof(struct token_position, document)},
    {"token", offsetof(struct token_position, token)},
    {"documents", offsetof(struct token_position, documents)},
    {"tokens", offsetof(struct token_position, tokens)},
    {"bad_lines", offsetof(struct token_position, bad_lines)},
    {"lines", offsetof(struct token_position, lines)},
};
#define FINGERPRINT "fingerprint" /* all 64 bits of it, as a signed number */

static int64_t *field_of(struct token_position *position, const struct field *f)
{
    return (int64_t *)((char *)position + f->offset);
}

char *token_position_print(const struct token_position *position)
{
    struct token_position copy = *position;
    json_t *root = json_object();
    for (size_t i = 0; i < array_length(fields); i++)
        json_object_set_new(root, fields[i].name, json_integer(*field_of(&copy, &fields[i])));
    json_object_set_new(root, FINGERPRINT, json_integer((json_int_t)position->fingerprint));
    char *text = json_dumps(root, JSON_COMPACT);
    assert(text && json_object_size(root) == array_length(fields) + 1);
    json_decref(root);
    return text;
}

static const char *decode(const json_t *root, struct token_position *position)
{
    for (size_t i = 0; i < array_length(fields); i++) {
        const json_t *value = json_object_get(root, fields[i].name);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return fields[i].name;
        *field_of(position, &fields[i]) = json_integer_value(value);
    }
    const json_t *fingerprint = json_object_get(root, FINGERPRINT);
    position->fingerprint = (uint64_t)json_integer_value(fingerprint);
    return json_is_integer(fingerprint) ? NULL : FINGERPRINT;
}

int token_position_parse(const char *name, const char *text, size_t bytes,
                         struct token_position *ret_position, struct error *err)
{
    json_error_t json_error;
    json_t *root = bytes <= TOKEN_POSITION_MAX_BYTES
                       ? json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &json_error)
                       : NULL;
    if (!root)
        return error_set(err, ERR_INPUT, "%s: the position in the data is no JSON text", name);
    struct token_position position;
    const char *wrong = decode(root, &position);
    json_decref(root);
    if (wrong)
        return error_set(err, ERR_INPUT,
                         "%s: the position in the data has no number >= 0 as its %s", name, wrong);
    *ret_position = position;
    return 0;
}
