/* The part of decode that reads the metadata of pods and services: who an object is, whose, and in
 * which place of its job. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_IDENTITY_H
#define SHOAL_OPERATOR_DECODE_DECODE_IDENTITY_H

#include "base/error.h"
#include "operator/job/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct arena;
struct json_reader;
struct json_t;
struct lines;

struct identity {
    const char *name;
    const char *namespace_;
    const char *uid;
    const char *resource_version;
    const char *owner_uid; /* of its controller; "" if it has none */
    /* Name of the PyTorchJob it belongs to: its controller, or else what its label says. "" if it
     * says nothing. */
    const char *job_name;
    /* By its labels, as in struct pod. A type that is none of ours has no place
     * either: index -1. */
    enum replica_type type;
    int32_t index;
    int32_t attempt;
    int64_t created_ms; /* 0: it does not say */
    int64_t deleted_ms; /* when its deletion was asked for; 0: it was not */
    int64_t grace_ms;   /* asked for with the deletion */
};

/* Reads an object's metadata into the arena; texts that it lacks are "". What does not fit is told
 * in `problems`. Fails with ERR_INPUT if one of the first four texts is missing: then there is no
 * telling what it is. */
int decode_identity(const struct json_t *object, struct arena *arena, struct lines *problems,
                    struct identity *ret_identity, struct error *err);

/* For field tables: RFC 3339 to an int64_t of milliseconds. */
void decode_time(struct json_reader *reader, const struct json_t *value, void *wall_ms);

#ifdef __cplusplus
}
#endif
#endif
