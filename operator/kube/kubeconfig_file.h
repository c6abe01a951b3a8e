/* Reads a kubeconfig file into structs, and makes the login of one of its contexts. Field names are
 * those of kubernetes.io/docs/reference/config-api/kubeconfig.v1. Pure: opens no other file, runs
 * nothing, reads no clock. Fields that we do not support (passwords, auth-provider, impersonation,
 * proxies, unverified TLS) are errors, never ignored. */
#ifndef SHOAL_OPERATOR_KUBE_KUBECONFIG_FILE_H
#define SHOAL_OPERATOR_KUBE_KUBECONFIG_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct kubeconfig_file;

/* A text in the file itself or in another file. Neither: it is absent. */
struct kubeconfig_source {
    const char *what; /* for errors: "FILE: user "dev": client-key" */
    const char *path; /* resolved against the kubeconfig's directory; NULL: see `text` */
    const char *text; /* base64 is decoded */
};

struct kubeconfig_variable {
    const char *name, *value;
};

/* A command that prints credentials (an `exec` plugin). */
struct kubeconfig_exec {
    const char *what; /* for errors: "FILE: user "dev": exec" */
    const char *api_version;
    const char *command; /* with a "/": resolved like a path; else searched on the PATH */
    const char **args;
    size_t arg_count;
    struct kubeconfig_variable *env; /* added to our environment */
    size_t env_count;
    const char *install_hint; /* shown if the command is missing; may be NULL */
    bool provide_cluster_info;
};

/* A server and the credentials for it. Lives in the arena. */
struct kubeconfig_login {
    const char *server; /* without a trailing "/" */
    const char *server_name;
    struct kubeconfig_source ca, certificate, key, token;
    const struct kubeconfig_exec *exec; /* NULL: none */
    const char *namespace_;             /* of the context, for commands; NULL: none */
};

/* Reads one file and appends it to *files (NULL: the first). Of entries with the same name the
 * first wins, as in $KUBECONFIG. ERR_INPUT names path and field. */
int kubeconfig_file_add(struct kubeconfig_file **files, const char *text, size_t bytes,
                        const char *path, struct arena *arena, struct error *err);

/* The login of a context; NULL: of current-context. ERR_CONFIG: an unknown name or a malformed
 * field. ERR_UNSUPPORTED: a field that we do not support. */
int kubeconfig_file_login(const struct kubeconfig_file *files, const char *context,
                          struct arena *arena, struct kubeconfig_login *ret_login,
                          struct error *err);
#endif
