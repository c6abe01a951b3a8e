/* Which steps of which ranks are traced, and into which files. Steps count from 1, as the run
 * counts them. Pure. */
#ifndef SHOAL_AGENT_CONFIG_PROFILE_PLAN_H
#define SHOAL_AGENT_CONFIG_PROFILE_PLAN_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A window: after start_step steps, warmup_steps in which the tools are on and nothing is kept,
 * then active_steps that are traced; begun anew every repeat_every steps. */
struct profile_plan {
    int64_t start_step;   /* >= 0 */
    int64_t warmup_steps; /* >= 0 */
    int64_t active_steps; /* >= 1 */
    int64_t repeat_every; /* >= warmup_steps + active_steps; 0: one window */
};

enum profile_part { PROFILE_OFF, PROFILE_WARMUP, PROFILE_ACTIVE };

/* What step `step` is part of; *ret_is_last: the window's trace ends with it. */
enum profile_part profile_plan_part(const struct profile_plan *plan, int64_t step,
                                    bool *ret_is_last);

/* ranks: "all", or numbers separated by commas. Errors: ERR_CONFIG. *ret_highest: of the numbers;
 * -1 with "all"; *ret_several: there is more than one. */
int profile_ranks_check(const char *ranks, int *ret_highest, bool *ret_several, struct error *err);
bool profile_ranks_have(const char *ranks, int rank); /* ranks: checked */

/* Where traces go: dir and file may have the fields {step} and {rank}; a window's step is its last.
 * Errors: ERR_CONFIG for what is no field, and where several traces would be one file. */
int profile_path_check(const char *dir, const char *file, bool several_ranks, bool several_windows,
                       struct error *err);
void profile_path(const char *dir, const char *file, bool gzip, int rank, int64_t step, char *out,
                  size_t out_bytes);
/* The part of `dir` without fields: what can be made before the first step. */
void profile_fixed_dir(const char *dir, char *out, size_t out_bytes);
/* Whether a trace is compressed: it is asked for, or the name ends so. */
bool profile_is_gzip(const char *file, bool gzip);
#endif
