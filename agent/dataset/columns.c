#include "agent/dataset/columns.h"

#include "agent/dataset/text_file.h"

#include <string.h>

enum { NAMES_MAX_BYTES = 200 };

/* ---- fields of TSV and CSV ---- */

/* Where in a record of CSV one is (RFC 4180). A quote means something only at a field's beginning
 * and within a field that began with one, where two of them are one: elsewhere it is a character,
 * as for Python's csv and pandas. */
enum csv_place { FIELD_BEGINS, BARE, QUOTED, QUOTE_SEEN };

static enum csv_place csv_next(enum csv_place place, char c)
{
    if (place == QUOTED)
        return c == '"' ? QUOTE_SEEN : QUOTED;
    if (c == '"' && place != BARE)
        return QUOTED; /* it opens the field, or is the second of two */
    return c == ',' ? FIELD_BEGINS : BARE;
}

/* Where the field that begins at `at` ends; a quoted one's closing quote is within. */
static size_t find_end(bool is_csv, const char *text, size_t bytes, size_t at)
{
    if (!is_csv) {
        const char *tab = memchr(text + at, '\t', bytes - at);
        return tab ? (size_t)(tab - text) : bytes;
    }
    enum csv_place place = FIELD_BEGINS;
    for (; at < bytes && (place == QUOTED || text[at] != ','); at++)
        place = csv_next(place, text[at]);
    return at;
}

/* The field's text. Quotes around it go, two of them within become one. */
static int unquote(const char *field, size_t bytes, struct str *out, struct error *err)
{
    str_clear(out);
    if (bytes == 0 || field[0] != '"') {
        str_add_bytes(out, field, bytes);
        return 0;
    }
    size_t at = 1;
    for (; at < bytes; at++) {
        if (field[at] == '"' && !(at + 1 < bytes && field[at + 1] == '"'))
            break;
        at += field[at] == '"';
        str_add_bytes(out, field + at, 1);
    }
    if (at + 1 != bytes)
        return error_set(err, ERR_INPUT, "a field begins with \" but does not end with one: %.*s",
                         bytes < 40 ? (int)bytes : 40, field);
    return 0;
}

static int take_field(const struct columns *columns, size_t column, const char *field, size_t bytes,
                      struct columns_row *row, struct error *err)
{
    struct json_line_text *text = &row->texts[column];
    *text = columns->wanted[column];
    text->text = field;
    text->bytes = bytes;
    if (columns->format != TOKENS_CSV)
        return 0;
    if (unquote(field, bytes, &row->unquoted[column], err) < 0)
        return -1;
    text->text = str_text(&row->unquoted[column]);
    text->bytes = row->unquoted[column].length;
    return 0;
}

static int parse_fields(const struct columns *columns, const char *record, size_t bytes,
                        struct columns_row *row, struct error *err)
{
    size_t found = 0, field = 0;
    /* Up to and including the end: a comma at the end of the record has an empty field behind
     * it. */
    for (size_t at = 0; at <= bytes; field++) {
        size_t end = find_end(columns->format == TOKENS_CSV, record, bytes, at);
        for (size_t i = 0; i < columns->count; i++) {
            if (columns->fields[i] != field)
                continue;
            if (take_field(columns, i, record + at, end - at, row, err) < 0)
                return -1;
            found++;
        }
        at = end + 1;
    }
    if (found < columns->count)
        return error_set(err, ERR_INPUT, "it has only %zu fields, fewer than its file's first line",
                         field);
    if (field > columns->field_count)
        return error_set(err, ERR_INPUT, "it has %zu fields, and its file's first line %zu%s",
                         field, columns->field_count,
                         columns->format == TOKENS_CSV ? ": a text with a comma needs quotes" : "");
    return 0;
}

/* ---- the line of names ---- */

static void list_name(const char *name, size_t bytes, struct str *names)
{
    if (names->length)
        str_add(names, ", ");
    for (size_t i = 0; i < bytes; i++)
        str_add_bytes(names, (unsigned char)name[i] < 0x20 ? " " : name + i, 1);
}

int columns_read_names(struct columns *columns, const char *line, size_t bytes, struct error *err)
{
    bool found[COLUMNS_MAX] = {false};
    auto_str struct str name, names;
    str_init(&name, TEXT_FILE_MAX_LINE_BYTES);
    str_init(&names, NAMES_MAX_BYTES);
    columns->field_count = 0;
    for (size_t at = 0; at <= bytes; columns->field_count++) {
        size_t end = find_end(columns->format == TOKENS_CSV, line, bytes, at);
        str_clear(&name);
        if (columns->format != TOKENS_CSV)
            str_add_bytes(&name, line + at, end - at);
        else if (unquote(line + at, end - at, &name, err) < 0)
            return -1;
        list_name(str_text(&name), name.length, &names);
        for (size_t i = 0; i < columns->count; i++) {
            if (strcmp(columns->wanted[i].column, str_text(&name)) != 0)
                continue;
            if (found[i])
                return error_set(err, ERR_INPUT,
                                 "two columns \"%s\": which of them is meant? Rename one",
                                 str_text(&name));
            columns->fields[i] = columns->field_count;
            found[i] = true;
        }
        at = end + 1;
    }
    for (size_t i = 0; i < columns->count; i++)
        if (!found[i])
            return error_set(err, ERR_INPUT, "no column \"%s\"; it has %s: set %s",
                             columns->wanted[i].column, str_text(&names), columns->wanted[i].key);
    return 0;
}

/* ---- rows ---- */

bool columns_is_open(const char *line, size_t bytes, bool before)
{
    enum csv_place place = before ? QUOTED : FIELD_BEGINS;
    for (size_t i = 0; i < bytes; i++)
        place = csv_next(place, line[i]);
    return place == QUOTED;
}

int columns_parse(const struct columns *columns, const char *record, size_t bytes,
                  struct columns_row *row, struct error *err)
{
    for (size_t i = 0; i < columns->count; i++)
        if (row->unquoted[i].cap == 0)
            str_init(&row->unquoted[i], TEXT_FILE_MAX_LINE_BYTES);
    json_line_free(row->json);
    row->json = NULL;
    if (columns->format == TOKENS_TSV || columns->format == TOKENS_CSV)
        return parse_fields(columns, record, bytes, row, err);
    memcpy(row->texts, columns->wanted, sizeof row->texts);
    if (columns->format == TOKENS_JSONL) {
        row->json = json_line_texts(record, bytes, row->texts, columns->count, err);
        return row->json ? 0 : -1;
    }
    row->texts[0].text = record;
    row->texts[0].bytes = bytes;
    return 0;
}

void columns_row_free(struct columns_row *row)
{
    json_line_free(row->json);
    for (size_t i = 0; i < COLUMNS_MAX; i++)
        str_free(&row->unquoted[i]);
    *row = (struct columns_row){0};
}
