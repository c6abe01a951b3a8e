/* Snapshots in memory: whole or not at all, and nobody else's. */
#include "agent/checkpoint/memory_snapshot.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { PAYLOAD = 5000, PAGE = 4096, HEADER = 192 };

static const struct memory_snapshot_id own = {
    .run = "uid-1", .program = "1.0", .layout = 7, .world_size = 4, .rank = 2};

static void *new_memory(void)
{
    void *memory = aligned_alloc(PAGE, (size_t)memory_snapshot_bytes(PAYLOAD));
    assert_non_null(memory);
    return memset(memory, 0, (size_t)memory_snapshot_bytes(PAYLOAD));
}

static void save(struct memory_snapshots *s, int64_t step)
{
    int slot;
    memset(memory_snapshot_begin(s, &slot), (int)step, PAYLOAD);
    memory_snapshot_commit(s, step, PAYLOAD);
    assert_int_equal(s->newest, slot);
}

/* The step in a slot; -1: nothing that can be used. */
static int64_t step_in(const struct memory_snapshots *s, int slot)
{
    struct memory_snapshot snapshot;
    struct error err;
    if (memory_snapshot_read(s, slot, &snapshot, &err))
        return -1;
    assert_int_equal(snapshot.bytes, PAYLOAD);
    for (int i = 0; i < PAYLOAD; i++)
        assert_int_equal(((const char *)snapshot.payload)[i], (char)snapshot.step);
    return snapshot.step;
}

static void the_last_two_are_there_after_a_restart(void **state)
{
    (void)state;
    void *memory = new_memory();
    struct memory_snapshots s;
    struct memory_snapshot snapshot;
    struct error err;
    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    assert_int_equal(memory_snapshot_last_step(&s), -1);
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++)
        assert_fails(memory_snapshot_read(&s, slot, &snapshot, &err), &err, ERR_NOT_FOUND,
                     "not complete");
    for (int64_t step = 10; step < 13; step++)
        save(&s, step);
    memory_snapshot_set_last_step(&s, 14);

    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    assert_int_equal(step_in(&s, 0), 12);
    assert_int_equal(step_in(&s, 1), 11);
    assert_int_equal(memory_snapshot_last_step(&s), 14);
    assert_int_equal(memory_snapshot_count_end(&s, 14), 1);
    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    assert_int_equal(memory_snapshot_count_end(&s, 14), 2);
    memory_snapshot_end_was_asked(&s);
    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    assert_int_equal(memory_snapshot_count_end(&s, 14), 0);
    assert_int_equal(memory_snapshot_count_end(&s, 14), 3);
    assert_int_equal(memory_snapshot_count_end(&s, 15), 1);
    memory_snapshot_forget_ends(&s);
    assert_int_equal(memory_snapshot_count_end(&s, 15), 1);
    memory_snapshot_keep(&s, 1, -1); /* the ranks agreed on 11 */
    assert_int_equal(step_in(&s, 0), -1);
    assert_int_equal(step_in(&s, 1), 11);
    save(&s, 12);
    assert_int_equal(step_in(&s, 0), 12);
    assert_int_equal(step_in(&s, 1), 11);
    memory_snapshot_keep(&s, -1, 1); /* the next one is not here yet, and 11 stays until it is */
    assert_int_equal(step_in(&s, 0), -1);
    save(&s, 12);
    assert_int_equal(step_in(&s, 0), 12);
    assert_int_equal(step_in(&s, 1), 11);
    memory_snapshot_keep(&s, 0, 1);
    assert_int_equal(step_in(&s, 1), 11);
    save(&s, 13);
    assert_int_equal(step_in(&s, 0), 12);
    assert_int_equal(step_in(&s, 1), 13);
    memory_snapshot_keep(&s, -1, -1);
    assert_int_equal(step_in(&s, 0), -1);
    assert_int_equal(step_in(&s, 1), -1);
    free(memory);
}

/* A kill is where the copying stops: before each byte of the payload and each of the header. The
 * other slot stays, and this one holds nothing until its last byte is written. */
static void a_kill_at_any_byte_leaves_the_other_slot(void **state)
{
    (void)state;
    char *memory = new_memory(), *before = new_memory(), *after = new_memory();
    const size_t all = (size_t)memory_snapshot_bytes(PAYLOAD);
    struct memory_snapshots s;
    int slot;
    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    save(&s, 1);
    save(&s, 2);
    memory_snapshot_begin(&s, &slot);
    assert_int_equal(slot, 0);
    memcpy(before, memory, all);
    memset(memory_snapshot_payload(&s, 0), 3, PAYLOAD);
    memory_snapshot_commit(&s, 3, PAYLOAD);
    memcpy(after, memory, all);
    /* The payload comes first, then the header's page, of which the mark is last. */
    const size_t ranges[2][2] = {{2 * PAGE, PAYLOAD}, {PAGE, PAGE}};
    memcpy(memory, before, all);
    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    for (int range = 0; range < 2; range++)
        for (size_t i = 0; i < ranges[range][1]; i++) {
            size_t at = ranges[range][0] + i;
            bool is_last = memcmp(memory + PAGE, after + PAGE, PAGE) == 0;
            assert_int_equal(step_in(&s, 0), is_last ? 3 : -1);
            if (i % 512 == 0)
                assert_int_equal(step_in(&s, 1), 2);
            memory[at] = after[at];
        }
    assert_int_equal(step_in(&s, 0), 3);
    assert_memory_equal(memory, after, all);
    free(memory), free(before), free(after);
}

