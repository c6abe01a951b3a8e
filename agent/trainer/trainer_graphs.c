/* Whether the device is handed its ops as graphs. */
#include "agent/trainer/trainer_internal.h"

int trainer_open_graphs(struct trainer *t, struct error *err)
{
    int count = t->shard_device == t->device ? TRAINER_GRAPHS : GRAPH_UPDATE;
    if (!t->config->runtime.cuda_graphs)
        return 0;
    if (device_is_host(t->device))
        return error_set(err, ERR_CONFIG,
                         "runtime.cuda_graphs: the model runs on the CPU, which has no graphs: "
                         "leave it out, or give the run a GPU (--device cuda)");
    for (int i = 0; i < count; i++) {
        struct error why;
        if (graph_open(t->compute, &t->graphs[i], &why) == 0)
            continue;
        error_wrap(&why, "runtime.cuda_graphs: ops are queued one by one");
        t->listener->notice(t->listener->ctx, why.msg);
        break;
    }
    return 0;
}

void trainer_close_graphs(struct trainer *t)
{
    for (int i = 0; i < TRAINER_GRAPHS; i++)
        graph_close(t->graphs[i]);
}
