#include "agent/comm/collective_progress.h"

#include <stdio.h>

void collective_progress_init(struct collective_progress *p)
{
    *p = (struct collective_progress){.state = {.op = ""}};
    pthread_mutex_init(&p->mutex, NULL);
}

void collective_progress_destroy(struct collective_progress *p)
{
    pthread_mutex_destroy(&p->mutex);
}

void collective_progress_enter(struct collective_progress *p, const char *op, const char *unit)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->state.entered++;
    snprintf(p->state.op, sizeof p->state.op, "%s", op);
    snprintf(p->state.unit, sizeof p->state.unit, "%s", unit ? unit : "");
    pthread_mutex_unlock(&p->mutex);
}

void collective_progress_end(struct collective_progress *p, uint64_t count)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->state.ended += count;
    pthread_mutex_unlock(&p->mutex);
}

struct collective_state collective_progress_read(struct collective_progress *p)
{
    pthread_mutex_lock(&p->mutex);
    struct collective_state state = p->state;
    pthread_mutex_unlock(&p->mutex);
    return state;
}
