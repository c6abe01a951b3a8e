/* Traces of a rank: the steps and phases of its trainer's thread, and what its devices' streams did
 * meanwhile (kernels/trace.h). Both are on one time axis, in one file per window. Knows devices;
 * not what is trained, nor when to look. Used by the thread that queues the work. */
#ifndef SHOAL_AGENT_TELEMETRY_PROFILER_H
#define SHOAL_AGENT_TELEMETRY_PROFILER_H

#include "base/error.h"
#include "kernels/device.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PROFILER_MAX_DEVICES = 4,
    PROFILER_MAX_EVENTS = 1000 * 1000, /* of a window and device; more are counted, not kept */
};

struct profiler_setting {
    int rank, world_size;
    bool memory;        /* trace the bytes in use, too */
    int64_t max_events; /* PROFILER_MAX_EVENTS, but in tests */
};

struct profiler;

struct profiler *profiler_open(const struct profiler_setting *setting);
void profiler_close(struct profiler *profiler); /* NULL-safe; its devices are open yet */

/* To be traced, too. what: for people ("cpu"); lives on. */
void profiler_add_device(struct profiler *profiler, struct device *device, const char *what);

/* From now on everything is kept, until it is written or dropped. Logs, once, what a device cannot
 * record. */
void profiler_begin(struct profiler *profiler);
bool profiler_is_recording(const struct profiler *profiler);
void profiler_discard(struct profiler *profiler);
/* Waits for the devices' streams and writes what was kept since profiler_begin(). Logs what was too
 * much. Errors: the file cannot be written; what was kept is dropped all the same. */
int profiler_write(struct profiler *profiler, const char *path, bool gzip, struct error *err);

/* The trainer's thread begins step `step`, ends it (was_one: there was data for it), and meanwhile
 * is about `phase` (until the next phase, or the end of the step; NULL: nothing that has a name).
 * NULL-safe, so that the caller need not know whether anybody looks. phase: lives on. */
void profiler_begin_step(struct profiler *profiler, int64_t step);
void profiler_phase(struct profiler *profiler, const char *phase);
void profiler_end_step(struct profiler *profiler, bool was_one);
#endif
