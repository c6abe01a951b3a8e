/* Snapshots of ranks of other pods, which outlive those: after each of its own a rank sends it to
 * the others of its group (memory_recovery.h), and keeps theirs beside its own. */
#ifndef SHOAL_AGENT_TRAINER_MEMORY_BUDDIES_H
#define SHOAL_AGENT_TRAINER_MEMORY_BUDDIES_H

#include "agent/trainer/memory_recovery.h"

struct memory_buddies {
    struct memory_group group;
    struct memory_snapshots kept[MEMORY_GROUP_MOST]; /* by member; [group.me]: this rank's own */
    struct comm *comm;                               /* of the group; NULL: this rank is alone */
    struct device *device;
    struct stream *stream;
};

/* Finds this rank's group, of itself alone unless `wanted`, and connects it. host: moves host
 * memory, of all ranks. *ret_why: "", or why there is no group although one is wanted.
 * Collective. */
int memory_buddies_open(struct memory_buddies *buddies, struct comm *host, int local_size,
                        bool wanted, const char **ret_why, struct error *err);
void memory_buddies_close(struct memory_buddies *buddies); /* also one that is all zero */
/* Lets go of the others, for whom there is no room. On all ranks. */
void memory_buddies_part(struct memory_buddies *buddies);

/* Bytes of memory for the snapshots of all members. */
int64_t memory_buddies_bytes(const struct memory_buddies *buddies, int64_t payload_bytes);
/* Lays the memory out, own snapshots first. id: this rank's. Collective in the group. */
int memory_buddies_lay_out(struct memory_buddies *buddies, void *memory, int64_t payload_bytes,
                           const struct memory_snapshot_id *id, struct error *err);

/* After this rank's snapshot of the step is complete: exchanges it. Collective in the group. */
int memory_buddies_exchange(struct memory_buddies *buddies, int64_t step, struct error *err);
/* Brings members their snapshots from where they are, and updates found->slots. Collective in the
 * group. */
int memory_buddies_fetch(struct memory_buddies *buddies, struct memory_found *found,
                         struct error *err);
/* Only what was found stays; nothing if its step is another one. */
void memory_buddies_keep(struct memory_buddies *buddies, const struct memory_found *found,
                         int64_t step);
#endif
