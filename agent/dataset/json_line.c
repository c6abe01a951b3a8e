#include "agent/dataset/json_line.h"

#include "base/str.h"

#include <jansson.h>

enum { NAMES_MAX_BYTES = 200 };

void json_line_prepare(void)
{
    json_object_seed(0); /* jansson would do it at the first object, whichever thread has it */
}

static void set_missing(const json_t *root, const char *column, struct error *err)
{
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
    error_set(err, ERR_INPUT, "no text \"%s\" in it; it has %s: set data.text_column", column,
              names.length ? str_text(&names) : "nothing");
}

struct json_t *json_line_text(const char *line, size_t bytes, const char *column,
                              const char **ret_text, size_t *ret_bytes, struct error *err)
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
    const json_t *text = json_object_get(root, column);
    if (!json_is_string(text)) {
        set_missing(root, column, err);
        json_decref(root);
        return NULL;
    }
    *ret_text = json_string_value(text);
    *ret_bytes = json_string_length(text);
    return root;
}

void json_line_free(struct json_t *line)
{
    json_decref(line);
}
