/* Snapshots of one rank's state in memory that outlives the rank. There are two slots: while one is
 * written the other stays whole, so a kill at any byte leaves a snapshot or, before the first,
 * none. Each is checked as a whole before it is used.
 *
 *   head           a page: which slots follow, and how far the rank has come;
 *   slot 0, slot 1 a page of header (whose it is, of which step, checksums, the mark "complete",
 *                  which is written last), then the payload
 *
 * Pure over the memory it is given; knows no files, no ranks and not what is in the payload. */
#ifndef SHOAL_AGENT_CHECKPOINT_MEMORY_SNAPSHOT_H
#define SHOAL_AGENT_CHECKPOINT_MEMORY_SNAPSHOT_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { MEMORY_SNAPSHOT_SLOTS = 2 };

/* Whose snapshots they are. One of anything else is refused. */
struct memory_snapshot_id {
    char run[64];     /* the run's id; "": not known */
    char program[32]; /* version of the program that saves */
    uint64_t layout;  /* of the payload: a checksum of what it depends on, as the model */
    uint64_t recipe;  /* the same without what the number of ranks decides */
    int32_t world_size, rank;
    int32_t slice, slices; /* which part of the whole state, and of how many */
    int32_t parts;         /* into which its units can be cut, as shard_layout.h says */
    int32_t ignored;
};

/* The ranks whose slots lie behind a rank's own, in their order. All zero: it is not known. */
enum { MEMORY_NEIGHBOURS_MOST = 8 };
struct memory_neighbours {
    int32_t world_size, rank; /* the rank itself */
    int32_t count, ranks[MEMORY_NEIGHBOURS_MOST];
};

struct memory_snapshot {
    int64_t step;
    const void *payload; /* in the slot */
    int64_t bytes;
};

/* The slots of one rank. */
struct memory_snapshots {
    char *memory; /* not owned; starts at a page */
    int64_t payload_bytes;
    struct memory_snapshot_id id;
    int newest;                /* the slot that must stay; -1: none */
    int64_t passed_over_bytes; /* of the payloads that were here and are forgotten; 0: none were */
};

/* Bytes of memory for payloads of at most so many bytes. */
int64_t memory_snapshot_bytes(int64_t payload_bytes);

/* `memory` has memory_snapshot_bytes(payload_bytes) bytes: zeroes, what a predecessor left, or
 * anything. What is not laid out for such payloads is forgotten, and reading says so until one
 * is kept or completed. No slot must stay yet. */
void memory_snapshot_open(void *memory, int64_t payload_bytes, const struct memory_snapshot_id *id,
                          struct memory_snapshots *ret_snapshots);

/* The snapshot in a slot. Errors: ERR_NOT_FOUND if the slot is empty or was not completed,
 * ERR_INPUT naming what is damaged, ERR_CONFLICT naming whose it is instead. */
int memory_snapshot_read(const struct memory_snapshots *snapshots, int slot,
                         struct memory_snapshot *ret_snapshot, struct error *err);

/* Of memory of which nothing is known but its size: up to `most` complete and undamaged snapshots,
 * whoever's they are. Pages before and between the ranks' slots are passed over. checks: also their
 * payloads. Returns how many there are. */
struct memory_snapshot_entry {
    int owner;          /* 0: the rank's own, from 1 on those that lie behind them */
    int64_t begin, end; /* of its owner's slots in the memory */
    struct memory_snapshot_id id;
    struct memory_snapshot snapshot;
};
struct memory_snapshot_seen {
    int64_t begin;                       /* of the first slots; 0: there are none */
    int64_t last_step;                   /* the last memory_snapshot_last_step() of any */
    struct memory_neighbours neighbours; /* of the first slots */
};
int memory_snapshot_scan(const void *memory, int64_t bytes, bool checks,
                         struct memory_snapshot_entry *ret_entries, int most,
                         struct memory_snapshot_seen *ret_seen);

/* Only the snapshots in these slots stay, and the next one is written over the older; -1: there is
 * none. Without a newest the older must stay until then; without both nothing is kept. */
void memory_snapshot_keep(struct memory_snapshots *snapshots, int newest, int older);

/* Where a slot's payload is written: of the slot that need not stay, whose snapshot is forgotten
 * now; *ret_slot: which. Then, the payload being whole: its snapshot is complete, and must stay.
 * bytes: at most payload_bytes. */
void *memory_snapshot_begin(struct memory_snapshots *snapshots, int *ret_slot);
void memory_snapshot_commit(struct memory_snapshots *snapshots, int64_t step, int64_t bytes);
/* A slot's payload, whatever is in it. */
void *memory_snapshot_payload(const struct memory_snapshots *snapshots, int slot);

/* Whose slots lie behind these, for memory_snapshot_scan(). */
void memory_snapshot_set_neighbours(struct memory_snapshots *snapshots,
                                    const struct memory_neighbours *neighbours);
/* The last step that the rank has done, saved or not; -1: none is known. */
int64_t memory_snapshot_last_step(const struct memory_snapshots *snapshots);
void memory_snapshot_set_last_step(struct memory_snapshots *snapshots, int64_t step);
/* The step that the rank has begun, done or not; -1: none is known. */
int64_t memory_snapshot_begun_step(const struct memory_snapshots *snapshots);
void memory_snapshot_set_begun_step(struct memory_snapshots *snapshots, int64_t step);
/* The run has ended after this step of all ranks' last ones. Returns how many times in a row it has
 * ended so; 0 if this end was asked for, which changes no count. */
int memory_snapshot_count_end(struct memory_snapshots *snapshots, int64_t last_step);
/* The rank ends because it was asked to: as a pod goes, or others come. */
void memory_snapshot_end_was_asked(struct memory_snapshots *snapshots);
void memory_snapshot_forget_ends(struct memory_snapshots *snapshots);
#endif
