/* Reads resource quantities. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_RESOURCES_H
#define SHOAL_OPERATOR_DECODE_DECODE_RESOURCES_H

#include "base/json_read.h"
#include "operator/job/types.h"

/* Reads an object of resource: quantity into the struct quantities at `quantities`. */
void decode_quantities(struct json_reader *reader, const struct json *value, void *quantities);

/* Reads a container's ResourceRequirements into the struct quantities at `requests`. A resource
 * without a request gets its limit, as the API server's defaulting does. */
void decode_resources(struct json_reader *reader, const struct json *value, void *requests);
#endif
