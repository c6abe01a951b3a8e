/* What format a file has, by its first bytes and, of text, its name. */
#ifndef SHOAL_AGENT_DATASET_TOKEN_SNIFF_H
#define SHOAL_AGENT_DATASET_TOKEN_SNIFF_H

#include "agent/dataset/token_source.h"
#include "base/error.h"

/* `wanted` is taken at its word unless it is TOKENS_AUTO. Errors: ERR_UNSUPPORTED for pipes and
 * devices, and for formats that are known and not read (Parquet, Arrow's file format, one JSON
 * array), ERR_INPUT for unknown ones. */
int token_sniff(const char *path, enum token_format wanted, enum token_format *ret_format,
                struct error *err);
#endif
