/* Between the trainer and telemetry: turns what the trainer tells its listener into the numbers of
 * a run, with the time, the memory and the traffic that go with them. */
#ifndef SHOAL_AGENT_REPORTER_H
#define SHOAL_AGENT_REPORTER_H

#include "agent/config.h"
#include "agent/model.h"
#include "agent/telemetry/telemetry.h"
#include "agent/topology.h"
#include "agent/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the configuration says of a run: its facts, where its numbers go. node: this machine's name.
 * Clocks and `out` are the system's. Texts are the configuration's, the model's and the topology's.
 */
struct telemetry_setting reporter_setting(const struct config *config, const struct model *model,
                                          const struct topology *topology, const char *node);

struct reporter;

struct reporter_parts {
    struct telemetry *telemetry;     /* the reporter's from now on */
    struct trainer_listener console; /* is told everything too */
    const struct comm *world;        /* whose traffic is told */
    bool is_language;                /* the model has tokens */
    int64_t (*now_us)(void);         /* monotonic */
};

/* Tells that the model is about to be built. */
struct reporter *reporter_open(const struct reporter_parts *parts);
void reporter_close(struct reporter *reporter); /* NULL-safe */

/* For trainer_open; its stop_asked is the console's. */
struct trainer_listener reporter_listener(struct reporter *reporter);

/* Before trainer_run: the clock of the first step starts. trainer: whose memory is told from now
 * on; NULL: nobody's. */
void reporter_begin(struct reporter *reporter, const struct trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
