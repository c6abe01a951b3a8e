/* Reads Kueue's objects (kueue.x-k8s.io v1beta1, v1beta2) and PriorityClasses, as far as the
 * operator follows them. manifest_workload.c writes Workloads. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_WORKLOAD_H
#define SHOAL_OPERATOR_DECODE_DECODE_WORKLOAD_H

#include "operator/decode/decode_identity.h"
#include "operator/job/workload.h"

/* Into the arena, without the templates. What is malformed is left out and added to `problems`: a
 * Workload that cannot be read is not admitted. */
struct workload decode_workload(const struct json *object, const struct identity *identity,
                                struct arena *arena, struct lines *problems);

/* A ResourceFlavor: JSON texts, "" if there are none. */
struct flavor {
    const char *name;        /* "": it has none */
    const char *node_labels; /* spec.nodeLabels, an object */
    const char *tolerations; /* spec.tolerations, an array */
};
struct flavor decode_flavor(const struct json *object, struct arena *arena, struct lines *problems);

/* A WorkloadPriorityClass or a PriorityClass. */
struct priority_class {
    const char *name; /* "": it has none */
    int32_t value;
    bool is_default; /* globalDefault */
};
struct priority_class decode_priority_class(const struct json *object, struct arena *arena,
                                            struct lines *problems);
#endif
