#include "agent/dataset/token_split.h"

#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <string.h>

static const char *const training[] = {"train", "training", NULL};
static const char *const validation[] = {"validation", "valid", "val", "dev", "test", "eval", NULL};

/* "", "100" or "10%" */
static bool parse_bound(const char *text, size_t bytes, struct token_bound *bound)
{
    char digits[24];
    *bound = (struct token_bound){.set = bytes > 0};
    if (bytes == 0)
        return true;
    bound->percent = text[bytes - 1] == '%';
    bytes -= bound->percent;
    if (bytes == 0 || bytes >= sizeof digits)
        return false;
    memcpy(digits, text, bytes);
    digits[bytes] = '\0';
    return str_to_i64(digits, 0, bound->percent ? 100 : INT64_MAX, &bound->value);
}

/* What stands between the brackets. */
static bool parse_slice(const char *text, struct token_split *split)
{
    const char *colon = strchr(text, ':'), *close = strchr(text, ']');
    return colon && close && colon < close && close[1] == '\0' &&
           parse_bound(text, (size_t)(colon - text), &split->begin) &&
           parse_bound(colon + 1, (size_t)(close - colon - 1), &split->end);
}

int token_split_parse(const char *text, int64_t max_rows, struct token_split *ret_split,
                      struct error *err)
{
    assert(max_rows >= 0);
    struct token_split split = {.max_rows = max_rows};
    size_t name = strcspn(text, "[");
    if (name == 0 || name >= sizeof split.name || text[strcspn(text, "/*?")] ||
        (text[name] && !parse_slice(text + name + 1, &split)))
        return error_set(err, ERR_CONFIG,
                         "split \"%s\": write a name, or a part of it as name[:1000], name[:10%%] "
                         "or name[90%%:]",
                         text);
    memcpy(split.name, text, name);
    *ret_split = split;
    return 0;
}

static bool is_among(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

int token_split_names(const struct token_split *split, const char *names[TOKEN_SPLIT_MAX_NAMES])
{
    int count = 0;
    names[count++] = split->name;
    const char *const *others = is_among(training, split->name)     ? training
                                : is_among(validation, split->name) ? validation
                                                                    : NULL;
    for (int i = 0; others && others[i]; i++)
        if (strcmp(others[i], split->name) != 0)
            names[count++] = others[i];
    assert(count <= TOKEN_SPLIT_MAX_NAMES);
    return count;
}

bool token_split_is_whole(const struct token_split *split)
{
    return !split->begin.set && !split->end.set && split->max_rows == 0;
}

bool token_split_needs_count(const struct token_split *split)
{
    return split->begin.percent || split->end.percent;
}

/* Hugging Face's datasets rounds by Python's round(), which takes the even one of two neighbours
 * that are equally near: 10% of 25 rows are 2, of 35 they are 4. */
static int64_t percent_row(int64_t percent, int64_t rows)
{
    __int128 hundredths = (__int128)rows * percent;
    int64_t row = (int64_t)(hundredths / 100);
    int rest = (int)(hundredths % 100);
    return row + (rest > 50 || (rest == 50 && row % 2 == 1));
}

static int64_t bound_row(const struct token_bound *bound, int64_t rows)
{
    int64_t row = bound->percent ? percent_row(bound->value, rows) : bound->value;
    return row < rows ? row : rows;
}

void token_split_rows(const struct token_split *split, int64_t rows, int64_t *ret_first,
                      int64_t *ret_end)
{
    assert(rows < INT64_MAX || !token_split_needs_count(split));
    int64_t first = split->begin.set ? bound_row(&split->begin, rows) : 0;
    int64_t end = split->end.set ? bound_row(&split->end, rows) : rows;
    if (end < first)
        end = first;
    if (split->max_rows > 0 && end - first > split->max_rows)
        end = first + split->max_rows;
    *ret_first = first;
    *ret_end = end;
}
