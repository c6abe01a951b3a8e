#include "agent/config/name_format.h"

#include "base/str.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DIGITS = 20 };

/* A field as it stands in the format: {name:0Nd}. */
struct placeholder {
    const char *name;
    size_t name_bytes;
    int digits;      /* 0: as many as there are */
    const char *end; /* behind the brace; NULL: it is not well formed */
};

static struct placeholder read_placeholder(const char *at)
{
    struct placeholder placeholder = {.name = at + 1};
    placeholder.name_bytes = strcspn(placeholder.name, ":{}");
    const char *p = placeholder.name + placeholder.name_bytes;
    if (*p == ':' && p[1] == '0') {
        for (p += 2; *p >= '0' && *p <= '9' && placeholder.digits <= MAX_DIGITS; p++)
            placeholder.digits = placeholder.digits * 10 + (*p - '0');
        p += *p == 'd';
        if (placeholder.digits == 0 || placeholder.digits > MAX_DIGITS)
            return placeholder;
    }
    placeholder.end = *p == '}' ? p + 1 : NULL;
    return placeholder;
}

static bool is_named(const struct placeholder *placeholder, const char *name)
{
    return strlen(name) == placeholder->name_bytes &&
           memcmp(name, placeholder->name, placeholder->name_bytes) == 0;
}

int name_format_check(const char *format, const char *const *names, size_t count, struct error *err)
{
    for (const char *p = format; *p;) {
        if (*p == '/')
            return error_set(err, ERR_CONFIG, "'%s': a name cannot have a '/'", format);
        if (*p != '{' && *p != '}') {
            p++;
            continue;
        }
        struct placeholder placeholder = {0};
        if (*p == '{')
            placeholder = read_placeholder(p);
        if (!placeholder.end)
            return error_set(err, ERR_CONFIG, "'%s': '%s' is no {name} or {name:03d}", format, p);
        bool known = false;
        for (size_t i = 0; i < count; i++)
            known |= is_named(&placeholder, names[i]);
        if (!known)
            return error_set(err, ERR_CONFIG, "'%s': there is no field {%.*s}", format,
                             (int)placeholder.name_bytes, placeholder.name);
        p = placeholder.end;
    }
    return 0;
}

static void add_field(const struct name_field *field, int digits, struct str *out)
{
    if (field->text)
        str_add(out, field->text);
    else
        str_printf(out, "%0*lld", digits, (long long)field->number);
}

void name_format(const char *format, const struct name_field *fields, size_t count, char *out,
                 size_t out_bytes)
{
    auto_str struct str name;
    str_init(&name, out_bytes - 1);
    for (const char *p = format; *p;) {
        if (*p != '{') {
            str_printf(&name, "%c", *p++);
            continue;
        }
        struct placeholder placeholder = read_placeholder(p);
        for (size_t i = 0; i < count; i++)
            if (is_named(&placeholder, fields[i].name))
                add_field(&fields[i], placeholder.digits, &name);
        p = placeholder.end;
    }
    snprintf(out, out_bytes, "%s", str_text(&name));
}
