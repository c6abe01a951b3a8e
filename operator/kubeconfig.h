/* Where the API server is and who we are there: the pod's service account, or a kubeconfig file
 * (clusters, contexts, users with client certificates, tokens, token files, `exec` plugins). Tokens
 * of files are read again when they change. Field names are those of
 * kubernetes.io/docs/reference/config-api/kubeconfig.v1. */
#ifndef SHOAL_OPERATOR_KUBECONFIG_H
#define SHOAL_OPERATOR_KUBECONFIG_H

#include "base/error.h"
#include "base/http.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kubeconfig;

struct kubeconfig_options {
    const char *path; /* NULL: $KUBECONFIG, else the pod's service account, else ~/.kube/config */
    const char *context; /* NULL: the file's current-context */
};

/* Errors name file, context and field: a path that is not there, a certificate that has expired or
 * is not yet valid, an unknown context, insecure-skip-tls-verify (refused: TLS is always verified).
 */
int kubeconfig_open(struct kubeconfig **ret_config, const struct kubeconfig_options *options,
                    int64_t now_ms, struct error *err);
void kubeconfig_close(struct kubeconfig *config); /* NULL-safe */

const char *kubeconfig_server(const struct kubeconfig *config);    /* "https://host:port" */
const char *kubeconfig_namespace(const struct kubeconfig *config); /* "default" if none is stated */
struct http_tls kubeconfig_tls(const struct kubeconfig *config);

/* The bearer token to use now, NULL if there is none (certificates). Reads the file again if it has
 * changed or is older than a minute; runs the exec plugin when its token has expired. `renew`: the
 * last one was refused. */
int kubeconfig_token(struct kubeconfig *config, bool renew, int64_t now_ms, const char **ret_token,
                     struct error *err);

#ifdef __cplusplus
}
#endif
#endif
