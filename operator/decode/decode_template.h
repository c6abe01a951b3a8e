/* Reads a pod template. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_TEMPLATE_H
#define SHOAL_OPERATOR_DECODE_DECODE_TEMPLATE_H

#include "base/json_read.h"
#include "operator/job/types.h"

/* Reads a PodTemplateSpec into the struct pod_template at `template_`. */
void decode_template(struct json_reader *reader, const struct json *value, void *template_);

/* Reads an object with text values, such as labels, into the struct pairs at `pairs`. */
void decode_pairs(struct json_reader *reader, const struct json *value, void *pairs);
#endif
