/* The API server's address and our credentials: the pod's service account, or a kubeconfig file
 * (clusters, contexts, users with client certificates, tokens, token files, `exec` plugins). Files
 * are read again every minute, as tokens and certificates are rotated. now_ms is the wall clock. */
#ifndef SHOAL_OPERATOR_KUBE_KUBECONFIG_H
#define SHOAL_OPERATOR_KUBE_KUBECONFIG_H

#include "base/error.h"
#include "base/http.h"
#include "operator/kube/command.h"

struct kubeconfig;

struct kubeconfig_options {
    /* NULL: $KUBECONFIG (a list with ":"), else the pod's service account, else ~/.kube/config */
    const char *path;
    const char *context;         /* NULL: the file's current-context */
    const char *service_account; /* its directory; NULL: the mount path of Kubernetes */
    int64_t exec_limit_ms;       /* for an exec plugin; 0: 20 s */
};

/* Errors name file, context and field: a missing file, a certificate that has expired or is not
 * valid yet, an unknown context, insecure-skip-tls-verify (unsupported: TLS is always verified). */
int kubeconfig_open(struct kubeconfig **ret_config, const struct kubeconfig_options *options,
                    int64_t now_ms, struct error *err);
void kubeconfig_close(struct kubeconfig *config); /* NULL-safe */

const char *kubeconfig_server(const struct kubeconfig *config); /* "https://host:port" */
/* That commands are about unless they name another: the context's, or the pod's own; else
 * "default", as with kubectl. */
const char *kubeconfig_namespace(const struct kubeconfig *config);

#define KUBECONFIG_PENDING 1

/* Renews the credentials: reads the files again after a minute, runs the exec plugin if it has not
 * run or its credentials expire soon. The old ones stay in use while the plugin runs. `renew`: the
 * server refused the credentials, so renew them now; a plugin still runs once per 5 s at most.
 * KUBECONFIG_PENDING: there are none until the plugin ends. Files that cannot be read are an error
 * only with `renew`; else the old credentials stay in use and kubeconfig_failure says why. */
int kubeconfig_refresh(struct kubeconfig *config, bool renew, int64_t now_ms, struct error *err);

/* What to poll while a plugin runs. Returns the number of fds, COMMAND_FDS_MAX at most; 0: none
 * runs. Call kubeconfig_follow when one is ready, or in *ret_left_ms at the latest. */
size_t kubeconfig_fds(const struct kubeconfig *config, struct pollfd *fds, int64_t *ret_left_ms);
void kubeconfig_follow(struct kubeconfig *config, int64_t now_ms);

/* Why the last renewal failed; ERR_NONE: it did not. */
const struct error *kubeconfig_failure(const struct kubeconfig *config);

/* The rest is as of the last refresh and valid until the next. */
const char *kubeconfig_token(const struct kubeconfig *config); /* NULL: none (certificates) */
struct http_tls kubeconfig_tls(const struct kubeconfig *config);
/* Changes whenever a refresh changes what kubeconfig_tls returns. */
uint64_t kubeconfig_tls_version(const struct kubeconfig *config);
#endif
