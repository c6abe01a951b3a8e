#include "agent/dataset/token_rows.h"

#include "agent/dataset/sampler.h"
#include "agent/dataset/text_file.h"
#include "agent/dataset/token_source.h"
#include "base/mem.h"
#include "kernels/random.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    size_t begin, bytes; /* in the block's text */
    const char *path;
    int64_t line;
    bool too_long;
};

struct token_rows {
    struct token_rows_options o;
    int64_t first_row, end_row; /* of the split */
    int64_t *files;             /* [count] the epoch's order */
    int64_t epoch;
    struct token_position block; /* the one in memory */
    struct token_position next;  /* the one behind it */
    struct text_file *file;      /* at next's position; NULL: not open */
    char *text;                  /* of the block's rows */
    size_t text_bytes, text_capacity;
    struct entry *entries; /* [entry_capacity] */
    int64_t *order;        /* [entry_capacity] */
    int64_t entry_count, entry_capacity;
    int64_t document; /* the next one of the block's order */
};

static void add_text(struct token_rows *r, const char *text, size_t bytes)
{
    if (r->text_bytes + bytes > r->text_capacity) {
        r->text_capacity = 2 * (r->text_bytes + bytes);
        r->text = xrealloc(r->text, r->text_capacity);
    }
    memcpy(r->text + r->text_bytes, text, bytes);
    r->text_bytes += bytes;
}

static struct entry *add_entry(struct token_rows *r, const char *path, int64_t line)
{
    if (r->entry_count == r->entry_capacity) {
        r->entry_capacity = r->entry_capacity ? 2 * r->entry_capacity : 64;
        r->entries = xrealloc(r->entries, (size_t)r->entry_capacity * sizeof *r->entries);
        r->order = xrealloc(r->order, (size_t)r->entry_capacity * sizeof *r->order);
    }
    struct entry *entry = &r->entries[r->entry_count++];
    *entry = (struct entry){.begin = r->text_bytes, .path = path, .line = line};
    return entry;
}

/* Opens the file that the next row is in, or the one after it; false: there is none. */
static int open_file(struct token_rows *r, bool *ret_open, struct error *err)
{
    *ret_open = r->file != NULL;
    if (r->file || r->next.file >= r->o.count)
        return 0;
    const char *path = r->o.paths[r->files[r->next.file]];
    *ret_open = true;
    return text_file_open(path, r->next.offset, r->next.line, &r->file, err);
}

static void leave_file(struct token_rows *r)
{
    text_file_close(take(r->file));
    r->next.file++;
    r->next.offset = r->next.line = 0;
}

/* The lines of a paragraph behind its first, up to a blank one. */
static int read_paragraph(struct token_rows *r, struct entry *entry, struct error *err)
{
    struct text_line line;
    bool end = false;
    while (r->text_bytes - entry->begin < TOKEN_ROWS_PARAGRAPH_BYTES) {
        if (text_file_next(r->file, &line, &end, err) < 0)
            return -1;
        if (end || text_line_is_blank(&line))
            break;
        entry->too_long |= line.too_long;
        add_text(r, "\n", 1);
        add_text(r, line.text, line.bytes);
    }
    return 0;
}

/* Reads the next row into the block; *ret_end: there is none. */
static int read_row(struct token_rows *r, bool *ret_end, struct error *err)
{
    struct text_line line;
    bool open, end;
    for (;;) {
        if (open_file(r, &open, err) < 0)
            return -1;
        *ret_end = !open;
        if (!open)
            return 0;
        if (text_file_next(r->file, &line, &end, err) < 0)
            return -1;
        if (!end && !text_line_is_blank(&line))
            break;
        if (end)
            leave_file(r);
    }
    struct entry *entry = add_entry(r, r->o.paths[r->files[r->next.file]], line.number);
    entry->too_long = line.too_long;
    add_text(r, line.text, line.bytes);
    if (r->o.paragraphs && read_paragraph(r, entry, err) < 0)
        return -1;
    entry->bytes = r->text_bytes - entry->begin;
    r->next.offset = text_file_offset(r->file);
    r->next.line = text_file_lines(r->file);
    return 0;
}

