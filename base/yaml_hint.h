/* What somebody who handed us a text that is no YAML most likely did. */
#ifndef SHOAL_BASE_YAML_HINT_H
#define SHOAL_BASE_YAML_HINT_H

#include <stdbool.h>
#include <stddef.h>

/* What a text that begins so is, if it is no text: "gzip: unpack it first". NULL: nothing known. */
const char *yaml_hint_kind(const char *text, size_t bytes);

/* Whether it is a page that a browser shows, as is fetched in place of the file that it is about.
 * It may well be YAML: a single string. */
bool yaml_hint_is_page(const char *text, size_t bytes);

/* What is the matter with this line (from 0) of a text that could not be read there: a tab in its
 * indentation, a template that was not rendered. NULL: nothing known. */
const char *yaml_hint_line(const char *text, size_t bytes, size_t line);
#endif
