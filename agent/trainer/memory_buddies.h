/* Snapshots of ranks of other pods, which outlive those: after each of its own a rank sends it to
 * those of its group that keep it (memory_group.h), and keeps theirs beside its own. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_BUDDIES_H
#define SHOAL_AGENT_TRAINER_MEMORY_BUDDIES_H

#include "agent/trainer/memory_places.h"
#include "agent/trainer/memory_recovery.h"

struct memory_buddies {
    struct memory_buddy_plan plan;
    struct memory_group group; /* of the plan: that of before, until memory_buddies_move() */
    struct memory_snapshots kept[MEMORY_GROUP_MOST]; /* by member of whom it keeps any */
    struct comm *comm;                               /* of the group; NULL: this rank is alone */
    struct comm *to[MEMORY_GROUP_MOST]; /* by member: of it and of those that keep its; NULL: this
                                           rank is none of them */
    struct comm *host;                  /* of all ranks; not owned */
    struct device *device;
    struct stream *stream;
};

/* Finds this rank's group, of itself alone unless `wanted`, and connects it. host: moves host
 * memory, of all ranks; used until memory_buddies_close(). why: gets why there is no group although
 * one is wanted. where: gets which pods are together, and where they are. Collective. */
int memory_buddies_open(struct memory_buddies *buddies, struct comm *host,
                        const struct memory_place *place, bool wanted, struct str *why,
                        struct str *where, struct error *err);
void memory_buddies_close(struct memory_buddies *buddies); /* also one that is all zero */
/* Lets go of the others, for whom there is no room. On all ranks. */
void memory_buddies_part(struct memory_buddies *buddies);
/* What is sent, and what will be, fails at once. */
void memory_buddies_abort(struct memory_buddies *buddies, const char *reason);
/* From the group of before, whose snapshots are not used any more, to that of the plan. On all
 * ranks, as those below. Collective. */
int memory_buddies_move(struct memory_buddies *buddies, struct error *err);
/* To groups with no regard to nodes, in which no rank has snapshots of more than two others.
 * Collective. */
int memory_buddies_level(struct memory_buddies *buddies, struct error *err);

/* Bytes of memory for all snapshots that this rank keeps. */
int64_t memory_buddies_bytes(const struct memory_buddies *buddies, int64_t payload_bytes);
/* Lays the memory out, own snapshots first. id: this rank's. Collective in the group. */
int memory_buddies_lay_out(struct memory_buddies *buddies, void *memory, int64_t payload_bytes,
                           const struct memory_snapshot_id *id, struct error *err);

/* Queues the exchange of this rank's snapshot of the step, which is in this slot when the stream
 * comes to it. The one before is complete, sent ones too. Collective in the group. */
void memory_buddies_exchange(struct memory_buddies *buddies, struct stream *stream, int slot,
                             int64_t step);
/* Brings members their snapshots from where they are, and updates found->slots. Collective in the
 * group. */
int memory_buddies_fetch(struct memory_buddies *buddies, struct memory_found *found,
                         struct error *err);
/* Only what was found and the snapshots before it stay; nothing if its step is another one. */
void memory_buddies_keep(struct memory_buddies *buddies, const struct memory_found *found,
                         int64_t step);
#endif
