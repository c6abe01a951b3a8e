#include "agent/checkpoint/memory_snapshot.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <xxhash.h>

enum { PAGE = 4096, VERSION = 6 };
#define HEAD_MAGIC UINT64_C(0x444145484c414853) /* "SHALHEAD" */
#define MAGIC      UINT64_C(0x314d454d4c414853) /* "SHALMEM1" */
#define COMPLETE   UINT64_C(0x4554454c504d4f43)

/* The memory's first page. */
struct head {
    uint64_t magic;
    uint64_t version;
    int64_t payload_bytes;
    _Atomic int64_t last_step;
    _Atomic int64_t is_used; /* a snapshot was completed */
    int64_t ended_after;     /* the last step at the end before this one; -1: none was counted */
    int64_t ends;            /* in a row after that step */
    int64_t was_asked;       /* the end that comes, or has come, is none of these */
    _Atomic int64_t begun_step;
    struct memory_neighbours neighbours;
};

/* A slot's first page. */
struct header {
    uint64_t magic;
    uint64_t version;
    struct memory_snapshot_id id;
    int64_t step;
    int64_t bytes;
    uint64_t payload_xxh3;
    uint64_t header_xxh3; /* of all before it */
    _Atomic uint64_t complete;
};
_Static_assert(sizeof(struct head) <= PAGE && sizeof(struct header) <= PAGE, "a page each");

static int64_t slot_bytes(int64_t payload_bytes)
{
    return PAGE + (payload_bytes + PAGE - 1) / PAGE * PAGE;
}

int64_t memory_snapshot_bytes(int64_t payload_bytes)
{
    return PAGE + MEMORY_SNAPSHOT_SLOTS * slot_bytes(payload_bytes);
}

static struct head *head_of(const struct memory_snapshots *s)
{
    return (struct head *)(void *)s->memory;
}

static struct header *header_of(const struct memory_snapshots *s, int slot)
{
    return (struct header *)(void *)(s->memory + PAGE + slot * slot_bytes(s->payload_bytes));
}

void *memory_snapshot_payload(const struct memory_snapshots *s, int slot)
{
    return (char *)header_of(s, slot) + PAGE;
}

static void forget(struct memory_snapshots *s, int slot)
{
    /* Ordered before all that is written to the slot next. */
    atomic_exchange(&header_of(s, slot)->complete, 0);
}

void memory_snapshot_open(void *memory, int64_t payload_bytes, const struct memory_snapshot_id *id,
                          struct memory_snapshots *ret_snapshots)
{
    *ret_snapshots = (struct memory_snapshots){
        .memory = memory, .payload_bytes = payload_bytes, .id = *id, .newest = -1};
    struct head *head = head_of(ret_snapshots);
    if (head->magic == HEAD_MAGIC && head->version == VERSION &&
        head->payload_bytes == payload_bytes)
        return;
    if (head->magic == HEAD_MAGIC && head->version == VERSION && atomic_load(&head->is_used))
        ret_snapshots->passed_over_bytes = head->payload_bytes;
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++)
        forget(ret_snapshots, slot);
    head->magic = HEAD_MAGIC;
    head->version = VERSION;
    head->payload_bytes = payload_bytes;
    atomic_store(&head->last_step, -1);
    atomic_store(&head->begun_step, -1);
    atomic_store(&head->is_used, 0);
    head->neighbours = (struct memory_neighbours){0};
    memory_snapshot_forget_ends(ret_snapshots);
}

static uint64_t hash_header(const struct header *h)
{
    return XXH3_64bits(h, offsetof(struct header, header_xxh3));
}

