#include "cli/layout.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#define CUT ".." /* the sign of a name whose beginning has no room */

enum { GAP = 2 /* between the columns of a table */, BELOW_INDENT = 4, CELL_MAX_BYTES = 1024 };

int layout_room(int columns)
{
    /* In the last column a terminal may wrap: a view would then take more rows than are counted. */
    return columns > 1 ? columns - 1 : 0;
}

const char *layout_end_of_name(const char *name, int width)
{
    int length = (int)strlen(name);
    if (length <= width)
        return name;
    name += length - width;
    while (isdigit((unsigned char)name[-1]) && isdigit((unsigned char)name[0]))
        name++;
    return name;
}

void layout_bar(double done, int width, struct str *out)
{
    assert(width <= LAYOUT_BAR_MAX);
    char bar[LAYOUT_BAR_MAX + 1];
    memset(bar, '-', (size_t)width);
    memset(bar, '#', (size_t)(done * width));
    str_printf(out, "[%.*s]", width, bar);
}

void layout_wrap(const char *text, int at, int indent, int columns, struct str *out)
{
    int room = layout_room(columns);
    bool is_first = true; /* of its line */
    while (*(text += strspn(text, " "))) {
        int length = (int)strcspn(text, " ");
        if (!is_first && at + 1 + length > room) {
            str_printf(out, "\n%*s", indent, "");
            at = indent;
            is_first = true;
        }
        str_printf(out, "%s%.*s", is_first ? "" : " ", length, text);
        at += length + !is_first;
        is_first = false;
        text += length;
    }
    str_add(out, "\n");
}

/* ---- tables ---- */

static const char *cell(const struct layout_table *table, size_t row, size_t column)
{
    return table->cells[row * table->column_count + column];
}

/* Of each column; 0: it is not shown. */
static void measure(const struct layout_table *table, int *widths)
{
    for (size_t c = 0; c < table->column_count; c++) {
        int width = 0;
        for (size_t r = 0; r < table->row_count; r++) {
            int length = (int)strlen(cell(table, r, c));
            width = length > width ? length : width;
        }
        int title = (int)strlen(table->columns[c].title);
        widths[c] = width < title ? title : width;
    }
}

static int total(const struct layout_table *table, const int *widths)
{
    int sum = -GAP;
    for (size_t c = 0; c < table->column_count; c++)
        sum += widths[c] ? widths[c] + GAP : 0;
    return sum;
}

/* The column of the highest rank goes, the last of several. False: none may. */
static bool drop_one(const struct layout_table *table, int *widths)
{
    size_t found = 0;
    for (size_t c = 1; c < table->column_count; c++)
        if (widths[c] && table->columns[c].rank > 0 &&
            table->columns[c].rank >= table->columns[found].rank)
            found = c;
    widths[found] = found ? 0 : widths[found];
    return found > 0;
}

static void add_cell(const struct layout_column *column, const char *text, int width, bool is_last,
                     struct str *out)
{
    if (column->is_right || !is_last)
        str_printf(out, "%*.*s", column->is_right ? width : -width, width, text);
    else
        str_printf(out, "%.*s", width, text); /* no blanks at the end of a line */
}

/* The text of a cell as it is shown; where it is cut, in *room. */
static const char *fit(const char *text, int width, struct str *room)
{
    const char *end = layout_end_of_name(text, width);
    int sign = (int)strlen(CUT);
    if (end == text || width <= sign)
        return end;
    str_clear(room);
    str_printf(room, CUT "%s", layout_end_of_name(text, width - sign));
    return str_text(room);
}

static void add_row(const struct layout_table *table, const int *widths, size_t row, bool is_title,
                    struct str *out)
{
    auto_str struct str room;
    str_init(&room, CELL_MAX_BYTES);
    size_t last = 0;
    for (size_t c = 0; c < table->column_count; c++)
        last = widths[c] ? c : last;
    for (size_t c = 0; c <= last; c++) {
        const struct layout_column *column = &table->columns[c];
        if (!widths[c])
            continue;
        const char *text = is_title ? column->title : fit(cell(table, row, c), widths[c], &room);
        add_cell(column, text, widths[c], c == last, out);
        if (c < last)
            str_printf(out, "%*s", GAP, "");
    }
    str_add(out, "\n");
}

void layout_table(const struct layout_table *table, int columns, struct str *out)
{
    int widths[LAYOUT_COLUMNS_MAX];
    assert(table->column_count <= LAYOUT_COLUMNS_MAX && table->columns[0].rank == 0);
    measure(table, widths);
    int over;
    while ((over = total(table, widths) - layout_room(columns)) > 0 && drop_one(table, widths))
        continue;
    if (over > 0)
        widths[0] = widths[0] > over ? widths[0] - over : 1;
    add_row(table, widths, 0, true, out);
    for (size_t r = 0; r < table->row_count; r++) {
        add_row(table, widths, r, false, out);
        if (!table->below || !*table->below[r])
            continue;
        str_printf(out, "%*s", BELOW_INDENT, "");
        layout_wrap(table->below[r], BELOW_INDENT, BELOW_INDENT, columns, out);
    }
}
