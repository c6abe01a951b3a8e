#include "agent/dataset/token_position.h"

#include "base/json.h"
#include "base/mem.h"

#include <assert.h>

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
    struct json *root = json_new_object();
    for (size_t i = 0; i < array_length(fields); i++)
        json_set(root, fields[i].name, json_new_integer(*field_of(&copy, &fields[i])));
    json_set(root, FINGERPRINT, json_new_integer((int64_t)position->fingerprint));
    char *text = json_print(root, JSON_COMPACT);
    assert(text && json_object_count(root) == array_length(fields) + 1);
    json_free(root);
    return text;
}

static const char *decode(const struct json *root, struct token_position *position)
{
    for (size_t i = 0; i < array_length(fields); i++) {
        const struct json *value = json_get(root, fields[i].name);
        if (!json_is_integer(value) || json_as_integer(value) < 0)
            return fields[i].name;
        *field_of(position, &fields[i]) = json_as_integer(value);
    }
    const struct json *fingerprint = json_get(root, FINGERPRINT);
    position->fingerprint = (uint64_t)json_as_integer(fingerprint);
    return json_is_integer(fingerprint) ? NULL : FINGERPRINT;
}

int token_position_parse(const char *name, const char *text, size_t bytes,
                         struct token_position *ret_position, struct error *err)
{
    struct json *root =
        bytes <= TOKEN_POSITION_MAX_BYTES ? json_parse(text, bytes, JSON_STRICT, NULL) : NULL;
    if (!root)
        return error_set(err, ERR_INPUT, "%s: the position in the data is no JSON text", name);
    struct token_position position;
    const char *wrong = decode(root, &position);
    json_free(root);
    if (wrong)
        return error_set(err, ERR_INPUT,
                         "%s: the position in the data has no number >= 0 as its %s", name, wrong);
    *ret_position = position;
    return 0;
}
