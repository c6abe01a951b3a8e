#include "cli/rank_list.h"

#include <stdio.h>
#include <string.h>

#include "cli/layout.h"

enum { BAR_COLUMNS = 20, BAR_COLUMNS_MIN = 4, LINE_MAX_BYTES = 256 };

static const char *state_of(const struct rank_item *item)
{
    if (item->hangs)
        return "hangs";
    if (item->straggles)
        return "straggles";
    return item->waits ? "waits" : item->phase;
}

static void draw_item(const struct rank_item *item, double slowest, int columns, struct str *out)
{
    auto_str struct str line;
    str_init(&line, LINE_MAX_BYTES);
    str_printf(&line, "  rank %-4d", item->rank);
    int room = layout_room(columns) - (int)line.length - (int)strlen("[]  0.00x  straggles");
    if (item->compute_ratio > 0 && slowest > 0 && room >= BAR_COLUMNS_MIN) {
        str_add(&line, " ");
        layout_bar(item->compute_ratio / slowest, room < BAR_COLUMNS ? room : BAR_COLUMNS, &line);
        str_printf(&line, " %4.2fx", item->compute_ratio);
    }
    str_printf(&line, "  %s", state_of(item));
    str_add_bytes(out, str_text(&line), strnlen(str_text(&line), (size_t)layout_room(columns)));
    str_add(out, "\n");
}

void rank_list_draw(const struct rank_list *list, int columns, int rows, struct str *out)
{
    double slowest = 0;
    int drawn = 0;
    bool fits = rows > 0 && list->count <= (size_t)rows;
    for (size_t i = 0; i < list->count; i++)
        slowest = list->items[i].compute_ratio > slowest ? list->items[i].compute_ratio : slowest;
    for (size_t i = 0; i < list->count && list->count > 1; i++) {
        const struct rank_item *item = &list->items[i];
        if (!fits && (drawn >= rows || !(item->straggles || item->hangs)))
            continue;
        draw_item(item, slowest, columns, out);
        drawn++;
    }
}
