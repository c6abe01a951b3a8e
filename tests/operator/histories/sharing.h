/* What the processes of one exploration hand to each other. One that has nothing left to do waits;
 * another one that sees this hands it a choice that it has not tried yet, with the state in which
 * it may be tried. All is done when all wait.
 *
 * Knows neither states nor choices: both are bytes. */
#ifndef SHOAL_TESTS_OPERATOR_HISTORIES_SHARING_H
#define SHOAL_TESTS_OPERATOR_HISTORIES_SHARING_H

#include <stdbool.h>
#include <stddef.h>

struct sharing;

/* To be opened before the processes are forked. */
struct sharing *sharing_open(int processes, size_t head_bytes, size_t body_max_bytes);
void sharing_close(struct sharing *sharing);

/* Whether somebody waits, and nothing is on its way to it. Cheap. */
bool sharing_is_wanted(const struct sharing *sharing);
/* Copies both. */
void sharing_offer(struct sharing *sharing, const void *head, const void *body, size_t body_bytes);
/* Waits. False: all wait, and all is done. */
bool sharing_take(struct sharing *sharing, void *ret_head, void *ret_body, size_t *ret_body_bytes);
#endif
