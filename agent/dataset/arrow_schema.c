#include "agent/dataset/arrow_schema.h"

#include "base/str.h"

#include <assert.h>
#include <string.h>

/* Fields of the tables in Arrow's format/Schema.fbs. */
enum { SCHEMA_ENDIANNESS = 0, SCHEMA_FIELDS = 1 };
enum {
    FIELD_NAME = 0,
    FIELD_TYPE_TYPE = 2,
    FIELD_TYPE = 3,
    FIELD_DICTIONARY = 4,
    FIELD_CHILDREN = 5
};
enum { INT_BITS = 0, INT_SIGNED = 1 };
enum { TYPE_INT = 2, TYPE_LIST = 12, TYPE_LARGE_LIST = 21 };
enum { MAX_DEPTH = 16, MAX_NODES = 65536, NAME_MAX_BYTES = 64, NAMES_MAX_BYTES = 200 };

/* The buffers that a type's own values take, its children's aside; 0 as a name: not known. */
static const struct {
    const char *name;
    int buffers;
} types[] = {
    [1] = {"null", 0},
    [2] = {"int", 2},
    [3] = {"float", 2},
    [4] = {"binary", 3},
    [5] = {"string", 3},
    [6] = {"bool", 2},
    [7] = {"decimal", 2},
    [8] = {"date", 2},
    [9] = {"time", 2},
    [10] = {"timestamp", 2},
    [11] = {"interval", 2},
    [12] = {"list", 2},
    [13] = {"struct", 1},
    [15] = {"fixed-size binary", 2},
    [16] = {"fixed-size list", 1},
    [17] = {"map", 2},
    [18] = {"duration", 2},
    [19] = {"large binary", 3},
    [20] = {"large string", 3},
    [21] = {"large list", 2},
};
enum { DICTIONARY_INDEX_BUFFERS = 2 };

struct walk {
    const char *file;
    struct arrow_schema *schema;
    struct error *err;
};

static int damaged(const struct walk *w)
{
    return error_set(w->err, ERR_INPUT, "%s: offset 0: the schema is damaged", w->file);
}

static int64_t type_of(const struct flat_table *field)
{
    int64_t type;
    return flat_number(field, FIELD_TYPE_TYPE, 1, 0, &type) ? type : -1;
}

static bool is_known(int64_t type)
{
    return type > 0 && type < (int64_t)array_length(types) && types[type].name;
}

static int name_of(const struct flat_table *field, char out[NAME_MAX_BYTES])
{
    struct flat_vector text;
    if (!flat_vector(field, FIELD_NAME, 1, &text))
        return -1;
    size_t bytes = text.count < NAME_MAX_BYTES - 1 ? text.count : NAME_MAX_BYTES - 1;
    for (size_t i = 0; i < bytes; i++) /* it goes into messages */
        out[i] = text.items[i] < 0x20 || text.items[i] == 0x7f ? '?' : (char)text.items[i];
    out[bytes] = '\0';
    return 0;
}

/* Counts a field's nodes and buffers and those below it. */
static int count_field(const struct walk *w, const struct flat_table *field, int depth)
{
    struct flat_table dictionary;
    struct flat_vector children;
    int64_t type = type_of(field);
    if (depth > MAX_DEPTH || w->schema->nodes >= MAX_NODES ||
        !flat_table(field, FIELD_DICTIONARY, &dictionary) ||
        !flat_vector(field, FIELD_CHILDREN, 4, &children))
        return damaged(w);
    if (!is_known(type))
        return error_set(w->err, ERR_UNSUPPORTED,
                         "%s: a column is of Arrow's type %lld, which is not read: remove it",
                         w->file, (long long)type);
    w->schema->nodes++;
    if (dictionary.bytes) { /* here are only the indices; the values are in other messages */
        w->schema->buffers += DICTIONARY_INDEX_BUFFERS;
        return 0;
    }
    w->schema->buffers += (size_t)types[type].buffers;
    for (size_t i = 0; i < children.count; i++) {
        struct flat_table child;
        if (!flat_item(field, &children, i, &child))
            return damaged(w);
        if (count_field(w, &child, depth + 1) < 0)
            return -1;
    }
    return 0;
}

