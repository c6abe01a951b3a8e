/* Credentials from an `exec` plugin: the ExecCredential protocol of client.authentication.k8s.io/v1
 * and v1beta1 (kubernetes.io/docs/reference/access-authn-authz/authentication, "client-go
 * credential plugins"). The caller decides when to run it again. */
#ifndef SHOAL_OPERATOR_KUBE_KUBECONFIG_EXEC_H
#define SHOAL_OPERATOR_KUBE_KUBECONFIG_EXEC_H

#include "operator/kube/command.h"
#include "operator/kube/kubeconfig_file.h"

#include <stdint.h>

/* Lives in the arena. */
struct exec_credential {
    const char *token;             /* NULL: none */
    const char *certificate, *key; /* PEM; both or none */
    int64_t expires_ms;            /* expirationTimestamp, wall clock; INT64_MAX: none */
};

/* Reads the plugin's output. Pure. Errors say what is wrong but not where. */
int kubeconfig_exec_decode(const char *text, size_t bytes, const char *api_version,
                           struct arena *arena, struct exec_credential *ret_credential,
                           struct error *err);

/* The JSON for the plugin's KUBERNETES_EXEC_INFO. ca: PEM of the cluster's authorities; NULL: none.
 * Pure. */
const char *kubeconfig_exec_info(const struct kubeconfig_login *login, const char *ca,
                                 struct arena *arena);

/* kubeconfig_exec_start runs login->exec, for limit_ms at most. Once command_has_finished,
 * kubeconfig_exec_finish reads its output and frees the run. Errors begin with exec->what. */
int kubeconfig_exec_start(struct command_run **ret_run, const struct kubeconfig_login *login,
                          const char *ca, int64_t limit_ms, struct error *err);
int kubeconfig_exec_finish(struct command_run *run, const struct kubeconfig_exec *exec,
                           struct arena *arena, struct exec_credential *ret_credential,
                           struct error *err);
#endif