static int check_owner(const struct memory_snapshot_id *its, const struct memory_snapshot_id *mine,
                       struct error *err)
{
    if (strcmp(its->program, mine->program) != 0)
        return error_set(err, ERR_CONFLICT, "it was saved by version %.31s, and this is %s",
                         its->program, mine->program);
    if (strcmp(its->run, mine->run) != 0)
        return error_set(err, ERR_CONFLICT, "it is of run %.63s, and this is %s", its->run,
                         mine->run);
    if (its->world_size != mine->world_size || its->rank != mine->rank)
        return error_set(err, ERR_CONFLICT, "it is of rank %d of %d, and this is rank %d of %d",
                         its->rank, its->world_size, mine->rank, mine->world_size);
    if (its->layout != mine->layout)
        return error_set(err, ERR_CONFLICT, "it is of another model, optimizer or strategy");
    return 0;
}

static int check_header(struct header *h, struct error *err)
{
    if (atomic_load(&h->complete) != COMPLETE)
        return error_set(err, ERR_INPUT, "its mark \"complete\" is damaged");
    if (h->magic != MAGIC)
        return error_set(err, ERR_INPUT, "its magic number is damaged");
    if (h->version != VERSION)
        return error_set(err, ERR_CONFLICT, "it has format %llu, and this program knows %d",
                         (unsigned long long)h->version, VERSION);
    if (h->header_xxh3 != hash_header(h))
        return error_set(err, ERR_INPUT, "its header is damaged");
    return 0;
}

static int check_payload(const struct header *h, int64_t most, bool whole, struct error *err)
{
    if (h->step < 0 || h->bytes < 0 || h->bytes > most)
        return error_set(err, ERR_INPUT, "its step or size cannot be");
    const void *payload = (const char *)h + PAGE;
    if (whole && h->payload_xxh3 != XXH3_64bits(payload, (size_t)h->bytes))
        return error_set(err, ERR_INPUT, "its payload is damaged");
    return 0;
}

int memory_snapshot_read(const struct memory_snapshots *s, int slot,
                         struct memory_snapshot *ret_snapshot, struct error *err)
{
    struct header *h = header_of(s, slot);
    uint64_t complete = atomic_load_explicit(&h->complete, memory_order_acquire);
    if (complete == 0 && s->passed_over_bytes > 0)
        return error_set(
            err, ERR_CONFLICT,
            "it is of another model, optimizer, strategy or number of ranks, of %lld bytes and not "
            "%lld",
            (long long)s->passed_over_bytes, (long long)s->payload_bytes);
    if (complete == 0)
        return error_set(err, ERR_NOT_FOUND, "it is not complete");
    if (check_header(h, err) || check_owner(&h->id, &s->id, err) ||
        check_payload(h, s->payload_bytes, true, err))
        return -1;
    *ret_snapshot = (struct memory_snapshot){h->step, memory_snapshot_payload(s, slot), h->bytes};
    return 0;
}

/* Where the next rank's slots begin, from `at` on; -1: there are none. */
static int64_t find_head(const char *memory, int64_t bytes, int64_t at)
{
    for (; at + memory_snapshot_bytes(0) <= bytes; at += PAGE) {
        const struct head *head = (const struct head *)(const void *)(memory + at);
        const int64_t most = bytes - at, payload = head->payload_bytes;
        if (head->magic == HEAD_MAGIC && head->version == VERSION && payload >= 0 &&
            payload <= most && memory_snapshot_bytes(payload) <= most)
            return at;
    }
    return -1;
}

