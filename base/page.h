/* The live page: its files, which are part of the programs, and where it is served, by the operator
 * and by agents alike. docs/page.md states the JSON below these paths. */
#ifndef SHOAL_BASE_PAGE_H
#define SHOAL_BASE_PAGE_H

/* All jobs; one job is at this, '/', its namespace, '/' and its name. */
#define PAGE_JOBS_PATH "/api/v1/jobs"
/* A WebSocket: what has changed. */
#define PAGE_LIVE_PATH "/live"

/* Bounds that docs/page.md states. */
#define PAGE_SIGN_OF_LIFE_MS (10 * 1000) /* a message at PAGE_LIVE_PATH at least so often */
#define PAGE_LOSSES_MAX      32
#define PAGE_POINTS_MAX      120
#define PAGE_SEGMENTS_MAX    60
#define PAGE_RANKS_MAX       64
#define PAGE_MESSAGE_BYTES   500          /* of a condition's or an event's message */
#define PAGE_FILES_MAX_BYTES (100 * 1000) /* of base/page, together */

struct httpd;

/* From now on "/" is the page, and its files are below "/page/". */
void page_publish(struct httpd *httpd);
#endif
