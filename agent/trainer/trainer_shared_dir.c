/* Whether all ranks that save write into one directory. */
#include "agent/comm/agree.h"
#include "agent/trainer/trainer_internal.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

/* Rank 0's file: its name below checkpoint.dir, sent to all. */
struct probe {
    struct outcome outcome;
    char name[NAME_MAX + 1];
};

static int make(const struct trainer *t, struct probe *probe, struct error *err)
{
    auto_free char *name = durable_temp_name("shared");
    auto_free char *path = xasprintf("%s/%s", t->config->checkpoint.dir, name);
    snprintf(probe->name, sizeof probe->name, "%s", name);
    struct durable_result written;
    return durable_write_file(&file_ops_system, path, "", 0, &written, err);
}

static int look(const struct trainer *t, const char *path, struct error *err)
{
    char host[HOST_NAME_MAX + 1] = "";
    if (access(path, F_OK) == 0)
        return 0;
    if (errno != ENOENT)
        return error_errno(err, errno, "%s", path);
    gethostname(host, sizeof host - 1);
    auto_free char *dir = file_absolute(t->config->checkpoint.dir);
    return error_set(err, ERR_CONFIG,
                     "checkpoint.dir: %s on host %s is not the directory of rank 0, into which all "
                     "ranks write their parts of a checkpoint: mount a volume that all pods share "
                     "(ReadWriteMany), or save none (--checkpoint.dir=)",
                     dir, host);
}

int trainer_check_shared_dir(struct trainer *t, struct error *err)
{
    struct probe probe = {.name = ""};
    if (!t->config->checkpoint.dir[0] || t->world->size == 1)
        return 0;
    if (t->world->rank == 0)
        outcome_set(&probe.outcome, make(t, &probe, err), err);
    if (agree_broadcast(t->world, t->compute, &probe, sizeof probe, err) ||
        outcome_get(&probe.outcome, 0, err))
        return -1;
    auto_free char *path = xasprintf("%s/%s", t->config->checkpoint.dir, probe.name);
    /* others write nothing into it */
    int result = shard_is_first_replica(t->shard) ? look(t, path, err) : 0;
    result = agree_all(t->world, t->compute, result, err);
    if (t->world->rank == 0)
        unlink(path);
    return result;
}
