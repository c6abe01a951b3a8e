/* Configurations as people write them: a command line in one text, and one variable. */
#ifndef SHOAL_TESTS_AGENT_CONFIG_LINE_H
#define SHOAL_TESTS_AGENT_CONFIG_LINE_H

#include "agent/config/config.h"

/* config_parse() of the line's words, which spaces part, in an environment of one variable,
 * "NAME=value"; "" for none. */
int config_line_parse(struct arena *arena, const char *line, const char *environment,
                      struct config *config, struct error *err);

/* The settings that are not at their default, in one line joined by ", ". */
void config_line_summary(const struct config *config, struct str *out);
#endif
