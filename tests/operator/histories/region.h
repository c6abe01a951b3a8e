/* Memory that can be kept as it is and brought back: what is allocated while it is open, from the
 * same addresses each time. So a program of many objects can be run on from one state in many ways.
 * It has no lists of its own outside, and its pages lie at one place: a state is one copy.
 *
 * The program defines malloc and free, which come here while the region is open
 * (test_small_histories.c). */
#ifndef SHOAL_TESTS_OPERATOR_HISTORIES_REGION_H
#define SHOAL_TESTS_OPERATOR_HISTORIES_REGION_H

#include <stdbool.h>
#include <stddef.h>

/* A state: small blocks with all that lies between them, then those large ones that are in use. All
 * zero at first; region_keep makes room. */
struct region_state {
    unsigned char *bytes;
    size_t used, size;
};

void region_open(void); /* what was in it is gone */
void region_enter(void);
void region_leave(void);
bool region_is_entered(void);
bool region_has(const void *pointer);

void *region_alloc(size_t bytes); /* aligned for any type */
void region_free(void *pointer);
size_t region_size(const void *pointer); /* usable */

/* Outside of the region. */
void region_keep(struct region_state *state);
void region_bring_back(const struct region_state *state);
void region_drop(struct region_state *state);
#endif
