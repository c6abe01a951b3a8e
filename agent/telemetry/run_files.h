/* The files that rank 0 writes a run's numbers to: CSV, JSONL, TensorBoard, Weights & Biases, each
 * if it was asked for. One that cannot be written any more is a warning. Private to telemetry. */
#ifndef SHOAL_AGENT_TELEMETRY_RUN_FILES_H
#define SHOAL_AGENT_TELEMETRY_RUN_FILES_H

#include "agent/telemetry/telemetry.h"

struct run_files;

/* Both are borrowed. Errors: as of telemetry_open. */
int run_files_open(struct run_files **ret_files, const struct telemetry_setting *setting,
                   const struct run_state *state, struct error *err);
/* The run ended with that code. NULL-safe. */
void run_files_close(struct run_files *files, int exit_code);

/* Writes what has just happened. path: of a checkpoint; NULL: none. */
void run_files_write(struct run_files *files, enum field_event event, const char *path);
#endif
