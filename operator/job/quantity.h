/* Resource quantities of Kubernetes ("500m", "16Gi", "2e3") in thousandths of the unit, and their
 * sums by resource. */
#ifndef SHOAL_OPERATOR_JOB_QUANTITY_H
#define SHOAL_OPERATOR_JOB_QUANTITY_H

#include "operator/job/types.h"

struct arena;

/* Parses a quantity that is not negative (the grammar of apimachinery's resource.Quantity). Rounds
 * up to a thousandth; overflow gives INT64_MAX. Returns false, and writes nothing, for any other
 * text. */
bool quantity_parse(const char *text, int64_t *ret_milli);

int64_t quantities_get(const struct quantities *list, const char *resource); /* 0: absent */
void quantities_set(struct quantities *list, const char *resource, int64_t milli,
                    struct arena *arena);

/* Adds `more`, multiplied by `count`. */
void quantities_add(struct quantities *list, const struct quantities *more, int64_t count,
                    struct arena *arena);
/* Raises each amount to the one in `least`. */
void quantities_raise(struct quantities *list, const struct quantities *least, struct arena *arena);
bool quantities_equal(const struct quantities *a, const struct quantities *b);
#endif
