/* Reads what an agent tells of its training, and what a status kept of it. */
#ifndef SHOAL_OPERATOR_DECODE_DECODE_TRAINING_H
#define SHOAL_OPERATOR_DECODE_DECODE_TRAINING_H

#include "base/error.h"
#include "operator/job/goodput.h"

struct json;

/* status.training; what cannot be read is not known. */
struct training decode_training(const struct json *value);
struct goodput decode_goodput(const struct json *value);

/* What a pod says, which may be anything: at most TRAINING_MAX_BYTES of JSON with the members of an
 * agent's. ERR_INPUT: it is none. A member that is no number of its kind is not known. */
int decode_training_told(const char *text, size_t bytes, struct training *ret_training,
                         struct error *err);
/* The same of an answer at an address that others may have, as pods on their node's network do.
 * run: its id; "": not known. ERR_CONFLICT: another run has answered. */
int decode_training_answer(const char *text, size_t bytes, const char *run,
                           struct training *ret_training, struct error *err);
#endif
