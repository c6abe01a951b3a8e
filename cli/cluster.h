/* Reads a cluster as the person of a kubeconfig, for commands: one GET after the other, each waited
 * for. Changes nothing there. */
#ifndef SHOAL_CLI_CLUSTER_H
#define SHOAL_CLI_CLUSTER_H

#include "base/error.h"
#include "base/options.h"
#include "base/str.h"

struct arena;
struct cluster;
struct json;

/* What every such command lets say where the cluster is. */
struct cluster_options {
    const char *kubeconfig; /* NULL: as operator/kube/kubeconfig.h finds it */
    const char *context;    /* NULL: current-context */
    const char *namespace_; /* NULL: see cluster_namespace */
};
/* Their rows in a table of options. */
/* clang-format off */
#define CLUSTER_OPTION_ROWS(o) \
    {"namespace", 'n', OPTION_TEXT, &(o)->namespace_, "NS", "namespace (the context's)", 0, 0, \
     NULL}, \
    {"context", 0, OPTION_TEXT, &(o)->context, "NAME", "context of the kubeconfig", 0, 0, NULL}, \
    {"kubeconfig", 0, OPTION_TEXT, &(o)->kubeconfig, "FILE", \
     "instead of $KUBECONFIG, a pod's own or ~/.kube/config", 0, 0, NULL}
/* clang-format on */

/* Whether they can be meant: no empty texts. */
int cluster_options_check(const struct cluster_options *options, struct error *err);

/* stop_fd: readable when someone wants to stop; -1: none. */
int cluster_open(struct cluster **ret_cluster, const struct cluster_options *options, int stop_fd,
                 struct error *err);
void cluster_close(struct cluster *cluster); /* NULL-safe */

/* The option's, else the context's, else "default". */
const char *cluster_namespace(const struct cluster *cluster);
const char *cluster_server(const struct cluster *cluster);

/* The object at the path (kube_path), with its query; the caller frees it. Errors are those of
 * kube.h, and ERR_CANCELLED: stop_fd is readable. */
int cluster_get(struct cluster *cluster, const char *path, struct json **ret_object,
                struct error *err);

/* Whether it was a right that was missing (403), and not the login that was refused (401). */
bool cluster_is_forbidden(const struct cluster *cluster, const struct error *err);

/* Prints "PROGRAM: text" and, in a line of its own, what to do about the error that one of these
 * gave; returns the exit code. cluster NULL: cluster_open gave it. */
int cluster_failed(const char *program, const struct cluster *cluster, const struct error *err);

/* Adds KEY=VALUE to a path as the next part of its query, escaped. */
void cluster_add_query(struct str *path, const char *key, const char *value);
#endif
