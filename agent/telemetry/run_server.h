/* The run over HTTP: the live page (docs/page.md), /status (JSON), /progress (of it what the
 * operator asks for, and below it for who looks at the run), /metrics (Prometheus), /healthz, and
 * at /steps a WebSocket with a JSON object for each step, evaluation and save. Answers come from
 * what was published last, so that a busy loop stays visible. */
#ifndef SHOAL_AGENT_TELEMETRY_RUN_SERVER_H
#define SHOAL_AGENT_TELEMETRY_RUN_SERVER_H

#include "agent/telemetry/fields.h"
#include "agent/telemetry/page_past.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct run_server;

struct run_server_setting {
    const char *host; /* as in httpd_open, which also says what errors there are */
    int port;
    double healthy_within_s;    /* /healthz answers 503 when nothing was published for so long */
    int sign_of_life_ms;        /* who looks at the live page hears something at least so often */
    int64_t (*steady_us)(void); /* monotonic */
    struct page_keeper keeper;
};

/* Listens and publishes the state. */
int run_server_open(struct run_server **ret_server, const struct run_server_setting *setting,
                    const struct run_state *state, struct error *err);
void run_server_close(struct run_server *server); /* NULL-safe */
int run_server_port(const struct run_server *server);

/* Renews the pages. */
void run_server_publish(struct run_server *server, const struct run_state *state);
/* The run ends by a failure: tells whoever keeps the page's time where it went until now. */
void run_server_failed(struct run_server *server, const struct run_state *state);
/* What /metrics has behind the run's own, from now on: of each part what came last. Copies; from
 * any thread. */
enum run_server_part { RUN_SERVER_GPUS, RUN_SERVER_HEALTH, RUN_SERVER_PARTS };
void run_server_add_metrics(struct run_server *server, enum run_server_part part, const char *text,
                            size_t bytes);
/* What /status and the live page tell of all ranks, from now on; also when the loop stands still.
 * Likewise. */
void run_server_add_ranks(struct run_server *server, const char *json);
/* Who hangs, and its pod's node rank, for /progress; -1: nobody. And TRAINING_LAST_HANG's object
 * (contract.h), for /status too; "": none. Likewise. */
void run_server_add_hung(struct run_server *server, int rank, int node, const char *last_hang);
/* Sends the event's object to whoever listens. */
void run_server_push(struct run_server *server, enum field_event event,
                     const struct run_state *state);
#endif
