#include "agent/comm/comm_device.h"

#include "agent/comm/agree.h"
#include "agent/comm/comm_stage.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every rank's device and NCCL, exchanged before the choice. */
struct facts {
    struct outcome outcome; /* of opening the device */
    char device[24];
    char gpu[DEVICE_UUID_BYTES], model[DEVICE_MODEL_BYTES];
    int32_t may_share, is_concurrent, registers, has_windows;
    char no_windows[NCCL_WHY_BYTES]; /* "": they are not asked for, or it has them */
    int32_t nccl_version;            /* 0: this rank has no NCCL */
    char nccl_missing[252];          /* why */
};

static struct facts facts_of(const struct comm_device_options *o, struct nccl_api *ret_api,
                             const struct error *err)
{
    struct facts facts = {.may_share = o->may_share};
    struct error missing = {0};
    outcome_set(&facts.outcome, o->device ? 0 : -1, err);
    if (!o->device)
        return facts;
    snprintf(facts.device, sizeof facts.device, "%s", device_name(o->device));
    snprintf(facts.gpu, sizeof facts.gpu, "%s", device_uuid(o->device));
    snprintf(facts.model, sizeof facts.model, "%s", device_model(o->device));
    if (device_is_host(o->device) || o->how == COMM_DEVICE_HOST || !o->nccl.store)
        return facts;
    if (nccl_api_open(ret_api, &missing)) {
        snprintf(facts.nccl_missing, sizeof facts.nccl_missing, "%.251s", missing.msg);
        return facts;
    }
    facts.nccl_version = ret_api->version;
    facts.is_concurrent = o->nccl.is_concurrent && ret_api->orders_launches &&
                          device_cuda_version(o->device) >= NCCL_ORDERS_DRIVER;
    facts.registers = o->nccl.registers && ret_api->comm_register && ret_api->comm_deregister;
    facts.has_windows = o->nccl.has_windows && nccl_api_has_windows(ret_api, facts.no_windows);
    return facts;
}

static int exchange(struct comm *host, const struct facts *mine, struct facts *all,
                    struct error *err)
{
    struct device *device = NULL;
    struct stream *stream = NULL;
    int result = -1;
    if (device_open("cpu", 1, &device, err) == 0 && stream_open(device, "meet", &stream, err) == 0)
        result = agree_gather(host, stream, mine, all, sizeof *mine, err);
    stream_close(stream);
    device_close(device);
    return result;
}

/* Pure over what all ranks have sent: every rank finds the same. */
static int shared_error(struct error *err)
{
    err->shared = true;
    return -1;
}

static int check_devices(const struct facts *all, int size, struct error *err)
{
    for (int r = 0; r < size; r++)
        if (outcome_get(&all[r].outcome, r, err))
            return -1;
    for (int r = 1; r < size; r++) {
        if (strcmp(all[r].device, all[0].device) == 0)
            continue;
        error_set(
            err, ERR_CONFIG,
            "rank 0 runs on %s and rank %d on %s: all ranks of a job run on one kind of device "
            "(--device)",
            all[0].device, r, all[r].device);
        return shared_error(err);
    }
    return 0;
}

static int check_shared(const struct facts *all, int size, bool *ret_shared, struct error *err)
{
    *ret_shared = false;
    for (int r = 1; r < size; r++)
        for (int other = 0; other < r; other++) {
            if (!all[r].gpu[0] || strcmp(all[r].gpu, all[other].gpu) != 0)
                continue;
            *ret_shared = true;
            if (all[r].may_share && all[other].may_share)
                continue;
            error_set(err, ERR_CONFIG,
                      "ranks %d and %d have one GPU (%s): start as many ranks as there are GPUs, "
                      "let them share (--share_gpus) or take the CPU (--device cpu)",
                      other, r, all[r].gpu);
            return shared_error(err);
        }
    return 0;
}

/* Whether all ranks can use NCCL; if not, *ret_notice says why. An error if the user asked for
 * NCCL, or if the ranks' versions differ: those cannot connect to each other. */
