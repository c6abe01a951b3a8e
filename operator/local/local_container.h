/* What a container of a manifest is as a process of this machine: its argument list, environment
 * and working directory. There are no images here: the command must be stated, or the image must be
 * the agent's own. Knows the machine only as it is described to it; starts nothing. */
#ifndef SHOAL_OPERATOR_LOCAL_LOCAL_CONTAINER_H
#define SHOAL_OPERATOR_LOCAL_LOCAL_CONTAINER_H

#include "base/error.h"
#include "operator/local/local_address.h"
#include "operator/local/local_process.h"
#include "operator/manifest/pod.h"

struct arena;

/* What all containers of a run have in common. Everything is borrowed. */
struct local_site {
    const char *const *environment; /* "NAME=value", NULL-terminated: stands in for the image's */
    const char *program_dir;        /* searched after the PATH; NULL: none */
    const char *agent_image_dir;    /* the agent's image: searched before the PATH; NULL: none */
    const char *progress_socket;    /* value of ENV_PROGRESS_SOCKET; NULL: nobody listens */
    const struct local_addresses *addresses;
};

/* Fills *ret_process but for its output; all of it lives in the arena. The names of the job's
 * services become 127.0.0.1 and their ports the local ones. This holds for the variables of the
 * rendezvous, and so for every $(MASTER_ADDR). `restart_count` is "SHOAL_RESTART_COUNT=N"; it is
 * borrowed and not copied, so that its owner can count on between two starts. Fails with ERR_INPUT
 * or ERR_UNSUPPORTED if the container needs what only a cluster has. */
int local_container_build(const struct pod_spec *pod, const struct container *container,
                          const struct local_site *site, const char *restart_count,
                          struct arena *arena, struct local_process *ret_process,
                          struct error *err);
#endif
