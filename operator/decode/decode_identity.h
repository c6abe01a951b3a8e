/* Reads the metadata of pods and services: name, owner and replica. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_IDENTITY_H
#define SHOAL_OPERATOR_DECODE_DECODE_IDENTITY_H

#include "base/error.h"
#include "operator/job/types.h"

struct arena;
struct json_reader;
struct json;
struct lines;

struct identity {
    const char *name;
    const char *namespace_;
    const char *uid;
    const char *resource_version;
    const char *owner_uid; /* of its controller; "" if it has none */
    /* The PyTorchJob that the object belongs to, by its controller or else its label; "": none. */
    const char *job_name;
    /* By the labels, as in struct pod. An unknown type also sets index -1. */
    enum replica_type type;
    int32_t index;
    int32_t attempt;
    int64_t created_ms; /* 0: absent */
    int64_t deleted_ms; /* when the deletion was requested; 0: it was not */
    int64_t grace_ms;   /* deletionGracePeriodSeconds */
};

/* Reads an object's metadata into the arena; absent texts are "". Adds what is malformed to
 * `problems`. Fails with ERR_INPUT if one of the first four texts is absent: the object cannot be
 * identified. */
int decode_identity(const struct json *object, struct arena *arena, struct lines *problems,
                    struct identity *ret_identity, struct error *err);

/* For field tables: RFC 3339 to an int64_t of milliseconds. */
void decode_time(struct json_reader *reader, const struct json *value, void *wall_ms);
#endif