static int check_nccl(const struct comm_device_options *o, const struct facts *all, bool is_shared,
                      bool *ret_can, char *ret_notice, struct error *err)
{
    char first[16], other[16];
    *ret_can = false;
    for (int r = 0; r < o->host->size; r++) {
        if (is_shared)
            snprintf(ret_notice, COMM_NOTICE_BYTES, "ranks share GPUs, which NCCL cannot");
        else if (all[r].nccl_version == 0)
            snprintf(ret_notice, COMM_NOTICE_BYTES, "rank %d: %s", r, all[r].nccl_missing);
        else if (all[r].nccl_version != all[0].nccl_version) {
            nccl_api_version_text(all[0].nccl_version, first);
            nccl_api_version_text(all[r].nccl_version, other);
            error_set(
                err, ERR_CONFIG,
                "rank 0 has NCCL %s and rank %d %s: give all ranks the same image, or the same "
                "library by LD_PRELOAD",
                first, r, other);
            return shared_error(err);
        } else
            continue;
        if (o->how != COMM_DEVICE_NCCL)
            return 0;
        error_set(err, ERR_CONFIG, "runtime.collectives=nccl: %s", ret_notice);
        return shared_error(err);
    }
    *ret_can = true;
    return 0;
}

/* Adds to the notice where not all GPUs are of rank 0's kind. */
static void notice_kinds(const struct facts *all, int size, char *ret_notice)
{
    int first = 0, others = 0;
    size_t length = strlen(ret_notice);
    for (int r = size - 1; r > 0; r--)
        if (strcmp(all[r].model, all[0].model) != 0) {
            first = r;
            others++;
        }
    if (others > 0)
        snprintf(
            ret_notice + length, COMM_NOTICE_BYTES - length,
            "%sGPUs of different kinds: rank 0 has %s, rank %d %s (%d of %d ranks have another "
            "than rank 0): all wait for the slowest, the smallest memory is the limit, and "
            "losses may differ in the last bits from those on one kind; node labels give a "
            "job GPUs of one kind",
            length > 0 ? "; " : "", all[0].model, first, all[first].model, others, size);
}

/* Adds to the notice why there are no windows, where all ranks ask for them. */
static bool all_have_windows(const struct facts *all, int size, char *ret_notice)
{
    size_t length = strlen(ret_notice);
    int without = -1;
    for (int r = size - 1; r >= 0; r--)
        if (!all[r].has_windows)
            without = r;
    if (without >= 0 && all[without].no_windows[0])
        snprintf(ret_notice + length, COMM_NOTICE_BYTES - length,
                 "%sno rank uses symmetric windows, since rank %d cannot: %s",
                 length > 0 ? "; " : "", without, all[without].no_windows);
    return without < 0;
}

static int open_for_gpus(const struct comm_device_options *o, const struct nccl_api *api,
                         const struct facts *all, struct comm **ret_comm, char *ret_notice,
                         struct error *err)
{
    bool can_nccl = false, is_shared;
    struct comm *host = o->host;
    struct comm_nccl_options nccl = o->nccl;
    if (check_shared(all, host->size, &is_shared, err))
        return -1;
    if (o->how != COMM_DEVICE_HOST && o->nccl.store &&
        check_nccl(o, all, is_shared, &can_nccl, ret_notice, err))
        return -1;
    for (int r = 0; r < host->size; r++) {
        nccl.is_concurrent = nccl.is_concurrent && all[r].is_concurrent;
        nccl.registers = nccl.registers && all[r].registers;
    }
    size_t length = strlen(ret_notice);
    if (!can_nccl && length > 0)
        snprintf(ret_notice + length, COMM_NOTICE_BYTES - length,
                 ": collectives go through the hosts, which is slow");
    nccl.has_windows =
        can_nccl && nccl.has_windows && all_have_windows(all, host->size, ret_notice);
    notice_kinds(all, host->size, ret_notice);
    if (can_nccl)
        return comm_nccl_open(api, &nccl, o->device, host->rank, host->size, ret_comm, err);
    return comm_stage_open(host, false, o->device, COMM_STAGE_BYTES, ret_comm, err);
}

int comm_device_open(const struct comm_device_options *o, struct comm **ret_comm, char *ret_notice,
                     struct error *err)
{
    int size = o->host->size;
    struct nccl_api api;
    ret_notice[0] = '\0';
    *ret_comm = o->host;
    if (size == 1)
        return o->device ? 0 : -1;
    const struct facts mine = facts_of(o, &api, err);
    auto_free struct facts *all = xcalloc((size_t)size, sizeof *all);
    if (exchange(o->host, &mine, all, err) || check_devices(all, size, err))
        return -1;
    if (device_is_host(o->device))
        return 0;
    return open_for_gpus(o, &api, all, ret_comm, ret_notice, err);
}
