/* Amounts of resources as Kubernetes writes them ("500m", "16Gi", "2e3"), in thousandths of the
 * unit, and sums of them by resource. */
#ifndef SHOAL_OPERATOR_JOB_QUANTITY_H
#define SHOAL_OPERATOR_JOB_QUANTITY_H

#include "operator/job/types.h"

struct arena;

/* Reads a whole quantity that is not negative (grammar of apimachinery's resource.Quantity). Parts
 * of a thousandth are rounded up; too much is INT64_MAX. False, and nothing written, if the text is
 * anything else. */
bool quantity_parse(const char *text, int64_t *ret_milli);

int64_t quantities_get(const struct quantities *list, const char *resource); /* 0: not in it */
void quantities_set(struct quantities *list, const char *resource, int64_t milli,
                    struct arena *arena);

/* Adds `count` times what `more` holds. */
void quantities_add(struct quantities *list, const struct quantities *more, int64_t count,
                    struct arena *arena);
/* Raises each amount to that in `least`. */
void quantities_raise(struct quantities *list, const struct quantities *least, struct arena *arena);
bool quantities_equal(const struct quantities *a, const struct quantities *b);
#endif
