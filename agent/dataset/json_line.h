/* One line of a .jsonl file: an object, of which one text is wanted. Many threads may. */
#ifndef SHOAL_AGENT_DATASET_JSON_LINE_H
#define SHOAL_AGENT_DATASET_JSON_LINE_H

#include "base/error.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct json_t;

/* Before the first line, while there is one thread. */
void json_line_prepare(void);

/* The text of `column`, UTF-8, which lives as long as what is returned (json_line_free). NULL with
 * ERR_INPUT: no JSON object, or without such a text. */
struct json_t *json_line_text(const char *line, size_t bytes, const char *column,
                              const char **ret_text, size_t *ret_bytes, struct error *err);
void json_line_free(struct json_t *line);

#ifdef __cplusplus
}
#endif
#endif
