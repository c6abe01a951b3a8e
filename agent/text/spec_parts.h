/* Readers of what tokenizer.json and tokenizer_config.json are made of, for the field tables of
 * base/json_read.h. */
#ifndef SHOAL_AGENT_TEXT_SPEC_PARTS_H
#define SHOAL_AGENT_TEXT_SPEC_PARTS_H

#include "agent/text/spec.h"
#include "base/json_read.h"

/* A struct spec_part with all below it. */
void spec_read_part(struct json_reader *reader, const struct json *value, void *part);

/* An added token: an object, or only its content. */
void spec_read_added(struct json_reader *reader, const struct json *value,
                     struct spec_added *added);

/* The problem that a field is not there, unless it has one already. */
void spec_report_missing(struct json_reader *reader, const char *name);

/* The reader's place in the file, in its arena. */
const char *spec_location(struct json_reader *reader);
#endif
