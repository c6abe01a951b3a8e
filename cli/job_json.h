/* The facts of jobs as JSON, for programs; docs/cli.md has its members, which stay. */
#ifndef SHOAL_CLI_JOB_JSON_H
#define SHOAL_CLI_JOB_JSON_H

#include "cli/story.h"

/* {"jobs": [...]}; the caller frees the text. */
char *job_json_list(const struct job_facts *const *jobs, size_t count);

/* {"job": {...}, "replicas": [...], "events": [...], "page": "..."}; the caller frees the text. */
char *job_json_story(const struct story *story);
#endif
