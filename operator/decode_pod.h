/* The part of decode that reads pods and services as an API server sends them, trimmed to what
 * reconcile asks of them. */
#ifndef SHOAL_OPERATOR_DECODE_POD_H
#define SHOAL_OPERATOR_DECODE_POD_H

#include "base/error.h"
#include "operator/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct arena;
struct json_t;
struct lines;

/* What any object is known by. */
struct identity {
    const char *name;
    const char *namespace_;
    const char *uid;
    const char *resource_version;
    const char *owner_uid; /* of its controller; "" if it has none */
    /* Name of the PyTorchJob it belongs to: its controller, or else what its label says. "" if it
     * says nothing. */
    const char *job_name;
};

/* Reads an object's identity into the arena. Fails with ERR_INPUT if it lacks one of the first
 * four: then there is no telling what it is. */
int decode_identity(const struct json_t *object, struct arena *arena, struct identity *ret_identity,
                    struct error *err);

/* Reads a pod that has an identity, into the arena. If anything that counts does not fit, it is
 * told in `problems`, and the pod is one of which nothing is known but that it is there: phase
 * Unknown, nothing exited. Nobody acts on such a pod, and nobody takes its place.
 *
 * disrupted: by status.reason, by a true condition DisruptionTarget, or failed without that any of
 * its containers had an end (never admitted, node lost); its own activeDeadlineSeconds is no
 * disruption. */
struct pod decode_pod(const struct json_t *object, const struct identity *identity,
                      struct arena *arena, struct lines *problems);

struct service decode_service(const struct json_t *object, const struct identity *identity,
                              struct arena *arena, struct lines *problems);

#ifdef __cplusplus
}
#endif
#endif
