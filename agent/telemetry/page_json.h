/* The run as the live page shows it, the members of docs/page.md that an agent knows. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_PAGE_JSON_H
#define SHOAL_AGENT_TELEMETRY_PAGE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/telemetry/page_past.h"
#include "agent/telemetry/run_state.h"
#include "base/str.h"

struct page_view {
    const struct run_state *state;
    const struct page_past *past;
    const char *ranks; /* an array as JSON, an object for each; "": not known */
    int hung_rank;     /* who holds up the others; -1: nobody */
    int64_t version;   /* of the last message */
};

/* What is served at PAGE_JOBS_PATH and below. False: there is no such job. */
bool page_json_answer(const struct page_view *view, const char *path, struct str *out);
/* What is served at TRAINING_DETAIL_PATH. */
void page_json_detail(const struct page_view *view, struct str *out);
/* The message of view->version for PAGE_LIVE_PATH. */
void page_json_message(const struct page_view *view, struct str *out);
#endif
