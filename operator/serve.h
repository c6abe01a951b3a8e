/* What the operator serves over HTTP: /metrics on one address, /healthz and /readyz on another, or
 * all on one if the two are the same. What is small is published now and then; /metrics is printed
 * when it is asked for. */
#ifndef SHOAL_OPERATOR_SERVE_H
#define SHOAL_OPERATOR_SERVE_H

#include "operator/config.h"
#include "operator/metrics.h"

struct serve;
struct httpd;

/* Listens at an address of the configuration; NULL: at none. */
int serve_listen(const char *address, struct httpd **ret_httpd, struct error *err);

/* Listens; /readyz says 503 until serve_publish changes it. */
int serve_open(struct serve **ret_serve, const struct operator_config *config, struct error *err);
void serve_close(struct serve *serve); /* NULL-safe */

/* From now on /metrics tells of these numbers, which live until serve_close, and of this view,
 * which is copied. */
void serve_publish(struct serve *serve, struct metrics *metrics, const struct metrics_view *view);
#endif
