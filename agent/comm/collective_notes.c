#include "agent/comm/collective_notes.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct collective_notes {
    struct collective_note *notes;
    uint64_t added;
    int size;
};

struct collective_notes *collective_notes_open(int size)
{
    struct collective_notes *n = xcalloc(1, sizeof *n);
    n->notes = xcalloc((size_t)size, sizeof *n->notes);
    n->size = size;
    return n;
}

void collective_notes_close(struct collective_notes *n)
{
    if (!n)
        return;
    free(n->notes);
    free(n);
}

static int count(const struct collective_notes *n)
{
    return n->added < (uint64_t)n->size ? (int)n->added : n->size;
}

/* i-th from the last; 0: the last. */
static struct collective_note *from_last(const struct collective_notes *n, int i)
{
    return &n->notes[(n->added - 1 - (uint64_t)i) % (uint64_t)n->size];
}

static struct collective_note *find(const struct collective_notes *n, const char *id,
                                    uint64_t number)
{
    for (int i = 0; i < count(n); i++) {
        struct collective_note *note = from_last(n, i);
        if (note->number == number && strcmp(note->id, id) == 0)
            return note;
    }
    return NULL;
}

void collective_notes_add(struct collective_notes *n, const char *op, const char *id,
                          uint64_t number, int64_t bytes, int64_t now_ms)
{
    struct collective_note *note = &n->notes[n->added++ % (uint64_t)n->size];
    *note = (struct collective_note){
        .op = op, .number = number, .bytes = bytes, .queued_ms = now_ms, .ended_ms = -1};
    snprintf(note->id, sizeof note->id, "%s", id);
}

void collective_notes_end(struct collective_notes *n, const char *id, uint64_t number,
                          int64_t now_ms)
{
    struct collective_note *note = find(n, id, number);
    if (note)
        note->ended_ms = now_ms;
}

const struct collective_note *collective_notes_find(const struct collective_notes *n,
                                                    const char *id, uint64_t number)
{
    return find(n, id, number);
}

/* Whether all that was queued to the communicator before it has ended. */
static bool is_first(const struct collective_notes *n, int i)
{
    const struct collective_note *note = from_last(n, i);
    for (int k = i + 1; k < count(n); k++)
        if (from_last(n, k)->ended_ms < 0 && strcmp(from_last(n, k)->id, note->id) == 0)
            return false;
    return true;
}

void collective_notes_print(const struct collective_notes *n, int most, int64_t now_ms,
                            struct str *out)
{
    for (int i = (most < count(n) ? most : count(n)) - 1; i >= 0; i--) {
        const struct collective_note *note = from_last(n, i);
        str_printf(out, "%s %" PRIu64 " of %s, %" PRId64 " bytes: ", note->op, note->number,
                   note->id, note->bytes);
        if (note->ended_ms >= 0)
            str_printf(out, "ended after %" PRId64 " ms\n", note->ended_ms - note->queued_ms);
        else if (is_first(n, i))
            str_printf(out, "runs for %" PRId64 " ms\n", now_ms - note->queued_ms);
        else
            str_add(out, "waits\n");
    }
}
