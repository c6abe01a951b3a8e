#include "agent/comm_device.h"

#include "agent/agree.h"
#include "agent/comm_stage.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the ranks tell each other before any of them begins. */
struct facts {
    struct outcome outcome; /* of opening the device */
    char device[24];
    int32_t is_shared;
};

static struct facts facts_of(const struct comm_device_options *o, const struct error *err)
{
    struct facts facts = {.is_shared = o->is_shared};
    outcome_set(&facts.outcome, o->device ? 0 : -1, err);
    if (o->device)
        snprintf(facts.device, sizeof facts.device, "%s", device_name(o->device));
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

static int check(const struct facts *all, int size, struct error *err)
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
        err->shared = true;
        return -1;
    }
    return 0;
}

int comm_device_open(const struct comm_device_options *o, struct comm **ret_comm, char *ret_notice,
                     struct error *err)
{
    int size = o->host->size;
    const struct facts mine = facts_of(o, err);
    ret_notice[0] = '\0';
    *ret_comm = o->host;
    if (size == 1)
        return o->device ? 0 : -1;
    auto_free struct facts *all = xcalloc((size_t)size, sizeof *all);
    if (exchange(o->host, &mine, all, err) || check(all, size, err))
        return -1;
    if (device_is_host(o->device))
        return 0;
    return comm_stage_open(o->host, false, o->device, COMM_STAGE_BYTES, ret_comm, err);
}
