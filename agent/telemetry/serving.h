/* Which ranks serve their run over HTTP, and where: at the narrowest address that works. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_SERVING_H
#define SHOAL_AGENT_TELEMETRY_SERVING_H

#include <stdbool.h>
#include <stddef.h>

struct serving_rank {
    int rank, local_rank; /* of the job, of its node */
    bool shares_machine;  /* with all ranks of the job: they meet on its loopback */
    bool in_pod;          /* of a cluster, whose probes and scrapers ask the pod's address */
};

/* The address to listen at, as listen_tcp() takes it; NULL: this rank does not serve. Where all
 * ranks share a machine it is rank 0 alone: nodes of one machine have one port. asked: the user's
 * address; "": none. */
const char *serving_host(const struct serving_rank *rank, const char *asked);

/* The address of the run for people of this machine, "http://127.0.0.1:9401/". */
void serving_url(const char *host, int port, char *url, size_t bytes);
#endif
