/* Which device a rank takes, of what its configuration asks for and its node has. Pure. */
#ifndef SHOAL_AGENT_DEVICE_CHOICE_H
#define SHOAL_AGENT_DEVICE_CHOICE_H

#include "base/error.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether `asked` is auto, cpu, cuda or cuda:N. */
bool device_choice_is_valid(const char *asked);

struct device_wish {
    const char *asked; /* valid */
    bool share;        /* more ranks than GPUs are no mistake */
    int local_rank, local_size;
    int gpus;            /* that this process may see */
    const char *no_gpus; /* why there are none */
};

struct device_choice {
    char name[24];    /* for device_open() */
    bool is_shared;   /* other ranks of the node have the same GPU */
    char notice[600]; /* what its choice left unsaid, for people; "" if nothing */
};

/* Errors: ERR_UNSUPPORTED if there is no such GPU; ERR_CONFIG if there are fewer GPUs than ranks
 * and they are not to be shared. */
int device_choose(const struct device_wish *wish, struct device_choice *ret_choice,
                  struct error *err);

#ifdef __cplusplus
}
#endif
#endif
