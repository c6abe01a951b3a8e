#include "agent/dataset/flatbuffer.h"

#include <string.h>

static bool read_number(const uint8_t *bytes, size_t size, size_t at, int width, int64_t *ret)
{
    if (at > size || (size_t)width > size - at)
        return false;
    int64_t value = 0;
    memcpy(&value, bytes + at, (size_t)width);
    /* Shifting up and back extends the sign. */
    int unused = 64 - 8 * width;
    *ret = (int64_t)((uint64_t)value << unused) >> unused;
    return true;
}

/* The table that begins at `at`: its first word is how far before it its vtable lies. */
static bool open_table(const uint8_t *bytes, size_t size, size_t at, struct flat_table *ret_table)
{
    int64_t back, vtable_bytes;
    if (!read_number(bytes, size, at, 4, &back))
        return false;
    int64_t vtable = (int64_t)at - back;
    if (vtable < 0 || !read_number(bytes, size, (size_t)vtable, 2, &vtable_bytes))
        return false;
    /* A vtable is uint16s: its own bytes, its table's bytes (4 together), then a place for each
     * field. */
    vtable_bytes &= 0xffff;
    if (vtable_bytes < 4 || (size_t)vtable_bytes > size - (size_t)vtable)
        return false;
    *ret_table = (struct flat_table){.bytes = bytes,
                                     .size = size,
                                     .at = at,
                                     .vtable = (size_t)vtable,
                                     .vtable_bytes = (size_t)vtable_bytes};
    return true;
}

/* An offset is counted from where it stands, and never back. */
static bool follow(const uint8_t *bytes, size_t size, size_t at, size_t *ret_at)
{
    int64_t offset;
    if (!read_number(bytes, size, at, 4, &offset))
        return false;
    *ret_at = at + (uint32_t)offset;
    return *ret_at < size;
}

bool flat_root(const uint8_t *bytes, size_t size, struct flat_table *ret_table)
{
    size_t at;
    return follow(bytes, size, 0, &at) && open_table(bytes, size, at, ret_table);
}

/* Where a field is; 0 if it is not there, which no field ever is at. */
static bool find_field(const struct flat_table *t, int field, size_t *ret_at)
{
    /* Writers cut off a vtable's end if no field there is set, so a short one is no error. */
    size_t slot = 4 + 2 * (size_t)field;
    *ret_at = 0;
    if (slot + 2 > t->vtable_bytes)
        return true;
    int64_t offset;
    if (!read_number(t->bytes, t->size, t->vtable + slot, 2, &offset))
        return false;
    if (offset != 0)
        *ret_at = t->at + (uint16_t)offset;
    return *ret_at < t->size;
}

bool flat_number(const struct flat_table *table, int field, int bytes, int64_t absent,
                 int64_t *ret_number)
{
    size_t at;
    if (!find_field(table, field, &at))
        return false;
    if (at != 0)
        return read_number(table->bytes, table->size, at, bytes, ret_number);
    *ret_number = absent;
    return true;
}

bool flat_table(const struct flat_table *table, int field, struct flat_table *ret_table)
{
    size_t at;
    *ret_table = (struct flat_table){0};
    if (!find_field(table, field, &at))
        return false;
    return at == 0 || (follow(table->bytes, table->size, at, &at) &&
                       open_table(table->bytes, table->size, at, ret_table));
}

bool flat_vector(const struct flat_table *table, int field, size_t item_bytes,
                 struct flat_vector *ret_vector)
{
    size_t at;
    int64_t count;
    *ret_vector = (struct flat_vector){0};
    if (!find_field(table, field, &at))
        return false;
    if (at == 0)
        return true;
    if (!follow(table->bytes, table->size, at, &at) ||
        !read_number(table->bytes, table->size, at, 4, &count))
        return false;
    size_t items = (uint32_t)count;
    if (items > (table->size - at - 4) / item_bytes)
        return false;
    *ret_vector = (struct flat_vector){.items = table->bytes + at + 4, .count = items};
    return true;
}

bool flat_item(const struct flat_table *table, const struct flat_vector *vector, size_t i,
               struct flat_table *ret_table)
{
    size_t at;
    return i < vector->count &&
           follow(table->bytes, table->size, (size_t)(vector->items - table->bytes) + 4 * i, &at) &&
           open_table(table->bytes, table->size, at, ret_table);
}
