#include "agent/health/activity.h"

void activity_init(struct activity *a)
{
    *a = (struct activity){.report = {.phase = RANK_START}};
    pthread_mutex_init(&a->mutex, NULL);
}

void activity_destroy(struct activity *a)
{
    pthread_mutex_destroy(&a->mutex);
}

enum rank_phase activity_enter(struct activity *a, enum rank_phase phase)
{
    if (!a)
        return RANK_START;
    pthread_mutex_lock(&a->mutex);
    struct rank_report *r = &a->report;
    enum rank_phase before = r->phase;
    if (phase == RANK_STEP && r->steps == 0)
        phase = RANK_FIRST_STEP;
    if (phase != before)
        r->passed |= 1u << before;
    r->phase = phase;
    pthread_mutex_unlock(&a->mutex);
    return before;
}

void activity_step(struct activity *a, int64_t step, double compute_s)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->mutex);
    a->report.step = step;
    a->report.steps++;
    a->report.compute_us += compute_s > 0 ? (int64_t)(compute_s * 1e6) : 0;
    pthread_mutex_unlock(&a->mutex);
}

void activity_read(struct activity *a, struct rank_report *ret)
{
    pthread_mutex_lock(&a->mutex);
    *ret = a->report;
    pthread_mutex_unlock(&a->mutex);
}
