/* The operator's flags and environment, checked. Flags are named as the training operator's. Those
 * without a meaning here are accepted and logged, so that its manifests start this operator. */
#ifndef SHOAL_OPERATOR_CONFIG_H
#define SHOAL_OPERATOR_CONFIG_H

#include "base/error.h"
#include "base/options.h"
#include "base/str.h"
#include "operator/job/node.h"

#define UI_BIND_ADDRESS "127.0.0.1:8082"

/* All texts are borrowed from argv and the environment. */
struct operator_config {
    const char *metrics_bind_address; /* "[HOST]:PORT"; "0": disabled */
    const char *health_probe_bind_address;
    const char *ui_bind_address; /* of the live page; NULL: UI_BIND_ADDRESS, if that is free */
    bool leader_elect;
    const char *leader_election_id;   /* name of the Lease */
    const char *own_namespace;        /* of the Lease */
    const char *own_name;             /* part of our identity in the Lease */
    const char *namespace_;           /* that is watched; NULL: all */
    const char *kubeconfig, *context; /* NULL: see kubeconfig.h */
    const char *gang_scheduler_name;  /* NULL: none */
    const char *init_image;           /* this and the next two: see init_template.h */
    const char *init_template_file;
    int64_t init_max_tries;
    int64_t default_backoff_limit;
    int64_t node_lost_s;  /* see struct reconcile_options; 0: never */
    int64_t overdue_s;    /* likewise */
    int64_t avoid_node_s; /* likewise */
    bool watch_nodes;
    bool kueue;
    struct node_signs signs; /* of bad hardware, that are looked for then */
    int64_t progress_s;      /* between two asks of a job how its training goes; 0: never */
    int log_level;           /* enum log_level */
    bool help, version;
    struct option_list schemes; /* --enable-scheme: empty, or with pytorchjob among them */
    struct option_list ignored; /* flags of the training operator without a meaning here */
};

/* env(name): getenv, or a test's. */
int operator_config_parse(struct operator_config *config, int argc, char *const *argv,
                          const char *(*env)(const char *name), struct error *err);
void operator_config_help(struct str *out);

/* Whether the operator runs jobs of this scheme: pytorchjob, in any case of the letters, as the
 * training operator takes it. */
bool operator_config_runs_scheme(const char *scheme);

/* Splits "[HOST]:PORT"; host "": all addresses. "0" gives port 0. */
int operator_config_address(const char *text, char *host, size_t host_bytes, int *ret_port,
                            struct error *err);
#endif
