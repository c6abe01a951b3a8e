/* Where the API server is and who we are there: the pod's service account, or a kubeconfig file
 * (clusters, contexts, users with client certificates, tokens, token files, `exec` plugins). Files
 * are read again every minute, as what is in them rotates. now_ms is the wall clock. */
#ifndef SHOAL_OPERATOR_KUBE_KUBECONFIG_H
#define SHOAL_OPERATOR_KUBE_KUBECONFIG_H

#include "base/error.h"
#include "base/http.h"
#include "operator/kube/command.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kubeconfig;

struct kubeconfig_options {
    /* NULL: $KUBECONFIG (files with ":" between them are one), else the pod's service account, else
     * ~/.kube/config */
    const char *path;
    const char *context;         /* NULL: the file's current-context */
    const char *service_account; /* its directory; NULL: where Kubernetes mounts it */
    int64_t exec_limit_ms;       /* for an exec plugin; 0: 20 s */
};

/* Errors name file, context and field: a path that is not there, a certificate that has expired or
 * is not yet valid, an unknown context, insecure-skip-tls-verify (refused: TLS is
 * always verified). */
int kubeconfig_open(struct kubeconfig **ret_config, const struct kubeconfig_options *options,
                    int64_t now_ms, struct error *err);
void kubeconfig_close(struct kubeconfig *config); /* NULL-safe */

const char *kubeconfig_server(const struct kubeconfig *config); /* "https://host:port" */

#define KUBECONFIG_PENDING 1

/* Makes the credentials those of now: reads the files again if that was over a minute ago, starts
 * the exec plugin if it was not run yet or what it gave has expired, or will soon (the old then
 * stays in use until it has ended). `renew`: do it anyway, as the server refused them; a plugin is
 * still run once in 5 s at most. KUBECONFIG_PENDING: there are none until the plugin has ended: ask
 * again then. What cannot be read again is an error only with `renew`; else the old stays in use,
 * and kubeconfig_failure tells. */
int kubeconfig_refresh(struct kubeconfig *config, bool renew, int64_t now_ms, struct error *err);

/* While a plugin runs: what to poll (COMMAND_FDS_MAX at most) until kubeconfig_follow, which takes
 * its end, in *ret_left_ms at the latest. Returns how many; 0: none runs. */
size_t kubeconfig_fds(const struct kubeconfig *config, struct pollfd *fds, int64_t *ret_left_ms);
void kubeconfig_follow(struct kubeconfig *config, int64_t now_ms);

/* Why the credentials in use could not be renewed when last tried; ERR_NONE: they were. */
const struct error *kubeconfig_failure(const struct kubeconfig *config);

/* As of the last refresh, and valid until the next. */
const char *kubeconfig_token(const struct kubeconfig *config); /* NULL: none (certificates) */
struct http_tls kubeconfig_tls(const struct kubeconfig *config);
/* Another number after a refresh: kubeconfig_tls says something else. */
uint64_t kubeconfig_tls_version(const struct kubeconfig *config);

#ifdef __cplusplus
}
#endif
#endif
