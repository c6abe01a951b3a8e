/* What an admission by Kueue gives to the pods of one replica type: the node labels and tolerations
 * of its ResourceFlavors, what admission checks add, and the marks by which Kueue finds them. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_PLACEMENT_H
#define SHOAL_OPERATOR_DECODE_DECODE_PLACEMENT_H

#include "operator/decode/decode_workload.h"

/* The fields of struct placement as text, in the arena. Kueue allows additions alone: where two, or
 * one and the template, give a key different values, *ret_obstacle says so, unless it is set. */
const char *decode_placement(const struct workload *workload, enum replica_type type,
                             const struct json *template_, const struct flavor *const *flavors,
                             size_t flavor_count, struct arena *arena, const char **ret_obstacle);
#endif
