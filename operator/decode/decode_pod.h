/* Reads pods and services of an API server, as far as reconcile needs them. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_POD_H
#define SHOAL_OPERATOR_DECODE_DECODE_POD_H

#include "operator/decode/decode_identity.h"

struct arena;
struct json;
struct lines;

/* Reads a pod into the arena. `problems` holds those of its identity. If a field that reconcile
 * needs is malformed, decode_pod adds a problem and returns a pod in phase Unknown that has not
 * exited. Reconcile keeps such a pod: it neither acts on it nor creates another in its place.
 *
 * disrupted: status.reason, a true condition DisruptionTarget, or a failed pod without a terminated
 * container (never admitted, or its node was lost). The pod's own activeDeadlineSeconds is no
 * disruption. restart_count: the containers' restartCount plus the failures that the kubelet will
 * still restart, so that each failure counts when it happens, once. The operator's own init
 * containers do not count: INIT_CONTAINER_NAME in workers, or those that ANNOTATION_INIT_CONTAINERS
 * names. waiting_message is cut to 400 bytes. */
struct pod decode_pod(const struct json *object, const struct identity *identity,
                      struct arena *arena, struct lines *problems);

/* Lists that decode_pod has no use for, wherever they are in a pod: its larger part, which is the
 * node's. NULL at the end; for json_lenient.h. */
extern const char *const decode_pod_unread[];

/* Reconcile needs nothing of a service but its metadata. */
struct service decode_service(const struct identity *identity);
#endif