static int decode_values(const struct walk *w, const struct flat_table *child,
                         struct arrow_column *column, const char *name)
{
    struct flat_table type;
    int64_t bits, is_signed;
    if (!flat_table(child, FIELD_TYPE, &type))
        return damaged(w);
    if (type_of(child) != TYPE_INT || !type.bytes)
        return error_set(w->err, ERR_INPUT,
                         "%s: column %s is a list of %s; lists of integers are needed", w->file,
                         name, is_known(type_of(child)) ? types[type_of(child)].name : "something");
    if (!flat_number(&type, INT_BITS, 4, 0, &bits) ||
        !flat_number(&type, INT_SIGNED, 1, 0, &is_signed))
        return damaged(w);
    int width = 0;
    while (width < 4 && 8 << width != bits)
        width++;
    if (width == 4)
        return damaged(w);
    /* enum id_type has unsigned and signed of each width in this order. */
    column->type = (enum id_type)(2 * width + (is_signed != 0));
    return 0;
}

static int decode_column(const struct walk *w, const struct flat_table *field, const char *name,
                         struct arrow_column *column)
{
    struct flat_table dictionary, child;
    struct flat_vector children;
    int64_t type = type_of(field);
    if (!flat_table(field, FIELD_DICTIONARY, &dictionary) ||
        !flat_vector(field, FIELD_CHILDREN, 4, &children))
        return damaged(w);
    if ((type != TYPE_LIST && type != TYPE_LARGE_LIST) || dictionary.bytes)
        return error_set(w->err, ERR_INPUT,
                         "%s: column %s is of type %s; a list of integers is needed", w->file, name,
                         dictionary.bytes ? "dictionary"
                         : is_known(type) ? types[type].name
                                          : "unknown");
    if (children.count != 1 || !flat_item(field, &children, 0, &child))
        return damaged(w);
    column->there = true;
    column->large = type == TYPE_LARGE_LIST;
    /* A record batch lists its nodes and buffers flat, in depth-first order of the schema: a column
     * is found by counting those of all columns before it. */
    column->node = w->schema->nodes;
    column->buffer = w->schema->buffers;
    return decode_values(w, &child, column, name);
}

static int check_wanted(const struct walk *w, const struct arrow_request *wanted, int wanted_count,
                        const struct str *names)
{
    for (int i = 0; i < wanted_count; i++)
        if (!w->schema->columns[i].there && !wanted[i].optional)
            return error_set(w->err, ERR_INPUT,
                             "%s has no column %s; it has %s: tokenize the data set first", w->file,
                             wanted[i].column, str_text(names));
    return 0;
}

int arrow_schema_parse(const char *name, const struct flat_table *table,
                       const struct arrow_request *wanted, int wanted_count,
                       struct arrow_schema *ret_schema, struct error *err)
{
    assert(wanted_count <= ARROW_MAX_COLUMNS);
    struct arrow_schema schema = {0};
    const struct walk w = {.file = name, .schema = &schema, .err = err};
    struct flat_vector fields;
    auto_str struct str names;
    str_init(&names, NAMES_MAX_BYTES);
    int64_t big_endian;
    if (!flat_number(table, SCHEMA_ENDIANNESS, 2, 0, &big_endian) ||
        !flat_vector(table, SCHEMA_FIELDS, 4, &fields))
        return damaged(&w);
    if (big_endian)
        return error_set(err, ERR_UNSUPPORTED, "%s: big-endian numbers are not read", name);
    for (size_t i = 0; i < fields.count; i++) {
        struct flat_table field;
        char column[NAME_MAX_BYTES];
        if (!flat_item(table, &fields, i, &field) || name_of(&field, column) < 0)
            return damaged(&w);
        str_printf(&names, "%s%s", i ? ", " : "", column);
        for (int k = 0; k < wanted_count; k++)
            if (strcmp(wanted[k].column, column) == 0 &&
                decode_column(&w, &field, column, &schema.columns[k]) < 0)
                return -1;
        /* Fields that nobody wants count, too: a batch lists the buffers of all of them in
         * order. */
        if (count_field(&w, &field, 0) < 0)
            return -1;
    }
    if (check_wanted(&w, wanted, wanted_count, &names) < 0)
        return -1;
    *ret_schema = schema;
    return 0;
}
