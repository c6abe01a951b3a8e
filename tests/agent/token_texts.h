/* Text files for tests of the streams, and a tokenizer whose ids are known: a byte is its value
 * +
 * 3. */
#ifndef SHOAL_TESTS_AGENT_TOKEN_TEXTS_H
#define SHOAL_TESTS_AGENT_TOKEN_TEXTS_H

#include "agent/dataset/token_source.h"

#include <stddef.h>
#include <stdint.h>

enum { TEXTS_BOS = 1, TEXTS_EOS = 2, TEXTS_FIRST = 3, TEXTS_VOCABULARY = 259 };

struct token_encoder texts_encoder(void);

/* The options of a test: split train, no shuffling, window T. */
struct token_options texts_options(const char *dataset, int64_t window);

/* Writes bytes to <dir>/<name>, making the directories between; returns the path, the
 * caller frees. */
char *texts_write(const char *dir, const char *name, const void *bytes, size_t size);
/* The same, gzipped as `members` gzip streams behind one another. */
char *texts_write_gzip(const char *dir, const char *name, const void *bytes, size_t size,
                       int members);

/* Text number i: of a length and with letters that differ from number to number, never empty. The
 * caller frees. */
char *texts_document(int64_t i);
/* .jsonl lines of the texts first .. first + count - 1. The caller frees. */
char *texts_lines(int64_t first, int64_t count);

struct token_source *texts_open(const struct token_options *options);
void texts_open_fails(const struct token_options *options, enum error_code code, const char *part);
#endif
