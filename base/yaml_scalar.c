#include "base/yaml_scalar.h"

#include "base/json.h"
#include "base/json_real.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64 /* characters of a plain number; longer ones are text */

struct word {
    const char *text;
    enum json_type type;
};

/* YAML 1.1's (yaml.org/type/bool.html), as kubectl reads manifests: y and n are booleans, too. */
static const struct word words[] = {
    {"", JSON_NULL},     {"~", JSON_NULL},      {"null", JSON_NULL},   {"Null", JSON_NULL},
    {"NULL", JSON_NULL}, {"y", JSON_TRUE},      {"Y", JSON_TRUE},      {"yes", JSON_TRUE},
    {"Yes", JSON_TRUE},  {"YES", JSON_TRUE},    {"true", JSON_TRUE},   {"True", JSON_TRUE},
    {"TRUE", JSON_TRUE}, {"on", JSON_TRUE},     {"On", JSON_TRUE},     {"ON", JSON_TRUE},
    {"n", JSON_FALSE},   {"N", JSON_FALSE},     {"no", JSON_FALSE},    {"No", JSON_FALSE},
    {"NO", JSON_FALSE},  {"false", JSON_FALSE}, {"False", JSON_FALSE}, {"FALSE", JSON_FALSE},
    {"off", JSON_FALSE}, {"Off", JSON_FALSE},   {"OFF", JSON_FALSE},
};

static struct json *as_word(const char *text)
{
    for (size_t i = 0; i < array_length(words); i++) {
        if (strcmp(words[i].text, text) != 0)
            continue;
        if (words[i].type == JSON_NULL)
            return json_new_null();
        return json_new_bool(words[i].type == JSON_TRUE);
    }
    return NULL;
}

/* Steps over the prefix that says the base; a leading 0 alone means octal. */
static int take_base(const char **digits)
{
    if ((*digits)[0] != '0' || !(*digits)[1])
        return 10;
    switch ((*digits)[1]) {
    case 'x':
    case 'X':
        *digits += 2;
        return 16;
    case 'b':
    case 'B':
        *digits += 2;
        return 2;
    case 'o':
    case 'O':
        *digits += 2;
        return 8;
    default:
        /* YAML 1.1: 0755 is octal, as file modes are written. */
        *digits += 1;
        return 8;
    }
}

static struct json *as_integer(const char *text)
{
    bool negative = *text == '-';
    const char *digits = text + (*text == '-' || *text == '+');
    int base = take_base(&digits);
    if (!*digits || digits[strspn(digits, "0123456789abcdefABCDEF")])
        return NULL;
    errno = 0;
    char *end = NULL;
    unsigned long long value = strtoull(digits, &end, base);
    if (errno || *end || value > (unsigned long long)INT64_MAX + negative)
        return NULL;
    return json_new_integer(negative ? (int64_t)(0 - value) : (int64_t)value);
}

/* [-+]? (digits [. digits*] | . digits) exponent? */
static bool looks_like_float(const char *text)
{
    const char *p = text + (*text == '-' || *text == '+');
    size_t before = strspn(p, "0123456789");
    p += before;
    size_t after = 0;
    if (*p == '.') {
        after = strspn(p + 1, "0123456789");
        p += 1 + after;
    }
    if (before + after == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '-' || *p == '+';
        size_t exponent = strspn(p, "0123456789");
        if (exponent == 0)
            return false;
        p += exponent;
    }
    return *p == '\0';
}

static struct json *as_float(const char *text)
{
    if (!looks_like_float(text))
        return NULL;
    struct json *same = json_parse_text(text, JSON_ALLOW_SCALAR, NULL);
    if (same) /* keeps its digits */
        return same;
    double value = json_real_value(text);
    return isfinite(value) ? json_new_real(value, 17) : NULL;
}

/* Underscores may stand between digits. */
static struct json *as_number(const char *text, size_t length)
{
    if (length >= NUMBER_MAX || !strchr("+-.0123456789", text[0]))
        return NULL;
    char digits[NUMBER_MAX];
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] != '_')
            digits[count++] = text[i];
    digits[count] = '\0';
    struct json *number = as_integer(digits);
    return number ? number : as_float(digits);
}

static struct json *by_form(const char *text, size_t length)
{
    struct json *value = as_word(text);
    if (!value)
        value = as_number(text, length);
    return value ? value : json_new_text_bytes(text, length);
}

static struct json *only(struct json *value, bool fits)
{
    if (fits)
        return value;
    json_free(value);
    return NULL;
}

static struct json *by_tag(const char *text, size_t length, const char *tag)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    if (strncmp(tag, prefix, sizeof prefix - 1) != 0)
        return NULL;
    const char *name = tag + sizeof prefix - 1;
    if (strcmp(name, "str") == 0)
        return json_new_text_bytes(text, length);
    struct json *value = by_form(text, length);
    if (strcmp(name, "int") == 0)
        return only(value, json_is_integer(value));
    if (strcmp(name, "float") == 0)
        return only(value, json_is_number(value));
    if (strcmp(name, "bool") == 0)
        return only(value, json_is_boolean(value));
    return only(value, strcmp(name, "null") == 0 && json_is_null(value));
}

struct json *yaml_scalar(const char *text, size_t length, bool plain, const char *tag)
{
    /* A NUL in the text ("\0" in quotes): C's texts end there. */
    if (strlen(text) != length)
        return NULL;
    if (tag)
        return by_tag(text, length, tag);
    return plain ? by_form(text, length) : json_new_text_bytes(text, length);
}

char *yaml_scalar_key(const char *text, size_t length, bool plain)
{
    struct json *value = yaml_scalar(text, length, plain, NULL);
    char *key = NULL;
    switch (value ? json_type_of(value) : JSON_NULL) {
    case JSON_STRING:
        key = xstrdup(text);
        break;
    case JSON_INTEGER:
        key = xasprintf("%" PRId64, json_as_integer(value));
        break;
    case JSON_TRUE:
        key = xstrdup("true");
        break;
    case JSON_FALSE:
        key = xstrdup("false");
        break;
    default:
        break;
    }
    json_free(value);
    return key;
}
