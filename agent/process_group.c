#include "agent/process_group.h"

#include "agent/comm/comm_ring.h"
#include "agent/comm/nccl_api.h"
#include "agent/config_consistency.h"
#include "agent/health/nccl_ras.h"
#include "agent/launch/last_words.h"
#include "agent/launch/stop.h"
#include "agent/rank_meeting.h"
#include "base/clock.h"
#include "base/contract.h"

#include <stdlib.h>
#include <string.h>

static void ring_interface(const struct topology *t, char out[NET_INTERFACE_BYTES])
{
    net_interface_choose(t->host, getenv("GLOO_SOCKET_IFNAME"), getenv("NCCL_SOCKET_IFNAME"), out);
}

int process_group_find_interface(const struct topology *t, char ret_name[NET_INTERFACE_BYTES],
                                 char ret_address[STORE_HOST_MAX], struct error *err)
{
    ret_name[0] = ret_address[0] = '\0';
    if (t->world_size == 1)
        return 0;
    ring_interface(t, ret_name);
    return ret_name[0] ? net_interface_host(ret_name, ret_address, STORE_HOST_MAX, err) : 0;
}

/* As NCCL itself reads the environment; NULL: its RAS is off. */
static const char *ras_address(void)
{
    const char *enable = getenv("NCCL_RAS_ENABLE"), *address = getenv("NCCL_RAS_ADDR");
    if (enable && strcmp(enable, "0") == 0)
        return NULL;
    return address ? address : NCCL_RAS_ADDRESS;
}

int process_group_init(const struct agent_config *c, const struct process_group_options *o,
                       struct process_group *m, struct error *err)
{
    const struct topology *t = o->topology;
    if (t->world_size == 1)
        return comm_self_open(&m->world, err);
    const struct rank_health_setting health = {
        .rank = t->rank,
        .ranks = t->world_size,
        .node = t->node_rank,
        .host = o->host,
        .pod = o->pod,
        .hang_action = hang_action_now((enum hang_action)c->runtime.hang_action,
                                       getenv(ENV_TORCHELASTIC_RESTART_COUNT),
                                       getenv(ENV_TORCHELASTIC_MAX_RESTARTS)),
        .hang_patience_ms = (int64_t)(c->runtime.hang_patience_s * 1000),
        .ras_address = ras_address(),
        .uses_nccl = nccl_api_is_loaded,
        .beat_ms = RENDEZVOUS_BEAT_MS,
        .steady_ms = clock_monotonic_ms,
        .wall_ms = clock_now_ms,
        .note_fd = o->note_fd,
    };
    m->health = rank_health_open(&health);
    const struct rendezvous_options options = {
        .host = t->host,
        .port = t->port,
        .rank = t->rank,
        .size = t->world_size,
        .job_id = t->job_id,
        .secret = t->secret,
        .join_timeout_ms = (int)(c->runtime.join_timeout_s * 1000),
        .beat_ms = RENDEZVOUS_BEAT_MS,
        .silence_ms = RENDEZVOUS_SILENCE_MS,
        .health = rank_health_rendezvous(m->health),
    };
    if (rank_meeting_open(&options, t->local_rank == 0, &m->rendezvous, err))
        return -1;
    struct comm_ring_options ring = {
        .join_timeout_ms = options.join_timeout_ms,
        .timeout_ms = (int)(c->runtime.timeout_s * 1000),
        .progress = rank_health_progress(m->health),
    };
    ring_interface(t, ring.interface);
    return comm_ring_open(rendezvous_store(m->rendezvous), t->rank, t->world_size, &ring, &m->world,
                          err);
}

int process_group_agree(const struct process_group *m, const struct config *config,
                        const struct topology *t, struct error *err)
{
    if (!m->rendezvous)
        return 0;
    struct store *store = rendezvous_store(m->rendezvous);
    if (t->local_rank == 0)
        rank_meeting_announce(store);
    rank_health_tell_stopped(m->health, store);
    if (config_consistency_check(config, store, t->rank, t->world_size,
                                 (int)(config->value.runtime.join_timeout_s * 1000), err))
        return -1;
    rank_health_hear_stopped(m->health, store);
    if (t->local_rank == 0)
        rank_meeting_ask(store);
    return 0;
}

int process_group_report_failure(const struct process_group *m, int result, const struct error *err)
{
    if (result)
        last_words_send(err, true);
    if (result && m->rendezvous && !err->shared && err->code != ERR_CANCELLED) {
        stop_install_handlers();
        rendezvous_fail(m->rendezvous, err->msg);
    }
    return result;
}

void process_group_leave(struct process_group *m)
{
    comm_close(m->world);
    rendezvous_close(m->rendezvous);
    rank_health_close(m->health);
}
