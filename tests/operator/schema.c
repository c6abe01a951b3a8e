#include "tests/operator/schema.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "tests/support.h"

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CRD_MAX_BYTES (256 << 10) /* what kubectl apply can keep in an annotation */
#define PATH_BYTES    512

struct json *schema_of_crd(const char *path)
{
    struct error err;
    auto_free char *text = NULL;
    size_t bytes;
    assert_ok(file_read(path, CRD_MAX_BYTES, &text, &bytes, &err), &err);
    struct json *documents;
    assert_ok(yaml_parse(text, bytes, path, &documents, &err), &err);
    assert_int_equal(json_array_count(documents), 1);
    const struct json *spec = json_get(json_at(documents, 0), "spec");
    const struct json *versions = json_get(spec, "versions");
    assert_int_equal(json_array_count(versions), 1);
    struct json *root = json_take(json_get(json_at(versions, 0), "schema"), "openAPIV3Schema");
    assert_non_null(root);
    json_free(documents);
    return root;
}

static bool has_type(const char *type, const struct json *value)
{
    return (strcmp(type, "object") == 0 && json_is_object(value)) ||
           (strcmp(type, "array") == 0 && json_is_array(value)) ||
           (strcmp(type, "string") == 0 && json_is_string(value)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(value)) ||
           (strcmp(type, "integer") == 0 && json_is_integer(value)) ||
           (strcmp(type, "number") == 0 && json_is_number(value));
}

static bool matches(const char *pattern, const char *text)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool result = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return result;
}

static bool is_one_of(const struct json *words, const struct json *value)
{
    for (size_t i = 0; i < json_array_count(words); i++)
        if (json_is_equal(json_at(words, i), value))
            return true;
    return false;
}

/* In bytes; -1: not a string. */
static int64_t length_of(const struct json *value)
{
    return json_is_string(value) ? (int64_t)strlen(json_as_text(value)) : -1;
}

/* A keyword that limits a value that has the right type. */
static bool fits(const char *keyword, const struct json *limit, const struct json *value)
{
    int64_t number = json_as_integer(limit);
    if (strcmp(keyword, "enum") == 0)
        return is_one_of(limit, value);
    if (strcmp(keyword, "pattern") == 0)
        return !json_is_string(value) || matches(json_as_text(limit), json_as_text(value));
    if (strcmp(keyword, "minimum") == 0)
        return json_as_integer(value) >= number;
    if (strcmp(keyword, "maximum") == 0)
        return json_as_integer(value) <= number;
    if (strcmp(keyword, "minLength") == 0)
        return length_of(value) >= number;
    if (strcmp(keyword, "maxLength") == 0)
        return length_of(value) <= number;
    if (strcmp(keyword, "minItems") == 0)
        return (int64_t)json_array_count(value) >= number;
    if (strcmp(keyword, "minProperties") == 0)
        return (int64_t)json_object_count(value) >= number;
    fail_msg("the schema has %s: teach it to tests/operator/schema.c", keyword);
    return false;
}

static void check_required(const struct json *required, const struct json *value, const char *path,
                           struct lines *problems)
{
    for (size_t i = 0; i < json_array_count(required); i++) {
        const char *name = json_as_text(json_at(required, i));
        if (!json_get(value, name))
            lines_add(problems, "%s.%s: required", path, name);
    }
}

static void check_fields(const struct json *schema, const struct json *value, const char *path,
                         struct lines *problems)
{
    struct json *field;
    const struct json *properties = json_get(schema, "properties");
    const struct json *others = json_get(schema, "additionalProperties");
    bool any = json_is_true(json_get(schema, "x-kubernetes-preserve-unknown-fields")) ||
               strcmp(path, ".metadata") == 0;
    json_each_member(field, value) {
        const char *name = json_key(field);
        char field_path[PATH_BYTES];
        snprintf(field_path, sizeof field_path, "%s.%s", path, name);
        const struct json *of = json_get(properties, name);
        of = of ? of : others;
        if (of)
            schema_check(of, field, field_path, problems);
        else if (!any)
            lines_add(problems, "%s: unknown field", field_path);
    }
}

static void check_items(const struct json *schema, const struct json *value, const char *path,
                        struct lines *problems)
{
    for (size_t i = 0; i < json_array_count(value); i++) {
        char item_path[PATH_BYTES];
        snprintf(item_path, sizeof item_path, "%s[%zu]", path, i);
        schema_check(json_get(schema, "items"), json_at(value, i), item_path, problems);
    }
}

void schema_check(const struct json *schema, const struct json *value, const char *path,
                  struct lines *problems)
{
    static const char *const elsewhere[] = {"type",
                                            "properties",
                                            "items",
                                            "required",
                                            "additionalProperties",
                                            "anyOf",
                                            "description",
                                            "default",
                                            "format",
                                            "nullable",
                                            "x-kubernetes-preserve-unknown-fields",
                                            "x-kubernetes-int-or-string",
                                            "x-kubernetes-list-type",
                                            "x-kubernetes-list-map-keys",
                                            "x-kubernetes-map-type",
                                            "x-kubernetes-validations"};
    const char *type = json_as_text(json_get(schema, "type"));
    if (json_is_null(value) && json_is_true(json_get(schema, "nullable")))
        return;
    if (type && !has_type(type, value)) {
        lines_add(problems, "%s: must be %s", path, type);
        return;
    }
    struct json *limit;
    json_each_member(limit, schema) {
        const char *keyword = json_key(limit);
        bool known = false;
        for (size_t i = 0; i < array_length(elsewhere); i++)
            known |= strcmp(keyword, elsewhere[i]) == 0;
        if (!known && !fits(keyword, limit, value))
            lines_add(problems, "%s: breaks %s", path, keyword);
    }
    check_required(json_get(schema, "required"), value, path, problems);
    if (json_is_object(value))
        check_fields(schema, value, path, problems);
    check_items(schema, value, path, problems);
}
