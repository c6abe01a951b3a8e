#include "base/timeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

_Static_assert(sizeof(struct timeline_piece) == 8, "a piece takes 8 bytes");

enum {
    SHORT_MS = 1000,
    SHORT_PART = 10, /* of what lies between two looks */
    FIRST_ROOM = 8,  /* pieces: most jobs have few, and there may be many jobs */
};

void timeline_free(struct timeline *t)
{
    free(t->pieces);
    *t = (struct timeline){.count = 0};
}

static void resize(struct timeline *t, int size)
{
    t->size = size;
    t->pieces = xrealloc(t->pieces, (size_t)size * sizeof *t->pieces);
}

static int64_t end_ms(const struct timeline *t)
{
    return t->count ? t->pieces[t->count - 1].until_ms : 0;
}

static struct timeline_piece piece_of(int64_t until_ms, int kind, bool summed)
{
    return (struct timeline_piece){
        .until_ms = until_ms, .kind = (uint64_t)kind & 0x7f, .summed = summed};
}

static bool is_alike(const struct timeline_piece *a, const struct timeline_piece *b)
{
    return a->kind == b->kind && a->summed == b->summed;
}

static void append(struct timeline *t, struct timeline_piece piece)
{
    if (piece.until_ms <= end_ms(t))
        return;
    if (t->count && is_alike(&t->pieces[t->count - 1], &piece)) {
        t->pieces[t->count - 1] = piece;
        return;
    }
    if (t->count == t->size)
        resize(t, t->size ? 2 * t->size : FIRST_ROOM);
    t->pieces[t->count++] = piece;
}

static int64_t length_ms(const struct timeline *t, int i)
{
    return t->pieces[i].until_ms - (i ? t->pieces[i - 1].until_ms : 0);
}

/* The shortest piece but for the last, which still grows, becomes part of the one before it; the
 * first of the next. What was seen and what is summed up do not become one another. */
static void drop_shortest(struct timeline *t)
{
    struct timeline_piece *pieces = t->pieces;
    int shortest = pieces[0].summed && !pieces[1].summed ? 1 : 0;
    for (int i = shortest + 1; i < t->count - 1; i++)
        if (length_ms(t, i) < length_ms(t, shortest))
            shortest = i;
    if (shortest > 0 && pieces[shortest - 1].summed == pieces[shortest].summed)
        pieces[shortest - 1].until_ms = pieces[shortest].until_ms;
    t->count--;
    memmove(pieces + shortest, pieces + shortest + 1,
            (size_t)(t->count - shortest) * sizeof *pieces);
    /* what is now side by side may be alike */
    if (shortest > 0 && shortest < t->count && is_alike(&pieces[shortest - 1], &pieces[shortest])) {
        memmove(pieces + shortest - 1, pieces + shortest,
                (size_t)(t->count - shortest) * sizeof *pieces);
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

/* Of the account what went by since it was told last. */
static void add(struct timeline *t, const struct timeline_kinds *kinds, const int64_t *ms,
                bool summed)
{
    assert(kinds->count <= TIMELINE_KINDS_MAX);
    int64_t sum_ms = sum_of(ms, kinds->count), gone_ms = sum_ms - sum_of(t->seen_ms, kinds->count);
    if (gone_ms <= 0)
        return;
    int64_t at_ms = end_ms(t), short_ms = t->count == 0 ? SHORT_MS : gone_ms / SHORT_PART;
    int64_t most_ms = 0;
    int last = kinds->order[0]; /* or the longest, if all are short */
    bool is_short = true;
    for (int i = 0; i < kinds->count; i++) {
        int kind = kinds->order[i];
        int64_t more_ms = ms[kind] - t->seen_ms[kind];
        t->seen_ms[kind] = ms[kind];
        if (is_short && more_ms > most_ms) {
            most_ms = more_ms;
            last = kind;
        }
        if (more_ms <= 0 || more_ms < short_ms)
            continue;
        append(t, piece_of(at_ms += more_ms, kind, summed));
        last = kind;
        is_short = false;
    }
    append(t, piece_of(sum_ms, last, summed)); /* what was too short for its own */
    int most = t->most ? t->most : PAGE_SEGMENTS_MAX;
    while (t->count > most)
        drop_shortest(t);
    if (t->size > 2 * most)
        resize(t, 2 * most);
}

void timeline_found(struct timeline *t, const struct timeline_kinds *kinds, const int64_t *ms)
{
    add(t, kinds, ms, true);
}

void timeline_told(struct timeline *t, const struct timeline_kinds *kinds, const int64_t *ms)
{
    add(t, kinds, ms, false);
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
        struct json *piece =
            json_object_of("kind", json_new_text(kinds->name((int)t->pieces[i].kind)), "from",
                           json_new_integer(from_s), "to", json_new_integer(to_s), NULL);
        if (t->pieces[i].summed)
            json_set(piece, "summed", json_new_bool(true));
        json_append(list, piece);
        from_s = to_s;
    }
    return list;
}
