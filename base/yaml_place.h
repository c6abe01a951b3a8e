/* Where in a YAML text something stands: for messages about the meaning of a text that yaml_parse
 * has read. */
#ifndef SHOAL_BASE_YAML_PLACE_H
#define SHOAL_BASE_YAML_PLACE_H

#include <stddef.h>

/* Finds the lines, from 1, of what `paths` name in the document that yaml_parse() has at `document`
 * of its array: "spec.replicas[Worker].args[0]", up to the first character that no step of a path
 * can begin with. If that is absent: the line of the innermost node around it. Does not follow
 * aliases and merge keys. 0: there is no such document. Parses the text once for all paths. */
void yaml_lines(const char *text, size_t bytes, size_t document, const char *const *paths,
                size_t count, size_t *ret_lines);
#endif
