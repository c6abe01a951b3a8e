/* What a kubeconfig file says: its text into structs, and the login that one of its contexts
 * stands for. Field names are those of kubernetes.io/docs/reference/config-api/kubeconfig.v1. Pure:
 * it opens no file that is named in it, runs nothing and reads no clock. What we do not do
 * (passwords, auth-provider, impersonation, proxies, unverified TLS) is refused, never ignored. */
#ifndef SHOAL_OPERATOR_KUBE_KUBECONFIG_FILE_H
#define SHOAL_OPERATOR_KUBE_KUBECONFIG_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct arena;
struct kubeconfig_file;

/* A text that stands in the file itself or in another one. Neither: it is not given. */
struct kubeconfig_source {
    const char *what; /* for errors: "FILE: user "dev": client-key" */
    const char *path; /* resolved against the kubeconfig's directory; NULL: `text` */
    const char *text; /* decoded, if the field is base64 */
};

struct kubeconfig_variable {
    const char *name, *value;
};

/* A command that prints our credentials (an `exec` plugin). */
struct kubeconfig_exec {
    const char *what; /* for errors: "FILE: user "dev": exec" */
    const char *api_version;
    const char *command; /* with a "/": resolved like a path; else found on the PATH */
    const char **args;
    size_t arg_count;
    struct kubeconfig_variable *env; /* added to ours */
    size_t env_count;
    const char *install_hint; /* for the user whose command is missing; may be NULL */
    bool provide_cluster_info;
};

/* Where to go and who to be there. Lives in the arena. */
struct kubeconfig_login {
    const char *server; /* without a "/" at its end */
    const char *server_name;
    struct kubeconfig_source ca, certificate, key, token;
    const struct kubeconfig_exec *exec; /* NULL: none */
};

/* Reads one file's text and puts it behind *files (NULL: the first): where several say the same
 * name, the first wins, as in $KUBECONFIG. ERR_INPUT names path and field. */
int kubeconfig_file_add(struct kubeconfig_file **files, const char *text, size_t bytes,
                        const char *path, struct arena *arena, struct error *err);

/* The login of a context; NULL: of current-context. ERR_CONFIG for a name that is not there or a
 * field that does not fit, ERR_UNSUPPORTED for what we do not do. */
int kubeconfig_file_login(const struct kubeconfig_file *files, const char *context,
                          struct arena *arena, struct kubeconfig_login *ret_login,
                          struct error *err);

#ifdef __cplusplus
}
#endif
#endif
