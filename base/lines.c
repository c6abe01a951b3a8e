#include "base/lines.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

void lines_init(struct lines *lines, struct arena *arena)
{
    *lines = (struct lines){.arena = arena};
}

void lines_add(struct lines *lines, const char *format, ...)
{
    if (lines->count == LINES_MAX) {
        lines->dropped++;
        return;
    }
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        /* A line stays a line, also if it quotes a text with line breaks. */
        if ((unsigned char)*c < ' ')
            *c = ' ';
    lines->items[lines->count++] = arena_strdup(lines->arena, text);
}

const char *lines_join(const struct lines *lines)
{
    const char *all = "";
    for (size_t i = 0; i < lines->count; i++)
        all = arena_printf(lines->arena, "%s%s%s", all, i ? "; " : "", lines->items[i]);
    if (lines->dropped)
        all = arena_printf(lines->arena, "%s; and %zu more", all, lines->dropped);
    return all;
}