static void clear_block(struct token_rows *r)
{
    r->entry_count = 0;
    r->text_bytes = 0;
}

static void shuffle_block(struct token_rows *r)
{
    for (int64_t i = 0; i < r->entry_count; i++)
        r->order[i] = i;
    /* 0xb10c, like 0xf11e for files, keeps this use of the seed apart from the others. */
    if (r->o.shuffle && r->entry_count > 0)
        sampler_permute(r->entry_count, random_key(r->o.seed, (uint64_t)r->block.block, 0xb10c, 0),
                        (uint64_t)r->epoch, r->order);
}

/* Reads the next block; it has no rows at the epoch's end. */
static int read_block(struct token_rows *r, struct error *err)
{
    bool end = false;
    clear_block(r);
    while (r->next.row < r->first_row && !end) { /* before the split's part */
        if (read_row(r, &end, err) < 0)
            return -1;
        r->next.row += !end;
        clear_block(r);
    }
    r->block = r->next;
    r->document = 0;
    while (!end && r->entry_count < r->o.block_rows && r->next.row < r->end_row &&
           r->text_bytes < TOKENS_MAX_BLOCK_BYTES) {
        if (read_row(r, &end, err) < 0)
            return -1;
        r->next.row += !end;
    }
    r->next.block++;
    shuffle_block(r);
    return 0;
}

static int count_rows(struct token_rows *r, int64_t *ret_rows, struct error *err)
{
    bool end = false;
    *ret_rows = -1;
    while (!end) {
        clear_block(r);
        if (read_row(r, &end, err) < 0)
            return -1;
        ++*ret_rows;
    }
    return 0;
}

int token_rows_seek(struct token_rows *rows, const struct token_position *position,
                    struct error *err)
{
    text_file_close(take(rows->file));
    rows->epoch = position->epoch;
    for (int i = 0; i < rows->o.count; i++)
        rows->files[i] = i;
    if (rows->o.shuffle && token_split_is_whole(rows->o.split))
        sampler_permute(rows->o.count, random_key(rows->o.seed, 0, 0xf11e, 0),
                        (uint64_t)position->epoch, rows->files);
    rows->next = *position;
    if (read_block(rows, err) < 0)
        return -1;
    if (position->document > rows->entry_count)
        return error_set(err, ERR_INPUT,
                         "the position is row %lld of a block of %lld: the files have changed",
                         (long long)position->document, (long long)rows->entry_count);
    rows->document = position->document;
    return 0;
}

int token_rows_next(struct token_rows *rows, struct token_row *ret_row, bool *ret_end,
                    struct error *err)
{
    if (rows->document == rows->entry_count && rows->entry_count > 0 && read_block(rows, err) < 0)
        return -1;
    *ret_end = rows->document == rows->entry_count;
    if (*ret_end)
        return 0;
    const struct entry *entry = &rows->entries[rows->order[rows->document]];
    *ret_row = (struct token_row){.text = rows->text + entry->begin,
                                  .bytes = entry->bytes,
                                  .path = entry->path,
                                  .line = entry->line,
                                  .too_long = entry->too_long,
                                  .position = rows->block};
    ret_row->position.document = rows->document++;
    return 0;
}

int token_rows_open(const struct token_rows_options *options, struct token_rows **ret_rows,
                    struct error *err)
{
    assert(options->count >= 1 && options->block_rows >= 1);
    struct token_rows *r = xcalloc(1, sizeof *r);
    r->o = *options;
    r->files = xcalloc((size_t)options->count, sizeof *r->files);
    for (int i = 0; i < options->count; i++)
        r->files[i] = i;
    int64_t rows = INT64_MAX;
    if (token_split_needs_count(options->split) && count_rows(r, &rows, err) < 0) {
        token_rows_close(r);
        return -1;
    }
    token_split_rows(options->split, rows, &r->first_row, &r->end_row);
    *ret_rows = r;
    return 0;
}

void token_rows_close(struct token_rows *rows)
{
    if (!rows)
        return;
    text_file_close(rows->file);
    free(rows->files);
    free(rows->text);
    free(rows->entries);
    free(rows->order);
    free(rows);
}
