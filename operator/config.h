/* The operator's flags and environment, checked. Names are the training operator's where it has
 * them; those that mean nothing here are taken and told about, so that its manifests start us. */
#ifndef SHOAL_OPERATOR_CONFIG_H
#define SHOAL_OPERATOR_CONFIG_H

#include "base/error.h"
#include "base/options.h"
#include "base/str.h"

/* All texts are borrowed from argv and the environment. */
struct operator_config {
    const char *metrics_bind_address; /* "[HOST]:PORT"; "0": not served */
    const char *health_probe_bind_address;
    bool leader_elect;
    const char *leader_election_id;   /* name of the Lease */
    const char *own_namespace;        /* of the Lease */
    const char *own_name;             /* our identity in the Lease, with a suffix of its own */
    const char *namespace_;           /* whose jobs; NULL: all */
    const char *kubeconfig, *context; /* NULL: see kubeconfig.h */
    const char *gang_scheduler_name;  /* NULL: none */
    const char *init_image;           /* this and the next two: see init_template.h */
    const char *init_template_file;
    int64_t init_max_tries;
    int64_t default_backoff_limit;
    int64_t node_lost_s; /* see struct reconcile_options; 0: never */
    int64_t overdue_s;   /* likewise */
    int log_level;       /* enum log_level */
    bool help, version;
    struct option_list ignored; /* flags of the training operator that mean nothing here */
};

/* env(name) is getenv or a test's. */
int operator_config_parse(struct operator_config *config, int argc, char *const *argv,
                          const char *(*env)(const char *name), struct error *err);
void operator_config_help(struct str *out);

/* "[HOST]:PORT" into its parts; host is "" for all addresses. "0" gives port 0. */
int operator_config_address(const char *text, char *host, size_t host_bytes, int *ret_port,
                            struct error *err);
#endif
