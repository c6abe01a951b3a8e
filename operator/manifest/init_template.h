/* The containers in which a worker waits for the master's name, from a template: our own, or a file
 * in the peer operator's form: a YAML list of containers in which {{.MasterAddr}},
 * {{.InitContainerImage}} and {{.MaxTries}} are replaced. Other expressions of Go's templates are
 * refused, and nothing is escaped: the values hold nothing that would have to be. */
#ifndef SHOAL_OPERATOR_MANIFEST_INIT_TEMPLATE_H
#define SHOAL_OPERATOR_MANIFEST_INIT_TEMPLATE_H

#include "base/error.h"

#include <stdint.h>

struct json;
struct init_template;

#define INIT_TEMPLATE_PATH      "/etc/config/initContainer.yaml"
#define INIT_TEMPLATE_MAX_BYTES (64 << 10)
#define INIT_TRIES              100 /* the peer's */

struct init_options {
    /* A template file; an empty list in it: workers do not wait. Only INIT_TEMPLATE_PATH need not
     * exist: then the template is our own. */
    const char *path;
    /* "": workers do not wait. An image of ours does the waiting by its program, any other needs sh
     * and nslookup, as people give the peer operator. */
    const char *image;
    /* Look-ups, 2 s apart, before it gives up. 0: nobody said; our own never does then, which
     * spares the pod the kubelet's back-off of up to five minutes, and others get INIT_TRIES. */
    int64_t max_tries;
};

/* Reads and tries it. Errors name the file, and what is wrong in it. */
int init_template_open(struct init_template **ret_template, const struct init_options *options,
                       struct error *err);
void init_template_close(struct init_template *template_); /* NULL-safe */

/* The containers that wait for this name, an array that the caller owns (json_free); empty if
 * workers do not wait. */
struct json *init_template_expand(const struct init_template *template_, const char *master);
#endif
