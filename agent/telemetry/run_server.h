/* The run over HTTP: /status (JSON), /metrics (Prometheus), /healthz, and at /steps a WebSocket
 * with a JSON object for each step, evaluation and save. Answers come from what was published last,
 * so that a busy loop stays visible. */
#ifndef SHOAL_AGENT_TELEMETRY_RUN_SERVER_H
#define SHOAL_AGENT_TELEMETRY_RUN_SERVER_H

#include "agent/telemetry/fields.h"
#include "base/error.h"

#include <stddef.h>

struct run_server;

/* Listens (host and errors as in httpd_open) and publishes the state. /healthz answers 503 when
 * nothing was published for healthy_within_s. */
int run_server_open(struct run_server **ret_server, const char *host, int port,
                    double healthy_within_s, const struct run_state *state, struct error *err);
void run_server_close(struct run_server *server); /* NULL-safe */
int run_server_port(const struct run_server *server);

/* Renews the pages. */
void run_server_publish(struct run_server *server, const struct run_state *state);
/* What /metrics has behind the run's own, from now on: of each part what came last. Copies; from
 * any thread. */
enum run_server_part { RUN_SERVER_GPUS, RUN_SERVER_HEALTH, RUN_SERVER_PARTS };
void run_server_add_metrics(struct run_server *server, enum run_server_part part, const char *text,
                            size_t bytes);
/* What /status tells of all ranks, from now on; also when the loop stands still. Likewise. */
void run_server_add_ranks(struct run_server *server, const char *json);
/* Sends the event's object to whoever listens. */
void run_server_push(struct run_server *server, enum field_event event,
                     const struct run_state *state);
#endif
