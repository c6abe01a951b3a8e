/* The table of a store: texts by key, each written once. Not thread-safe. */
#ifndef SHOAL_AGENT_COMM_STORE_TABLE_H
#define SHOAL_AGENT_COMM_STORE_TABLE_H

#include "agent/comm/store.h"

struct store_table;

struct store_table *store_table_open(void);
void store_table_close(struct store_table *t); /* NULL-safe */

/* Errors: ERR_EXISTS, ERR_INPUT if a text is too long or STORE_KEYS_MAX keys are there. */
int store_table_set(struct store_table *t, const char *key, const char *value, struct error *err);
/* The value, or NULL if the key is not set. Lives as long as the table. */
const char *store_table_get(const struct store_table *t, const char *key);
#endif
