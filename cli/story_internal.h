/* The parts of a story: story.c tells how the job stands, story_time.c where its time went, what
 * happened and what to look at next. */
#ifndef SHOAL_CLI_STORY_INTERNAL_H
#define SHOAL_CLI_STORY_INTERNAL_H

#include "cli/story.h"

/* "  LABEL       TEXT", wrapped. */
void story_add_field(const char *label, const char *text, int columns, struct str *out);

/* The pod whose output is the job's; NULL: it is not there. */
const struct pod_facts *story_leader(const struct story *story);

void story_add_goodput(const struct goodput *goodput, struct str *out);
void story_add_events(const struct story *story, int columns, int64_t now_ms, struct str *out);
void story_add_next(const struct story *story, struct str *out);
#endif
