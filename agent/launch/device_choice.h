/* Chooses a rank's device from its configuration and the GPUs of its node. */
#ifndef SHOAL_AGENT_LAUNCH_DEVICE_CHOICE_H
#define SHOAL_AGENT_LAUNCH_DEVICE_CHOICE_H

#include "base/error.h"

#include <stdbool.h>

/* Whether `asked` is auto, cpu, cuda or cuda:N. */
bool device_choice_is_valid(const char *asked);

struct device_request {
    const char *asked; /* valid */
    bool share;        /* several ranks may share a GPU */
    int local_rank;
    int gpus;            /* visible to this process: perhaps not all of its node's */
    const char *no_gpus; /* why there are none */
    bool is_unusable;    /* there may be some: that is what keeps this process from them */
};

struct device_choice {
    char name[24];    /* for device_open() */
    bool may_share;   /* other ranks may have the same GPU */
    char notice[600]; /* a line for the log, as why there is no GPU; "": none */
};

/* Pure. Errors: ERR_UNSUPPORTED if there is no such GPU. */
int device_choose(const struct device_request *wish, struct device_choice *ret_choice,
                  struct error *err);
/* The same with the GPUs that are visible to this process. */
int device_choose_here(const char *asked, bool share, int local_rank,
                       struct device_choice *ret_choice, struct error *err);
#endif
