#include "agent/comm/flight_recorder.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct flight_recorder {
    struct flight_record *records;
    uint64_t added;
    int size;
};

struct flight_recorder *flight_recorder_open(int size)
{
    struct flight_recorder *n = xcalloc(1, sizeof *n);
    n->records = xcalloc((size_t)size, sizeof *n->records);
    n->size = size;
    return n;
}

void flight_recorder_close(struct flight_recorder *n)
{
    if (!n)
        return;
    free(n->records);
    free(n);
}

static int count(const struct flight_recorder *n)
{
    return n->added < (uint64_t)n->size ? (int)n->added : n->size;
}

/* i-th from the last; 0: the last. */
static struct flight_record *from_last(const struct flight_recorder *n, int i)
{
    return &n->records[(n->added - 1 - (uint64_t)i) % (uint64_t)n->size];
}

static struct flight_record *find(const struct flight_recorder *n, const char *id, uint64_t number)
{
    for (int i = 0; i < count(n); i++) {
        struct flight_record *record = from_last(n, i);
        if (record->number == number && strcmp(record->id, id) == 0)
            return record;
    }
    return NULL;
}

void flight_recorder_add(struct flight_recorder *n, const char *op, const char *id, uint64_t number,
                         int64_t bytes, int64_t now_ms)
{
    struct flight_record *record = &n->records[n->added++ % (uint64_t)n->size];
    *record = (struct flight_record){
        .op = op, .number = number, .bytes = bytes, .queued_ms = now_ms, .ended_ms = -1};
    snprintf(record->id, sizeof record->id, "%s", id);
}

void flight_recorder_end(struct flight_recorder *n, const char *id, uint64_t number, int64_t now_ms)
{
    struct flight_record *record = find(n, id, number);
    if (record)
        record->ended_ms = now_ms;
}

const struct flight_record *flight_recorder_find(const struct flight_recorder *n, const char *id,
                                                 uint64_t number)
{
    return find(n, id, number);
}

/* Whether all that was queued to the communicator before it has ended. */
static bool is_first(const struct flight_recorder *n, int i)
{
    const struct flight_record *record = from_last(n, i);
    for (int k = i + 1; k < count(n); k++)
        if (from_last(n, k)->ended_ms < 0 && strcmp(from_last(n, k)->id, record->id) == 0)
            return false;
    return true;
}

void flight_recorder_print(const struct flight_recorder *n, int most, int64_t now_ms,
                           struct str *out)
{
    for (int i = (most < count(n) ? most : count(n)) - 1; i >= 0; i--) {
        const struct flight_record *record = from_last(n, i);
        str_printf(out, "%s %" PRIu64 " of %s, %" PRId64 " bytes: ", record->op, record->number,
                   record->id, record->bytes);
        if (record->ended_ms >= 0)
            str_printf(out, "ended after %" PRId64 " ms\n", record->ended_ms - record->queued_ms);
        else if (is_first(n, i))
            str_printf(out, "runs for %" PRId64 " ms\n", now_ms - record->queued_ms);
        else
            str_add(out, "waits\n");
    }
}
