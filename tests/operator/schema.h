/* An OpenAPI schema of the kind that a CustomResourceDefinition holds, and values held against it:
 * as much of it as our CRD uses. A keyword that is not known here fails the test, so that none is
 * passed over. */
#ifndef SHOAL_TESTS_OPERATOR_SCHEMA_H
#define SHOAL_TESTS_OPERATOR_SCHEMA_H

#include "base/lines.h"

struct json;

/* The schema of the only version of the CRD in the file; the caller owns it (json_free). */
struct json *schema_of_crd(const char *path);

/* Adds "PATH: why" for all that does not fit, unknown fields (which an API server drops)
 * included. `path` names the value; "" is the object itself. */
void schema_check(const struct json *schema, const struct json *value, const char *path,
                  struct lines *problems);
#endif
