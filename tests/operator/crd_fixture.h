/* The CustomResourceDefinition and the code, held against each other. */
#ifndef SHOAL_TESTS_OPERATOR_CRD_FIXTURE_H
#define SHOAL_TESTS_OPERATOR_CRD_FIXTURE_H

#include "base/lines.h"

#include <stddef.h>

struct json;

#define CRD "deploy/crd/pytorchjobs.yaml"

#define POD    "{spec: {containers: [{name: pytorch, image: i}]}}"
#define MASTER "Master: {replicas: 1, template: " POD "}"
#define WORKER "Worker: {template: " POD "}"
#define BOTH   "pytorchReplicaSpecs: {" MASTER ", " WORKER "}"

#define REPLICAS "spec.pytorchReplicaSpecs." /* a path of crd_fixture_schema_at */

struct crd_fixture {
    struct arena *arena;
    struct json *crd;
    struct lines by_schema, by_code; /* what is wrong */
    struct lines notes;
};

/* For cmocka. */
int crd_fixture_open(void **state);
int crd_fixture_close(void **state);

/* The first document. The caller owns it (json_free), as what follows. */
struct json *crd_fixture_parse(const char *text);
/* spec: the inside of a flow mapping. */
struct json *crd_fixture_job(struct crd_fixture *fixture, const char *name, const char *spec);

/* Both sides look at an object. */
void crd_fixture_look(struct crd_fixture *fixture, const struct json *object);

/* The schema of a field such as "spec.runPolicy.suspend"; borrowed. */
struct json *crd_fixture_schema_at(struct crd_fixture *fixture, const char *path);

/* REFUSED_BY_CODE: OpenAPI cannot say it. REFUSED_BY_SCHEMA: it is about a pod or an autoscaler,
 * which an API server knows better than the code, whatever that says. */
enum crd_verdict { TAKEN, REFUSED, REFUSED_BY_CODE, REFUSED_BY_SCHEMA };
struct crd_row {
    const char *name, *spec; /* of a job */
    enum crd_verdict verdict;
};
/* Fails the test where one side says otherwise. */
void crd_fixture_check(struct crd_fixture *fixture, const struct crd_row *rows, size_t count);
#endif
