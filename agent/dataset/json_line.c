#include "agent/dataset/json_line.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_MAX_BYTES = 200 };

/* The column is not there, or no text: then which there are does not help. */
static void set_missing(const struct json *root, const struct json_line_text *text,
                        struct error *err)
{
    static const char *const kinds[] = {"an object", "an array", "a text", "a whole number",
                                        "a number",  "true",     "false",  "null"};
    const char *wanted = text->may_be_number ? "text or whole number" : "text";
    const struct json *found = json_get(root, text->column);
    if (found) {
        error_set(err, ERR_INPUT, "\"%s\" is %s, no %s", text->column, kinds[json_type_of(found)],
                  wanted);
        return;
    }
    auto_str struct str names;
    str_init(&names, NAMES_MAX_BYTES);
    const struct json *value;
    json_each_member(value, root) {
        str_printf(&names, "%s%s", names.length ? ", " : "", json_key(value));
    }
    for (size_t i = 0; i < names.length; i++) /* it goes into messages */
        if ((unsigned char)names.text[i] < 0x20)
            names.text[i] = ' ';
    error_set(err, ERR_INPUT, "no %s \"%s\" in it; it has %s: set %s", wanted, text->column,
              names.length ? str_text(&names) : "nothing", text->key);
}

static bool take_text(struct json *value, struct json_line_text *text)
{
    if (json_is_string(value)) {
        text->bytes = json_restore_nul(value);
        text->text = json_as_text(value);
        return true;
    }
    if (!text->may_be_number || !(json_is_integer(value) || json_is_boolean(value)))
        return false;
    long long number = json_is_integer(value) ? json_as_integer(value) : json_is_true(value);
    text->bytes = (size_t)snprintf(text->digits, sizeof text->digits, "%lld", number);
    text->text = text->digits;
    return true;
}

/* The text of texts[at], or false. Two may be of one column, whose NULs are restored once only. */
static bool take_column(const struct json *root, struct json_line_text *texts, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (texts[i].text == texts[i].digits || strcmp(texts[i].column, texts[at].column) != 0)
            continue;
        texts[at].text = texts[i].text;
        texts[at].bytes = texts[i].bytes;
        return true;
    }
    return take_text(json_get(root, texts[at].column), &texts[at]);
}

struct json *json_line_texts(const char *line, size_t bytes, struct json_line_text *texts,
                             size_t count, struct error *err)
{
    /* Data is other people's: a NUL in a text or a key that is there twice is what Python's
     * json.loads takes, too. */
    struct json *root =
        json_parse(line, bytes, JSON_ALLOW_NUL | JSON_ALLOW_DUPLICATES | JSON_ALLOW_NAN, err);
    if (!json_is_object(root)) {
        const char *column = root ? NULL : strstr(err->msg, "column "); /* the line is the row's */
        auto_free char *reason = xstrdup(column ? column : "a value of another kind");
        json_free(root);
        error_set(err, ERR_INPUT, "no JSON object: %s", reason);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (!take_column(root, texts, i)) {
            set_missing(root, &texts[i], err);
            json_free(root);
            return NULL;
        }
    }
    return root;
}

struct json *json_line_text(const char *line, size_t bytes, const char *column,
                            const char **ret_text, size_t *ret_bytes, struct error *err)
{
    struct json_line_text text = {.column = column, .key = "data.text_column"};
    struct json *root = json_line_texts(line, bytes, &text, 1, err);
    if (root) {
        *ret_text = text.text;
        *ret_bytes = text.bytes;
    }
    return root;
}

void json_line_free(struct json *line)
{
    json_free(line);
}
