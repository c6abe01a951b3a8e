/* Reads the fields of a PyTorchJob. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_SPEC_H
#define SHOAL_OPERATOR_DECODE_DECODE_SPEC_H

#include "base/json_read.h"
#include "operator/job/types.h"

/* Reads a whole PyTorchJob object; absent fields stay unset. */
void decode_spec(struct json_reader *reader, const struct json *object, struct job *job);
#endif
