/* Which device a rank takes, of what its configuration asks for and its node has. */
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
    int local_rank;
    int gpus;            /* that this process may see: not always all of its node */
    const char *no_gpus; /* why there are none */
};

struct device_choice {
    char name[24];    /* for device_open() */
    bool may_share;   /* that other ranks have the same GPU is no mistake */
    char notice[600]; /* what its choice left unsaid, for people; "" if nothing */
};

/* Pure. Errors: ERR_UNSUPPORTED if there is no such GPU. */
int device_choose(const struct device_wish *wish, struct device_choice *ret_choice,
                  struct error *err);
/* The same with the GPUs that this process sees. */
int device_choose_here(const char *asked, bool share, int local_rank,
                       struct device_choice *ret_choice, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
