#include "base/schedule.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

enum { FIRST_ROOM = 64 };

static bool is_before(const struct schedule_entry *a, const struct schedule_entry *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->serial < b->serial;
}

static struct schedule_entry *at(const struct schedule *s, size_t place)
{
    return s->entries[place - 1];
}

static void set(struct schedule *s, size_t place, struct schedule_entry *entry)
{
    s->entries[place - 1] = entry;
    entry->place = place;
}

static void rise(struct schedule *s, struct schedule_entry *entry)
{
    size_t place = entry->place;
    for (; place > 1 && is_before(entry, at(s, place / 2)); place /= 2)
        set(s, place, at(s, place / 2));
    set(s, place, entry);
}

static void sink(struct schedule *s, struct schedule_entry *entry)
{
    size_t place = entry->place;
    for (size_t child; (child = 2 * place) <= s->count; place = child) {
        if (child < s->count && is_before(at(s, child + 1), at(s, child)))
            child++;
        if (!is_before(at(s, child), entry))
            break;
        set(s, place, at(s, child));
    }
    set(s, place, entry);
}

void schedule_free(struct schedule *s)
{
    free(s->entries);
    *s = (struct schedule){.count = 0};
}

bool schedule_waits(const struct schedule_entry *entry)
{
    return entry->place != 0;
}

void schedule_add(struct schedule *s, struct schedule_entry *entry, int64_t at_ms)
{
    assert(!schedule_waits(entry));
    if (s->count == s->size) {
        s->size = s->size ? 2 * s->size : FIRST_ROOM;
        s->entries = xrealloc(s->entries, s->size * sizeof(struct schedule_entry *));
    }
    *entry = (struct schedule_entry){.at_ms = at_ms, .serial = s->serial++, .place = ++s->count};
    rise(s, entry);
}

void schedule_remove(struct schedule *s, struct schedule_entry *entry)
{
    assert(schedule_waits(entry));
    size_t place = entry->place;
    struct schedule_entry *last = at(s, s->count--);
    entry->place = 0;
    if (last == entry)
        return;
    set(s, place, last);
    /* The last one may belong above or below the gap; one of the two does nothing. */
    rise(s, last);
    sink(s, last);
}

struct schedule_entry *schedule_first(const struct schedule *s)
{
    return s->count ? at(s, 1) : NULL;
}

int64_t schedule_due(const struct schedule *s)
{
    return s->count ? at(s, 1)->at_ms : INT64_MAX;
}