int memory_snapshot_scan(const void *memory, int64_t bytes, bool checks,
                         struct memory_snapshot_entry *entries, int most,
                         struct memory_snapshot_seen *ret_seen)
{
    int64_t at = 0;
    int count = 0;
    struct error ignored;
    *ret_seen = (struct memory_snapshot_seen){.last_step = -1};
    for (int owner = 0; (at = find_head(memory, bytes, at)) >= 0; owner++) {
        char *const found = (char *)memory + at;
        const struct head *head = (const struct head *)(const void *)found;
        struct memory_snapshots s = {.memory = found, .payload_bytes = head->payload_bytes};
        const int64_t begin = at, last_step = memory_snapshot_last_step(&s);
        at += memory_snapshot_bytes(s.payload_bytes);
        if (owner == 0) {
            ret_seen->begin = begin;
            ret_seen->neighbours = head->neighbours;
        }
        if (last_step > ret_seen->last_step)
            ret_seen->last_step = last_step;
        for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS && count < most; slot++) {
            struct header *h = header_of(&s, slot);
            if (check_header(h, &ignored) || check_payload(h, s.payload_bytes, checks, &ignored))
                continue;
            entries[count++] =
                (struct memory_snapshot_entry){.owner = owner,
                                               .begin = begin,
                                               .end = at,
                                               .id = h->id,
                                               .snapshot = {h->step, (char *)h + PAGE, h->bytes}};
        }
    }
    return count;
}

void memory_snapshot_keep(struct memory_snapshots *s, int newest, int older)
{
    for (int i = 0; i < MEMORY_SNAPSHOT_SLOTS; i++)
        if (i != newest && i != older)
            forget(s, i);
    s->newest = newest >= 0 ? newest : older;
    s->passed_over_bytes = 0;
}

void *memory_snapshot_begin(struct memory_snapshots *s, int *ret_slot)
{
    *ret_slot = s->newest == 0 ? 1 : 0;
    forget(s, *ret_slot);
    return memory_snapshot_payload(s, *ret_slot);
}

void memory_snapshot_commit(struct memory_snapshots *s, int64_t step, int64_t bytes)
{
    assert(step >= 0 && bytes >= 0 && bytes <= s->payload_bytes);
    int slot = s->newest == 0 ? 1 : 0;
    struct header *h = header_of(s, slot);
    /* Also what lies between the fields: it is hashed. */
    memset(h, 0, offsetof(struct header, complete));
    h->magic = MAGIC;
    h->version = VERSION;
    h->id = s->id;
    h->step = step;
    h->bytes = bytes;
    h->payload_xxh3 = XXH3_64bits(memory_snapshot_payload(s, slot), (size_t)bytes);
    h->header_xxh3 = hash_header(h);
    atomic_store_explicit(&h->complete, COMPLETE, memory_order_release);
    atomic_store(&head_of(s)->is_used, 1);
    s->newest = slot;
    s->passed_over_bytes = 0;
}

void memory_snapshot_set_neighbours(struct memory_snapshots *s,
                                    const struct memory_neighbours *neighbours)
{
    head_of(s)->neighbours = *neighbours;
}

int64_t memory_snapshot_last_step(const struct memory_snapshots *s)
{
    return atomic_load(&head_of(s)->last_step);
}

void memory_snapshot_set_last_step(struct memory_snapshots *s, int64_t step)
{
    atomic_store(&head_of(s)->last_step, step);
}

int64_t memory_snapshot_begun_step(const struct memory_snapshots *s)
{
    return atomic_load(&head_of(s)->begun_step);
}

void memory_snapshot_set_begun_step(struct memory_snapshots *s, int64_t step)
{
    atomic_store(&head_of(s)->begun_step, step);
}

int memory_snapshot_count_end(struct memory_snapshots *s, int64_t last_step)
{
    enum { MANY = 1000000 };
    struct head *head = head_of(s);
    if (head->was_asked) {
        head->was_asked = 0;
        return 0;
    }
    bool is_same = head->ended_after == last_step && head->ends >= 0 && head->ends < MANY;
    head->ends = is_same ? head->ends + 1 : 1;
    head->ended_after = last_step;
    return (int)head->ends;
}

void memory_snapshot_end_was_asked(struct memory_snapshots *s)
{
    head_of(s)->was_asked = 1;
}

void memory_snapshot_forget_ends(struct memory_snapshots *s)
{
    struct head *head = head_of(s);
    head->ended_after = -1;
    head->ends = 0;
    head->was_asked = 0;
}
