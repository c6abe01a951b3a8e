#include "tests/operator/schema.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "tests/support.h"

#include <jansson.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CRD_MAX_BYTES (256 << 10) /* what kubectl apply can keep in an annotation */
#define PATH_BYTES    512

struct json_t *schema_of_crd(const char *path)
{
    struct error err;
    auto_free char *text = NULL;
    size_t bytes;
    assert_ok(file_read(path, CRD_MAX_BYTES, &text, &bytes, &err), &err);
    json_t *documents;
    assert_ok(yaml_parse(text, bytes, path, &documents, &err), &err);
    assert_int_equal(json_array_size(documents), 1);
    const json_t *spec = json_object_get(json_array_get(documents, 0), "spec");
    const json_t *versions = json_object_get(spec, "versions");
    assert_int_equal(json_array_size(versions), 1);
    const json_t *schema = json_object_get(json_array_get(versions, 0), "schema");
    json_t *root = json_incref(json_object_get(schema, "openAPIV3Schema"));
    assert_non_null(root);
    json_decref(documents);
    return root;
}

static bool has_type(const char *type, const json_t *value)
{
    return (strcmp(type, "object") == 0 && json_is_object(value)) ||
           (strcmp(type, "array") == 0 && json_is_array(value)) ||
           (strcmp(type, "string") == 0 && json_is_string(value)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(value)) ||
           (strcmp(type, "integer") == 0 && json_is_integer(value));
}

static bool matches(const char *pattern, const char *text)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool result = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return result;
}

static bool is_one_of(const json_t *words, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(words); i++)
        if (json_equal(json_array_get(words, i), value))
            return true;
    return false;
}

/* A keyword that limits a value that has the right type. */
static bool fits(const char *keyword, const json_t *limit, const json_t *value)
{
    json_int_t number = json_integer_value(limit);
    if (strcmp(keyword, "enum") == 0)
        return is_one_of(limit, value);
    if (strcmp(keyword, "pattern") == 0)
        return !json_is_string(value) ||
               matches(json_string_value(limit), json_string_value(value));
    if (strcmp(keyword, "minimum") == 0)
        return json_integer_value(value) >= number;
    if (strcmp(keyword, "maximum") == 0)
        return json_integer_value(value) <= number;
    if (strcmp(keyword, "minLength") == 0)
        return (json_int_t)json_string_length(value) >= number;
    if (strcmp(keyword, "maxLength") == 0)
        return (json_int_t)json_string_length(value) <= number;
    if (strcmp(keyword, "minItems") == 0)
        return (json_int_t)json_array_size(value) >= number;
    if (strcmp(keyword, "minProperties") == 0)
        return (json_int_t)json_object_size(value) >= number;
    fail_msg("the schema has %s: teach it to tests/operator/schema.c", keyword);
    return false;
}

static void check_required(const json_t *required, const json_t *value, const char *path,
                           struct lines *problems)
{
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (!json_object_get(value, name))
            lines_add(problems, "%s.%s: required", path, name);
    }
}

static void check_fields(const json_t *schema, const json_t *value, const char *path,
                         struct lines *problems)
{
    const char *name;
    json_t *field;
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *others = json_object_get(schema, "additionalProperties");
    bool any = json_is_true(json_object_get(schema, "x-kubernetes-preserve-unknown-fields")) ||
               strcmp(path, ".metadata") == 0;
    json_object_foreach((json_t *)value, name, field)
    {
        char field_path[PATH_BYTES];
        snprintf(field_path, sizeof field_path, "%s.%s", path, name);
        const json_t *of = json_object_get(properties, name);
        of = of ? of : others;
        if (of)
            schema_check(of, field, field_path, problems);
        else if (!any)
            lines_add(problems, "%s: unknown field", field_path);
    }
}

static void check_items(const json_t *schema, const json_t *value, const char *path,
                        struct lines *problems)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        char item_path[PATH_BYTES];
        snprintf(item_path, sizeof item_path, "%s[%zu]", path, i);
        schema_check(json_object_get(schema, "items"), json_array_get(value, i), item_path,
                     problems);
    }
}

void schema_check(const struct json_t *schema, const struct json_t *value, const char *path,
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
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (json_is_null(value) && json_is_true(json_object_get(schema, "nullable")))
        return;
    if (type && !has_type(type, value)) {
        lines_add(problems, "%s: must be %s", path, type);
        return;
    }
    const char *keyword;
    json_t *limit;
    json_object_foreach((json_t *)schema, keyword, limit)
    {
        bool known = false;
        for (size_t i = 0; i < array_length(elsewhere); i++)
            known |= strcmp(keyword, elsewhere[i]) == 0;
        if (!known && !fits(keyword, limit, value))
            lines_add(problems, "%s: breaks %s", path, keyword);
    }
    check_required(json_object_get(schema, "required"), value, path, problems);
    if (json_is_object(value))
        check_fields(schema, value, path, problems);
    check_items(schema, value, path, problems);
}