/* Every single bit of the slot, and every cut. */
static void a_flipped_bit_is_refused(void **state)
{
    (void)state;
    char *memory = new_memory();
    struct memory_snapshots s;
    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    save(&s, 1);
    int refused = 0, same = 0;
    for (int at = PAGE; at < 2 * PAGE + PAYLOAD; at++) {
        memory[at] ^= (char)(1 << at % 8);
        struct memory_snapshot snapshot;
        struct error err = {0};
        int result = memory_snapshot_read(&s, 0, &snapshot, &err);
        bool is_page_rest = at >= PAGE + HEADER && at < 2 * PAGE; /* behind the header */
        if (result == 0)
            same++;
        else
            refused++;
        if (result == 0 && !is_page_rest)
            fail_msg("a flip of byte %d is not seen", at);
        if (result < 0 && (!strstr(err.msg, "it") || is_page_rest))
            fail_msg("byte %d: %s", at, err.msg);
        memory[at] ^= (char)(1 << at % 8);
    }
    assert_int_equal(step_in(&s, 0), 1);
    assert_int_equal(refused + same, PAGE + PAYLOAD);
    for (int cut = 0; cut < PAYLOAD; cut += 97) { /* zeroes behind it, as of a page that is new */
        char rest[PAYLOAD];
        char *payload = memory_snapshot_payload(&s, 0);
        memcpy(rest, payload + cut, (size_t)(PAYLOAD - cut));
        memset(payload + cut, 0, (size_t)(PAYLOAD - cut));
        assert_int_equal(step_in(&s, 0), -1);
        memcpy(payload + cut, rest, (size_t)(PAYLOAD - cut));
    }
    free(memory);
}

static void another_ones_is_refused_by_name(void **state)
{
    (void)state;
    struct memory_snapshot_id ids[6];
    for (int i = 0; i < 6; i++)
        ids[i] = own;
    memcpy(ids[0].run, "uid-2", 6);
    memcpy(ids[1].program, "0.9", 4);
    ids[2].layout = 8;
    ids[3].world_size = 2;
    ids[4].rank = 0;
    ids[5].run[0] = '\0';
    static const char *const words[] = {
        "it is of run uid-1, and this is uid-2",
        "it was saved by version 1.0, and this is 0.9",
        "it is of another model, optimizer or strategy",
        "it is of rank 2 of 4, and this is rank 2 of 2",
        "it is of rank 2 of 4, and this is rank 0 of 4",
        "it is of run uid-1, and this is ",
    };
    void *memory = new_memory();
    struct memory_snapshots s;
    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    save(&s, 1);
    for (size_t i = 0; i < array_length(words); i++) {
        struct memory_snapshot snapshot;
        struct error err;
        memory_snapshot_open(memory, PAYLOAD, &ids[i], &s);
        assert_fails(memory_snapshot_read(&s, 0, &snapshot, &err), &err, ERR_CONFLICT, words[i]);
    }
    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    assert_int_equal(step_in(&s, 0), 1);
    free(memory);
}

/* Another size, another version of the format, or what never was a snapshot. */
static void what_is_laid_out_otherwise_is_forgotten(void **state)
{
    (void)state;
    char *memory = new_memory();
    struct memory_snapshots s;
    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    save(&s, 1);
    memory_snapshot_open(memory, PAYLOAD - PAGE, &own, &s);
    struct memory_snapshot snapshot;
    struct error err;
    for (int slot = 0; slot < MEMORY_SNAPSHOT_SLOTS; slot++)
        assert_fails(
            memory_snapshot_read(&s, slot, &snapshot, &err), &err, ERR_CONFLICT,
            "it is of another model, optimizer, strategy or number of ranks, of 5000 bytes and "
            "not 904");
    memory_snapshot_keep(&s, -1, -1);
    assert_fails(memory_snapshot_read(&s, 0, &snapshot, &err), &err, ERR_NOT_FOUND, "");
    memory_snapshot_open(memory, PAYLOAD, &own, &s); /* nothing was saved there */
    assert_fails(memory_snapshot_read(&s, 0, &snapshot, &err), &err, ERR_NOT_FOUND, "");
    for (int field = 0; field < 3; field++) { /* magic number, version, size */
        save(&s, 1);
        memory[8 * field] ^= 1;
        memory_snapshot_open(memory, PAYLOAD, &own, &s);
        assert_int_equal(step_in(&s, 0), -1);
        assert_int_equal(step_in(&s, 1), -1);
    }
    memset(memory, 0x5a, (size_t)memory_snapshot_bytes(PAYLOAD));
    memory_snapshot_open(memory, PAYLOAD, &own, &s);
    assert_int_equal(step_in(&s, 0), -1);
    assert_int_equal(step_in(&s, 1), -1);
    free(memory);
}

