/* Where in a YAML text something stands: for messages about the meaning of a text that yaml_parse
 * has read. */
#ifndef SHOAL_BASE_YAML_PLACE_H
#define SHOAL_BASE_YAML_PLACE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The line, from 1, of what `path` names in the document that yaml_parse has at `document` of its
 * array: "spec.replicas[Worker].args[0]", up to the first character that no step of it can begin
 * with. If that is not there: the line of the innermost thing around it that is. What an alias or a
 * merge key brings is not looked into. 0: there is no such document. */
size_t yaml_line(const char *text, size_t bytes, size_t document, const char *path);

#ifdef __cplusplus
}
#endif
#endif
