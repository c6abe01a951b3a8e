/* All ranks of the run, as torch.distributed's default process group: how a rank finds the others,
 * hears of their health, agrees with them on the configuration, and leaves. Reads the environment
 * as NCCL and Gloo do. Knows not what is trained. */
#ifndef SHOAL_AGENT_PROCESS_GROUP_H
#define SHOAL_AGENT_PROCESS_GROUP_H

#include "agent/comm/comm.h"
#include "agent/comm/net.h"
#include "agent/comm/rendezvous.h"
#include "agent/comm/store.h"
#include "agent/config/config.h"
#include "agent/health/rank_health.h"
#include "agent/launch/topology.h"
#include "base/error.h"

/* The network interface where other ranks reach this process, if the environment names one, and its
 * address; both "" if not, or with one rank. Errors: ERR_CONFIG: there is no such interface, which
 * each rank would meet. */
int process_group_find_interface(const struct topology *topology,
                                 char ret_name[NET_INTERFACE_BYTES],
                                 char ret_address[STORE_HOST_MAX], struct error *err);

struct process_group_options {
    const struct topology *topology;
    const char *host, *pod; /* where this rank runs; "": not known; outlive the group */
    int note_fd;            /* rank_note.h; 0: none */
};

/* The caller's, all zero at first; process_group_leave() frees what was opened. */
struct process_group {
    struct rendezvous *rendezvous; /* NULL with one rank */
    struct rank_health *health;    /* likewise */
    struct comm *world;
};

/* Waits for all ranks. Errors: those of rank_meeting_open() and comm_ring_open(). */
int process_group_init(const struct agent_config *config,
                       const struct process_group_options *options, struct process_group *group,
                       struct error *err);

/* All ranks have the same configuration: all pass here, or none. With one rank it does nothing.
 * Tells the launchers who is new (rank_meeting.h), and rank 0 of a hang (stopped_hang.h). Errors:
 * those of config_consistency_check(). */
int process_group_agree(const struct process_group *group, const struct config *config,
                        const struct topology *topology, struct error *err);

/* Tells the launcher and the other ranks of this rank's failure. They leave at once, and their
 * launcher may then end this pod's ranks: from here on SIGTERM only sets a flag
 * (stop_install_handlers), so that this rank still logs its error and closes. An error that all
 * ranks share needs no report. Returns `result`; 0: there was none, and it does nothing. */
int process_group_report_failure(const struct process_group *group, int result,
                                 const struct error *err);

void process_group_leave(struct process_group *group);
#endif
