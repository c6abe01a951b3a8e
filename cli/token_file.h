/* Writes a file of token ids in llm.c's format (agent/dataset/llmc_bin.h): under a temporary name,
 * in order, and put in place when it is whole. */
#ifndef SHOAL_CLI_TOKEN_FILE_H
#define SHOAL_CLI_TOKEN_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOKEN_FILE_MAX_IDS = INT32_MAX }; /* the header's field is an int32 */

struct token_file;

/* wide: 32 bits for each id (Llama 3's form), else 16 (GPT-2's). ERR_EXISTS: a
 * directory is there. */
int token_file_create(const char *path, bool wide, struct token_file **ret_file, struct error *err);
/* The ids fit the width. ERR_LIMIT if there are more than the format can count. */
int token_file_add(struct token_file *file, const int32_t *ids, size_t count, struct error *err);
/* Puts it in place, durably, over what was there. Frees `file`, on failure too: nothing is left
 * then. */
int token_file_finish(struct token_file *file, int64_t *ret_ids, struct error *err);
void token_file_abandon(struct token_file *file); /* nothing is left; NULL-safe */
#endif
