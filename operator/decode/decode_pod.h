/* The part of decode that reads pods and services as an API server sends them, trimmed to what
 * reconcile asks of them. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_POD_H
#define SHOAL_OPERATOR_DECODE_DECODE_POD_H

#include "operator/decode/decode_identity.h"

#ifdef __cplusplus
extern "C" {
#endif

struct arena;
struct json_t;
struct lines;

/* Reads a pod into the arena. If anything that counts does not fit (`problems` holds those of its
 * identity), it is told there, and the pod is one of which nothing is known but that it is there:
 * phase Unknown, nothing exited. Nobody acts on such a pod, and nobody takes its place.
 *
 * disrupted: by status.reason, by a true condition DisruptionTarget, or failed without that any of
 * its containers had an end (never admitted, node lost); its own activeDeadlineSeconds is no
 * disruption. restart_count is the sum of restartCount and of the failures that a restart in place
 * is still to follow, so that each counts when it happens and none twice. The operator's own init
 * containers (INIT_CONTAINER_NAME in workers, or those that ANNOTATION_INIT_CONTAINERS names) count
 * nowhere. waiting_message is cut to 400 bytes. */
struct pod decode_pod(const struct json_t *object, const struct identity *identity,
                      struct arena *arena, struct lines *problems);

/* All that counts of a service is in its metadata. */
struct service decode_service(const struct identity *identity);

#ifdef __cplusplus
}
#endif
#endif
