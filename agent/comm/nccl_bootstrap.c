#include "agent/comm/nccl_bootstrap.h"

#include "agent/comm/nccl_id.h"
#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

enum { LEAVE_WAITS_MS = 10000 }; /* for ncclCommFinalize() to complete */

static int send_id(const struct nccl_bootstrap_options *m, const struct nccl_id *id,
                   struct error *err)
{
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
    for (int part = 0; part < NCCL_ID_PARTS; part++) {
        snprintf(key, sizeof key, "%s/id/%d", m->group, part);
        nccl_id_encode(id, part, value);
        if (m->store->fn->set(m->store, key, value, err))
            return -1;
    }
    return 0;
}

static int receive_id(const struct nccl_bootstrap_options *m, struct nccl_id *ret_id,
                      struct error *err)
{
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
    for (int part = 0; part < NCCL_ID_PARTS; part++) {
        snprintf(key, sizeof key, "%s/id/%d", m->group, part);
        if (m->store->fn->get(m->store, key, m->timeout_ms, value, err))
            return -1;
        if (nccl_id_decode(value, part, ret_id, err))
            return error_wrap(err, "%s", key);
    }
    return 0;
}

static int agree_on_id(const struct nccl_bootstrap_options *m, struct nccl_id *ret_id,
                       struct error *err)
{
    if (m->rank != 0)
        return receive_id(m, ret_id, err);
    int result = m->api->get_unique_id(ret_id);
    if (result != NCCL_SUCCESS)
        return nccl_api_fail(m->api, NULL, result, "an id for the ranks to meet", err);
    return send_id(m, ret_id, err);
}

/* Polls until NCCL has connected the ranks, one is lost, or the time is up. */
static int await_ranks(const struct nccl_bootstrap_options *m, nccl_comm comm, int result,
                       struct error *err)
{
    int64_t deadline_ms = clock_monotonic_ms() + m->timeout_ms;
    while (result == NCCL_IN_PROGRESS) {
        usleep(NCCL_POLL_US);
        if (store_check(m->store, err))
            return -1;
        if (clock_monotonic_ms() >= deadline_ms)
            return error_set(err, ERR_TIMEOUT, "NCCL did not connect the ranks within %d ms",
                             m->timeout_ms);
        if (m->api->comm_error(comm, &result) != NCCL_SUCCESS)
            break;
    }
    return result == NCCL_SUCCESS ? 0
                                  : nccl_api_fail(m->api, comm, result, "connect the ranks", err);
}

int nccl_bootstrap(const struct nccl_bootstrap_options *m, nccl_comm *ret_comm, struct error *err)
{
    struct nccl_id id;
    /* Not blocking: every call may return ncclInProgress, so that a lost rank can be noticed
     * instead of waited for. */
    struct nccl_config config = {
        .size = sizeof config, .magic = NCCL_CONFIG_MAGIC, .version = NCCL_OLDEST, .blocking = 0};
    nccl_comm comm = NULL;
    if (agree_on_id(m, &id, err))
        return -1;
    int result = m->api->comm_init(&comm, m->size, id, m->rank, &config);
    if (await_ranks(m, comm, result, err) == 0) {
        *ret_comm = comm;
        return 0;
    }
    if (comm)
        m->api->comm_abort(comm);
    return -1;
}

/* Finalizes first: ncclCommAbort() alone would be an error to ranks that still compute. If a rank
 * is lost, finalizing cannot complete, and the communicator is aborted. */
void nccl_destroy(const struct nccl_api *api, struct store *store, nccl_comm comm)
{
    struct error ignored;
    int64_t deadline_ms = clock_monotonic_ms() + LEAVE_WAITS_MS;
    int result = api->comm_finalize(comm);
    while (result == NCCL_IN_PROGRESS && clock_monotonic_ms() < deadline_ms &&
           store_check(store, &ignored) == 0) {
        usleep(NCCL_POLL_US);
        if (api->comm_error(comm, &result) != NCCL_SUCCESS)
            break;
    }
    (result == NCCL_SUCCESS ? api->comm_destroy : api->comm_abort)(comm);
}
