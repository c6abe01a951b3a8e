/* Objects as an API server sends them, as text. */
#ifndef SHOAL_TESTS_OPERATOR_DECODE_DECODE_FIXTURE_H
#define SHOAL_TESTS_OPERATOR_DECODE_DECODE_FIXTURE_H

#include "base/json.h"
#include "base/lines.h"
#include "operator/decode/decode_pod.h"

struct reading {
    struct arena *arena;
    struct json *documents;
    const struct json *object;
    struct identity identity;
    struct lines problems;
    int result; /* of decode_identity, with its error */
    struct error err;
};

/* Metadata that identifies an object. */
#define KNOWN "name: j-worker-3, namespace: ns, uid: u, resourceVersion: '7'"

/* Reads the identity of one object, from YAML, of which JSON is a part. */
void open_reading(struct reading *reading, const char *text);
void close_reading(struct reading *reading);
#endif
