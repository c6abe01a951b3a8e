#include "cli/top_screen.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "cli/layout.h"

enum {
    LINE_MAX_BYTES = 1024,
    /* Two of the head, a title, what there is no room for; and the one below the last line, where
     * the cursor ends: without it a terminal would scroll the head away. */
    FIXED_ROWS = 5
};

/* Bytes of the line that `room` has place for: whole words, without what parts the last of them
 * from the next. Of a first word that is longer, its beginning. */
static size_t fit(const char *line, size_t room)
{
    size_t length = strnlen(line, room), end = length;
    if (!line[length])
        return length;
    while (end > 0 && line[end] != ' ')
        end--;
    while (end > 0 && strchr(" ,;:", line[end - 1]))
        end--;
    return end > 0 ? end : length;
}

static void add_line(struct str *out, const char *line, int columns)
{
    str_add_bytes(out, line, fit(line, (size_t)layout_room(columns)));
    str_add(out, "\n");
}

static void add_head(const struct top_screen *screen, const struct job_facts *const *jobs,
                     size_t count, int columns, int64_t now_ms, struct str *out)
{
    auto_str struct str line;
    str_init(&line, LINE_MAX_BYTES);
    job_table_count(jobs, count, &line);
    str_printf(&line, "  %s", screen->source);
    add_line(out, screen->read_ms ? str_text(&line) : screen->source, columns);
    str_clear(&line);
    if (screen->trouble && screen->read_ms)
        str_printf(&line, "no news for %" PRId64 " s: ", (now_ms - screen->read_ms) / 1000);
    if (screen->trouble)
        str_add(&line, screen->trouble);
    else
        str_printf(&line, "by %s%s%s%s  q: quit, s: next order, r: reverse",
                   job_sort_names[screen->table.sort], screen->table.reverse ? ", reversed" : "",
                   screen->table.filter ? ", only " : "",
                   screen->table.filter ? screen->table.filter : "");
    add_line(out, str_text(&line), columns);
}

void top_screen_render(const struct top_screen *screen, int columns, int rows, int64_t now_ms,
                       struct str *out)
{
    auto_arena struct arena *arena = arena_open();
    const struct job_facts **jobs =
        arena_array(arena, const struct job_facts *, screen->table.count + 1);
    size_t count = job_table_select(&screen->table, jobs);
    size_t room = rows > FIXED_ROWS ? (size_t)(rows - FIXED_ROWS) : 0;
    size_t shown = count < room ? count : room;
    add_head(screen, jobs, count, columns, now_ms, out);
    if (shown > 0)
        job_table_render(jobs, shown, screen->table.with_namespace, columns, now_ms, out);
    if (shown == count)
        return;
    auto_str struct str more;
    str_init(&more, LINE_MAX_BYTES);
    str_printf(&more, "... and %zu more", count - shown);
    add_line(out, str_text(&more), columns);
}
