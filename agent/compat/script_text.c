#include "agent/compat/script_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Where a string of Python that begins at `c` ends. */
static const char *string_end(const char *c)
{
    char quote = *c;
    bool is_long = c[1] == quote && c[2] == quote;
    for (c += is_long ? 3 : 1; *c; c++)
        if (*c == '\\' && c[1])
            c++;
        else if (*c == quote && (!is_long || (c[1] == quote && c[2] == quote)))
            return c + (is_long ? 3 : 1);
        else if (*c == '\n' && !is_long)
            return c;
    return c;
}

const char *script_text_bare(const char *text, struct arena *arena)
{
    char *out = arena_alloc(arena, strlen(text) + 1), *end = out;
    while (*text) {
        const char *next = text + 1;
        /* Of Python only what would mislead a search is understood: comments, strings and
         * blanks. */
        if (*text == '#')
            next = text + strcspn(text, "\n");
        else if (*text == '"' || *text == '\'')
            next = string_end(text);
        else if (!isspace((unsigned char)*text))
            *end++ = *text;
        for (; text < next; text++)
            if (*text == '\n')
                *end++ = '\n';
    }
    *end = '\0';
    return out;
}

int script_text_line(const char *bare, const char *at)
{
    int line = 1;
    for (; bare < at; bare++)
        line += *bare == '\n';
    return line;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

const char *script_text_name(const char *at, struct arena *arena)
{
    size_t length = 0;
    while (is_word(at[length]))
        length++;
    return arena_strndup(arena, at, length);
}

const char *script_text_call(const char *bare, const char *from, const char *function)
{
    size_t length = strlen(function);
    for (from = strstr(from, function); from; from = strstr(from + 1, function))
        /* A longer name (MyFSDP) and an attribute (x.FSDP) are other functions. */
        if (from[length] == '(' && (from == bare || (!is_word(from[-1]) && from[-1] != '.')))
            return from + length + 1;
    return NULL;
}

/* Whether the argument at `argument` is the keyword; *ret_value: where its value begins. */
static bool is_keyword(const char *argument, const char *name, const char **ret_value)
{
    size_t length = strlen(name);
    bool is_mapping = strcmp(name, "**") == 0;
    *ret_value = argument + length + (is_mapping ? 0 : 1);
    return strncmp(argument, name, length) == 0 && (is_mapping || argument[length] == '=');
}

const char *script_text_keyword(const char *call, const char *name, const char **ret_at,
                                struct arena *arena)
{
    int depth = 0;
    for (const char *argument = call, *c = call;; c++) {
        bool closes = *c == '\0' || (depth == 0 && *c == ')');
        if (closes || (depth == 0 && *c == ',')) {
            const char *begin;
            argument += strspn(argument, "\n");
            *ret_at = argument;
            if (is_keyword(argument, name, &begin)) {
                char *value = arena_strndup(arena, begin, (size_t)(c - begin));
                return arena_strndup(arena, value, strcspn(value, "\n"));
            }
            argument = c + 1;
        }
        if (closes)
            return "";
        depth += strchr("([{", *c) ? 1 : strchr(")]}", *c) ? -1 : 0;
    }
}

const char *script_text_assigned(const char *bare, const char *variable, struct arena *arena)
{
    size_t length = strlen(variable);
    const char *value = "";
    for (const char *at = bare; (at = strstr(at, variable)); at += length) {
        bool begins = at == bare || at[-1] == '\n';
        if (!begins || at[length] != '=' || at[length + 1] == '=')
            continue;
        /* Assigned twice: it takes running the script to know which value holds. */
        if (value[0])
            return "";
        value = arena_strndup(arena, at + length + 1, strcspn(at + length + 1, "\n"));
    }
    return value;
}
