/* Samples from text: rows are tokenized, packed into windows and forgotten. Where a window begins
 * is a row and an id in it, so a position needs no carried-over ids: going on reads that row's
 * block again, tokenizes that row again and leaves out what was used. */
#ifndef SHOAL_AGENT_DATASET_TOKEN_STREAM_H
#define SHOAL_AGENT_DATASET_TOKEN_STREAM_H

#include "agent/dataset/token_reader.h"
#include "agent/dataset/token_source.h"
#include "agent/dataset/token_split.h"
#include "base/error.h"

/* paths [count], split and the options' strings must outlive the reader. format: TOKENS_JSONL or
 * TOKENS_TEXT. Errors: ERR_CONFIG without a tokenizer, or without an id that is asked for. */
int token_stream_open(const char *const *paths, int count, enum token_format format,
                      const struct token_options *options, const struct token_split *split,
                      const char *name, struct token_reader **ret_reader, struct error *err);
#endif
