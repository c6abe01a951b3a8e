/* The part of decode that reads what stands beside the pods as an API server sends it, trimmed to
 * what reconcile asks of it: PodGroups and HorizontalPodAutoscalers. manifest_podgroup_hpa.c writes
 * them. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_PODGROUP_HPA_H
#define SHOAL_OPERATOR_DECODE_DECODE_PODGROUP_HPA_H

#include "operator/decode/decode_identity.h"
#include "operator/job/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a PodGroup of Volcano or of scheduler-plugins that has an identity, into the arena. What
 * does not fit is left out and told in `problems`: reconcile then writes the group anew. `message`
 * is that of its condition Unschedulable, if that is True. */
struct pod_group decode_pod_group(const struct json_t *object, const struct identity *identity,
                                  struct arena *arena, struct lines *problems);

/* The same for an autoscaler of autoscaling/v2 or v2beta2; its metrics are told by our annotation
 * alone. */
struct autoscaler decode_autoscaler(const struct json_t *object, const struct identity *identity,
                                    struct arena *arena, struct lines *problems);

#ifdef __cplusplus
}
#endif
#endif
