/* Readers of a tokenizer's components and added tokens, as tokenizer.json and tokenizer_config.json
 * have them, for the field tables of base/json_read.h. */
#ifndef SHOAL_AGENT_TEXT_SPEC_COMPONENTS_H
#define SHOAL_AGENT_TEXT_SPEC_COMPONENTS_H

#include "agent/text/spec.h"
#include "base/json_read.h"

/* A struct spec_component with all below it. */
void spec_read_component(struct json_reader *reader, const struct json *value, void *component);

/* An added token: an object, or only its content. */
void spec_read_added(struct json_reader *reader, const struct json *value,
                     struct spec_added *added);

/* A struct spec_option: true or false. */
void spec_read_option(struct json_reader *reader, const struct json *value, void *option);

/* The problem that a field is not there, unless it has one already. */
void spec_report_missing(struct json_reader *reader, const char *name);

/* The reader's place in the file, in its arena. */
const char *spec_location(struct json_reader *reader);
#endif
