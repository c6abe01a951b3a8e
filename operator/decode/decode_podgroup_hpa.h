/* Reads PodGroups and HorizontalPodAutoscalers of an API server, as far as reconcile needs them.
 * manifest_podgroup_hpa.c writes them. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_PODGROUP_HPA_H
#define SHOAL_OPERATOR_DECODE_DECODE_PODGROUP_HPA_H

#include "operator/decode/decode_identity.h"
#include "operator/job/types.h"

/* Reads a PodGroup of Volcano or scheduler-plugins into the arena. Leaves out what is malformed and
 * adds it to `problems`: reconcile then updates the group. `message`: of the condition
 * Unschedulable, if it is True. */
struct pod_group decode_pod_group(const struct json *object, const struct identity *identity,
                                  struct arena *arena, struct lines *problems);

/* The same for a HorizontalPodAutoscaler of autoscaling/v2 or v2beta2. Its metrics are known by our
 * annotation alone. */
struct autoscaler decode_autoscaler(const struct json *object, const struct identity *identity,
                                    struct arena *arena, struct lines *problems);
#endif