/* Another number of ranks looks into it: its own, then that of a buddy. */
static void whoever_looks_finds_what_is_whole(void **state)
{
    (void)state;
    enum { RANKS = 2, MOST = 2 * MEMORY_SNAPSHOT_SLOTS };
    const int64_t each = memory_snapshot_bytes(PAYLOAD);
    char *memory = aligned_alloc(PAGE, (size_t)(RANKS * each));
    struct memory_snapshots s[RANKS];
    struct memory_snapshot_entry found[MOST];
    struct memory_snapshot_id ids[RANKS] = {own, own};
    struct memory_snapshot_seen seen;
    ids[1].rank = 3;
    memset(memory, 0, (size_t)(RANKS * each));
    assert_int_equal(memory_snapshot_scan(memory, RANKS * each, true, found, MOST, &seen), 0);
    assert_int_equal(seen.last_step, -1);
    for (int i = 0; i < RANKS; i++) {
        memory_snapshot_open(memory + i * each, PAYLOAD, &ids[i], &s[i]);
        save(&s[i], 1);
        save(&s[i], 2);
    }
    memory_snapshot_set_last_step(&s[0], 7);
    assert_int_equal(memory_snapshot_scan(memory, RANKS * each, true, found, MOST, &seen), 4);
    assert_int_equal(seen.last_step, 7);
    for (int i = 0; i < MOST; i++) {
        assert_int_equal(found[i].owner, i / MEMORY_SNAPSHOT_SLOTS);
        assert_int_equal(found[i].id.rank, ids[found[i].owner].rank);
        assert_int_equal(found[i].snapshot.step, 1 + i % 2);
        assert_int_equal(((const char *)found[i].snapshot.payload)[0], 1 + i % 2);
    }
    assert_int_equal(memory_snapshot_scan(memory, RANKS * each, true, found, 3, &seen), 3);
    /* cut short, damaged, not complete */
    assert_int_equal(memory_snapshot_scan(memory, RANKS * each - 1, true, found, MOST, &seen), 2);
    assert_int_equal(memory_snapshot_scan(memory, PAGE, true, found, MOST, &seen), 0);
    ((char *)memory_snapshot_payload(&s[1], 0))[9]++;
    assert_int_equal(memory_snapshot_scan(memory, RANKS * each, true, found, MOST, &seen), 3);
    assert_int_equal(memory_snapshot_scan(memory, RANKS * each, false, found, MOST, &seen), 4);
    int slot;
    memory_snapshot_begin(&s[0], &slot);
    assert_int_equal(memory_snapshot_scan(memory, RANKS * each, true, found, MOST, &seen), 2);
    assert_int_equal(seen.begin, 0);
    assert_int_equal(found[1].begin, each);
    memory[0]++; /* the first one's head: the other is found all the same */
    assert_int_equal(memory_snapshot_scan(memory, RANKS * each, true, found, MOST, &seen), 1);
    assert_int_equal(seen.begin, each);
    free(memory);
}

/* A run in another number of ranks lays its own out behind those that it goes on from. */
static void another_size_behind_is_found_too(void **state)
{
    (void)state;
    enum { GAP = 2 * PAGE, OTHER = 3 * PAYLOAD };
    const int64_t first = memory_snapshot_bytes(PAYLOAD), second = memory_snapshot_bytes(OTHER);
    const int64_t bytes = GAP + first + GAP + second;
    char *memory = aligned_alloc(PAGE, (size_t)bytes);
    struct memory_snapshots before, after;
    struct memory_snapshot_entry found[3];
    struct memory_snapshot_seen seen;
    memset(memory, 0, (size_t)bytes);
    memory_snapshot_open(memory + GAP, PAYLOAD, &own, &before);
    memory_snapshot_open(memory + bytes - second, OTHER, &own, &after);
    save(&before, 5);
    save(&after, 5);
    memory_snapshot_set_last_step(&before, 7);
    memory_snapshot_set_last_step(&after, 6);
    assert_int_equal(memory_snapshot_scan(memory, bytes, true, found, 3, &seen), 2);
    assert_int_equal(seen.begin, GAP);
    assert_int_equal(seen.last_step, 7);
    assert_int_equal(found[0].end, GAP + first);
    assert_int_equal(found[1].owner, 1);
    assert_int_equal(found[1].begin, bytes - second);
    assert_int_equal(found[1].end, bytes);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_looks_finds_what_is_whole),
        cmocka_unit_test(another_size_behind_is_found_too),
        cmocka_unit_test(the_last_two_are_there_after_a_restart),
        cmocka_unit_test(a_kill_at_any_byte_leaves_the_other_slot),
        cmocka_unit_test(a_flipped_bit_is_refused),
        cmocka_unit_test(another_ones_is_refused_by_name),
        cmocka_unit_test(what_is_laid_out_otherwise_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
