/* Things that wait, each for its time, the earliest first; of those of one time the one that was
 * added first. The thing holds its own entry, so that the schedule owns nothing but their order: a
 * binary heap. Pure: time is what its caller says. */
#ifndef SHOAL_BASE_SCHEDULE_H
#define SHOAL_BASE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: does not wait. */
struct schedule_entry {
    int64_t at_ms;   /* waiting: when it is due */
    uint64_t serial; /* orders those of one time */
    size_t place;    /* in the heap, from 1 on; 0: it does not wait */
};

/* All zero: nothing waits. */
struct schedule {
    struct schedule_entry **entries; /* [size] */
    size_t count, size;
    uint64_t serial;
};

/* Frees the order, not the entries. */
void schedule_free(struct schedule *schedule);

bool schedule_waits(const struct schedule_entry *entry);
/* The entry does not wait yet. */
void schedule_add(struct schedule *schedule, struct schedule_entry *entry, int64_t at_ms);
/* The entry waits. */
void schedule_remove(struct schedule *schedule, struct schedule_entry *entry);

/* NULL: nothing waits. It waits on. */
struct schedule_entry *schedule_first(const struct schedule *schedule);
/* When that is due; INT64_MAX: nothing waits. */
int64_t schedule_due(const struct schedule *schedule);
#endif
