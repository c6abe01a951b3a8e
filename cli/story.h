/* One job as a story: where it stands, who waits for what, where its time went, what happened and
 * what to look at next. Pure: text from facts. */
#ifndef SHOAL_CLI_STORY_H
#define SHOAL_CLI_STORY_H

#include "base/str.h"
#include "cli/job_facts.h"

struct story {
    const struct job_facts *job;
    const struct pod_facts *pods; /* in the order of their ranks */
    size_t pod_count;
    const struct event_facts *events; /* in the order of time */
    size_t event_count;
    /* Why pods or events could not be read; NULL: they were. */
    const char *pods_missing, *events_missing;
    const char *page; /* where the run serves itself; NULL: not known */
    bool is_local;    /* of this machine: what to look at next are files, not pods */
};

/* Lines of at most `columns` - 1 characters but for words that are longer, and for the commands at
 * the end, which stay whole. LAYOUT_UNLIMITED: as long as they are. */
void story_render(const struct story *story, int columns, int64_t now_ms, struct str *out);
#endif
