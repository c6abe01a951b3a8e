#include "base/timeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

enum {
    SHORT_MS = 1000,
    SHORT_PART = 10,                                   /* of what lies between two looks */
    ROOM = PAGE_SEGMENTS_MAX + 2 * TIMELINE_KINDS_MAX, /* one look adds so many at most */
};

void timeline_free(struct timeline *t)
{
    free(t->pieces);
    *t = (struct timeline){.count = 0};
}

static int64_t end_ms(const struct timeline *t)
{
    return t->count ? t->pieces[t->count - 1].until_ms : 0;
}

static void append(struct timeline *t, int kind, int64_t until_ms)
{
    if (until_ms <= end_ms(t))
        return;
    if (t->count && t->pieces[t->count - 1].kind == kind)
        t->pieces[t->count - 1].until_ms = until_ms;
    else
        t->pieces[t->count++] = (struct timeline_piece){until_ms, kind};
}

static int64_t length_ms(const struct timeline *t, int i)
{
    return t->pieces[i].until_ms - (i ? t->pieces[i - 1].until_ms : 0);
}

/* The shortest piece but for the last, which still grows, becomes part of the one before it; the
 * first of the next. */
static void drop_shortest(struct timeline *t)
{
    int shortest = 0;
    for (int i = 1; i < t->count - 1; i++)
        if (length_ms(t, i) < length_ms(t, shortest))
            shortest = i;
    if (shortest > 0)
        t->pieces[shortest - 1].until_ms = t->pieces[shortest].until_ms;
    t->count--;
    memmove(t->pieces + shortest, t->pieces + shortest + 1,
            (size_t)(t->count - shortest) * sizeof *t->pieces);
    /* what is now side by side may be of one kind */
    if (shortest > 0 && shortest < t->count &&
        t->pieces[shortest - 1].kind == t->pieces[shortest].kind) {
        memmove(t->pieces + shortest - 1, t->pieces + shortest,
                (size_t)(t->count - shortest) * sizeof *t->pieces);
        t->count--;
    }
}

static int64_t sum_of(const int64_t *ms, int count)
{
    int64_t sum = 0;
    for (int kind = 0; kind < count; kind++)
        sum += ms[kind];
    return sum;
}

void timeline_told(struct timeline *t, const struct timeline_kinds *kinds, const int64_t *ms)
{
    assert(kinds->count <= TIMELINE_KINDS_MAX);
    int64_t sum_ms = sum_of(ms, kinds->count), gone_ms = sum_ms - sum_of(t->seen_ms, kinds->count);
    if (gone_ms <= 0)
        return;
    if (!t->pieces)
        t->pieces = xcalloc(ROOM, sizeof *t->pieces);
    int64_t at_ms = end_ms(t), short_ms = t->count == 0 ? SHORT_MS : gone_ms / SHORT_PART;
    int last = kinds->order[kinds->count - 1];
    for (int i = 0; i < kinds->count; i++) {
        int kind = kinds->order[i];
        int64_t more_ms = ms[kind] - t->seen_ms[kind];
        t->seen_ms[kind] = ms[kind];
        if (more_ms <= 0 || more_ms < short_ms)
            continue;
        append(t, kind, at_ms += more_ms);
        last = kind;
    }
    append(t, last, sum_ms); /* what was too short for a piece of its own */
    while (t->count > PAGE_SEGMENTS_MAX)
        drop_shortest(t);
}

struct json *timeline_json(const struct timeline *t, const struct timeline_kinds *kinds,
                           int64_t begin_ms)
{
    if (t->count == 0)
        return NULL;
    struct json *list = json_new_array();
    int64_t from_s = begin_ms / 1000;
    for (int i = 0; i < t->count; i++) {
        int64_t to_s = (begin_ms + t->pieces[i].until_ms) / 1000;
        json_append(list,
                    json_object_of("kind", json_new_text(kinds->name(t->pieces[i].kind)), "from",
                                   json_new_integer(from_s), "to", json_new_integer(to_s), NULL));
        from_s = to_s;
    }
    return list;
}
