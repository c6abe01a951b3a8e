#include "agent/dataset/json_line.h"

#include "base/str.h"

#include <jansson.h>
#include <stdio.h>

enum { NAMES_MAX_BYTES = 200 };

void json_line_prepare(void)
{
    json_object_seed(0); /* jansson would do it at the first object, whichever thread has it */
}

/* The column is not there, or no text: then which there are does not help. */
static void set_missing(const json_t *root, const struct json_line_text *text, struct error *err)
{
    static const char *const kinds[] = {"an object", "an array", "a text", "a whole number",
                                        "a number",  "true",     "false",  "null"};
    const char *wanted = text->may_be_number ? "text or whole number" : "text";
    const json_t *found = json_object_get(root, text->column);
    if (found) {
        error_set(err, ERR_INPUT, "\"%s\" is %s, no %s", text->column, kinds[json_typeof(found)],
                  wanted);
        return;
    }
    auto_str struct str names;
    str_init(&names, NAMES_MAX_BYTES);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)root, key, value)
    {
        str_printf(&names, "%s%s", names.length ? ", " : "", key);
    }
    for (size_t i = 0; i < names.length; i++) /* it goes into messages */
        if ((unsigned char)names.text[i] < 0x20)
            names.text[i] = ' ';
    error_set(err, ERR_INPUT, "no %s \"%s\" in it; it has %s: set %s", wanted, text->column,
              names.length ? str_text(&names) : "nothing", text->key);
}

static bool take_text(const json_t *value, struct json_line_text *text)
{
    if (json_is_string(value)) {
        text->text = json_string_value(value);
        text->bytes = json_string_length(value);
        return true;
    }
    if (!text->may_be_number || !(json_is_integer(value) || json_is_boolean(value)))
        return false;
    long long number = json_is_integer(value) ? json_integer_value(value) : json_is_true(value);
    text->bytes = (size_t)snprintf(text->digits, sizeof text->digits, "%lld", number);
    text->text = text->digits;
    return true;
}

struct json_t *json_line_texts(const char *line, size_t bytes, struct json_line_text *texts,
                               size_t count, struct error *err)
{
    json_error_t json_error;
    json_t *root = json_loadb(line, bytes, JSON_ALLOW_NUL, &json_error);
    if (!json_is_object(root)) {
        for (char *p = json_error.text; !root && *p; p++) /* it quotes what it did not understand */
            if ((unsigned char)*p < 0x20 || *p == 0x7f)
                *p = ' ';
        error_set(err, ERR_INPUT, "no JSON object: %s",
                  root ? "a value of another kind" : json_error.text);
        json_decref(root);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (!take_text(json_object_get(root, texts[i].column), &texts[i])) {
            set_missing(root, &texts[i], err);
            json_decref(root);
            return NULL;
        }
    }
    return root;
}

struct json_t *json_line_text(const char *line, size_t bytes, const char *column,
                              const char **ret_text, size_t *ret_bytes, struct error *err)
{
    struct json_line_text text = {.column = column, .key = "data.text_column"};
    json_t *root = json_line_texts(line, bytes, &text, 1, err);
    if (root) {
        *ret_text = text.text;
        *ret_bytes = text.bytes;
    }
    return root;
}

void json_line_free(struct json_t *line)
{
    json_decref(line);
}
