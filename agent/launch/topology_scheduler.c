#include "agent/launch/topology_scheduler.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Names of the variables; NULL: there is none. */
struct scheduler {
    const char *step; /* set only for processes of the scheduler's own */
    const char *rank, *size, *local_rank, *local_size, *nodes, *node_rank;
};

static const struct scheduler schedulers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL, NULL},
    /* A batch script and an interactive shell have SLURM_PROCID too, but are no step. Before PMI_*,
     * which srun may set beside its own. */
    {"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL, "SLURM_JOB_NUM_NODES",
     "SLURM_NODEID"},
    {"PMI_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL, NULL},
};

static int read_number(getenv_fn *lookup, void *ctx, const char *name, int low, int fallback,
                       int *ret_value, struct error *err)
{
    const char *text = name ? lookup(ctx, name) : NULL;
    int64_t value = fallback;
    if (text && *text && !str_to_i64(text, low, TOPOLOGY_MAX_RANKS, &value))
        return error_set(err, ERR_CONFIG, "%s: '%s' is not a whole number from %d to %d", name,
                         text, low, TOPOLOGY_MAX_RANKS);
    *ret_value = (int)value;
    return 0;
}

static int read_scheduler(const struct scheduler *s, getenv_fn *lookup, void *ctx,
                          struct topology *t, struct error *err)
{
    if (read_number(lookup, ctx, s->rank, 0, 0, &t->rank, err) ||
        read_number(lookup, ctx, s->nodes, 1, 1, &t->nodes, err) ||
        read_number(lookup, ctx, s->local_rank, 0, 0, &t->local_rank, err))
        return -1;
    int local_size = s->nodes ? (t->world_size + t->nodes - 1) / t->nodes : 1;
    if (read_number(lookup, ctx, s->local_size, 1, local_size, &t->local_size, err))
        return -1;
    if (!s->nodes)
        t->nodes = (t->world_size + t->local_size - 1) / t->local_size;
    if (read_number(lookup, ctx, s->node_rank, 0, t->rank / t->local_size, &t->node_rank, err))
        return -1;
    if (t->rank >= t->world_size)
        return error_set(err, ERR_CONFIG, "%s: %d is not below %s, %d", s->rank, t->rank, s->size,
                         t->world_size);
    return 0;
}

int topology_read_scheduler(getenv_fn *lookup, void *ctx, struct topology *t, bool *ret_found,
                            struct error *err)
{
    *ret_found = false;
    for (size_t i = 0; i < array_length(schedulers); i++) {
        const struct scheduler *s = &schedulers[i];
        const char *step = lookup(ctx, s->step);
        if (!step || !*step)
            continue;
        if (read_number(lookup, ctx, s->size, 1, 1, &t->world_size, err))
            return -1;
        *ret_found = t->world_size > 1;
        return *ret_found ? read_scheduler(s, lookup, ctx, t, err) : 0;
    }
    return 0;
}

void topology_first_host(getenv_fn *lookup, void *ctx, char ret_host[TOPOLOGY_HOST_BYTES])
{
    const char *list = lookup(ctx, "SLURM_NODELIST");
    ret_host[0] = '\0';
    if (!list)
        return;
    size_t stem = strcspn(list, ",[");
    const char *number = list[stem] == '[' ? list + stem + 1 : "";
    int n = snprintf(ret_host, TOPOLOGY_HOST_BYTES, "%.*s%.*s", (int)stem, list,
                     (int)strcspn(number, "-,]"), number);
    if (n >= TOPOLOGY_HOST_BYTES)
        ret_host[0] = '\0';
}
