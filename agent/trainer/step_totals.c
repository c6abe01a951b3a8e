#include "agent/trainer/step_totals.h"

#include "base/mem.h"
#include "kernels/ops.h"

#include <math.h>
#include <string.h>

int step_totals_open(struct step_totals *s, struct device *device, struct stream *stream,
                     struct comm *world, struct shard *shard, bool has_slots, struct error *err)
{
    struct {
        double **to;
        size_t count;
        const char *what;
    } rows[] = {{&s->sums, MODEL_MAX_SUMS, "loss sums"},
                {&s->totals, TOTALS, "loss sums of all ranks"},
                {&s->number, 1, "stop flag"},
                {&s->part, MODEL_MAX_SUMS, "loss sums of a micro-batch"},
                {&s->first, 2 * MODEL_MAX_SUMS, "loss sums of the first slot"}};
    void *memory;
    *s = (struct step_totals){
        .device = device, .stream = stream, .world = world, .shard = shard, .has_slots = has_slots};
    for (size_t i = 0; i < array_length(rows); i++) {
        if (device_alloc(device, MEMORY_INPUT, rows[i].count * sizeof(double), rows[i].what,
                         &memory, err))
            return -1;
        *rows[i].to = memory;
    }
    if (device_host_alloc(device, sizeof *s->host, "sums on the host", &memory, err))
        return -1;
    s->host = memory;
    *s->host = (struct step_numbers){0};
    return 0;
}

void step_totals_close(struct step_totals *s)
{
    if (!s->device)
        return;
    device_free(s->device, s->sums);
    device_free(s->device, s->totals);
    device_free(s->device, s->number);
    device_free(s->device, s->part);
    device_free(s->device, s->first);
    device_host_free(s->device, s->host);
    *s = (struct step_totals){0};
}

static void clear(const struct step_totals *s, double *sums)
{
    device_ops(s->device)->fill(s->stream, (void *)sums, 0,
                                MODEL_MAX_SUMS * sizeof(double) / sizeof(float));
}

void step_totals_begin_step(struct step_totals *s)
{
    clear(s, s->first);
}

void step_totals_begin_part(struct step_totals *s)
{
    clear(s, s->part);
}

void step_totals_add_part(struct step_totals *s, bool is_first)
{
    const struct ops *ops = device_ops(s->device);
    double *copy = s->first + MODEL_MAX_SUMS; /* the part is zero when it was added */
    if (is_first) {
        stream_copy(s->stream, copy, s->part, MODEL_MAX_SUMS * sizeof *copy);
        ops->exact_add(s->stream, s->first, copy, MODEL_MAX_SUMS);
    }
    ops->exact_add(s->stream, s->sums, s->part, MODEL_MAX_SUMS);
}

void step_totals_set(struct step_totals *s, double loss, double correct, double samples)
{
    struct error ignored; /* a failed stream stays failed: the next fetch reports it */
    (void)stream_sync(s->stream, &ignored); /* an earlier copy may still read sums */
    const double sums[MODEL_MAX_SUMS] = {loss, correct, samples};
    memcpy(s->host->sums, sums, sizeof sums);
    memcpy(s->host->totals, sums, sizeof sums);
    stream_copy(s->stream, s->sums, s->host->sums, sizeof s->host->sums);
}

void step_totals_set_share(struct step_totals *s, const double sums[3])
{
    /* The sum over all ranks stands on rank 0 alone: the next reduction adds it up once, and not
     * once per rank. */
    bool mine = s->world->rank == 0;
    step_totals_set(s, mine ? sums[0] : 0, mine ? sums[1] : 0, mine ? sums[2] : 0);
    memcpy(s->host->totals, sums, 3 * sizeof *sums);
}

void step_totals_keep(const struct step_totals *s, struct step_sums *ret_sums)
{
    memcpy(ret_sums->sums, s->host->sums, sizeof ret_sums->sums);
    memcpy(ret_sums->totals, s->host->totals, sizeof ret_sums->totals);
}

void step_totals_restore(struct step_totals *s, const struct step_sums *sums)
{
    struct error ignored; /* as in step_totals_set() */
    (void)stream_sync(s->stream, &ignored);
    memcpy(s->host->sums, sums->sums, sizeof sums->sums);
    memcpy(s->host->totals, sums->totals, sizeof sums->totals);
    stream_copy(s->stream, s->sums, s->host->sums, sizeof s->host->sums);
}

int step_totals_fetch(struct step_totals *s, struct error *err)
{
    stream_copy(s->stream, s->host->sums, s->sums, sizeof s->host->sums);
    if (s->has_slots)
        stream_copy(s->stream, s->host->first, s->first, sizeof s->host->first);
    return shard_sync_pass(s->shard, err);
}

int step_totals_reduce(struct step_totals *s, double ret_sums[3], struct error *err)
{
    s->world->fn->all_reduce_f64(s->world, s->stream, s->sums, MODEL_MAX_SUMS);
    if (step_totals_fetch(s, err))
        return -1;
    double all[MODEL_MAX_SUMS];
    memcpy(all, s->host->sums, sizeof all);
    step_totals_fold_labels(all, s->host->sums, all[2]);
    memcpy(ret_sums, all, 3 * sizeof *ret_sums);
    step_totals_set_share(s, ret_sums);
    return 0;
}

int step_totals_sum(struct step_totals *s, double *number, struct error *err)
{
    double *here = &s->host->number;
    *here = *number;
    stream_copy(s->stream, s->number, here, sizeof *here);
    s->world->fn->all_reduce_f64(s->world, s->stream, s->number, 1);
    stream_copy(s->stream, here, s->number, sizeof *here);
    if (stream_sync(s->stream, err))
        return -1;
    *number = *here;
    return 0;
}

int step_totals_any(struct step_totals *s, bool mine, bool *ret_any, struct error *err)
{
    double count = mine ? 1 : 0;
    if (step_totals_sum(s, &count, err))
        return -1;
    *ret_any = count > 0;
    return 0;
}

void step_totals_queue(struct step_totals *s, const struct step_votes *votes, bool has_labels)
{
    /* Loss, stop requests and counts go in one all_reduce: each collective costs a latency,
     * whatever its size. */
    double *mine = s->host->mine;
    mine[TOTAL_STOP] = votes->stop ? 1 : 0;
    mine[TOTAL_SAVED] = votes->saved ? 1 : 0;
    mine[TOTAL_TARGETS] = votes->targets;
    mine[TOTAL_LABELS] = votes->labels;
    stream_copy(s->stream, s->totals, s->sums, sizeof s->host->sums);
    stream_copy(s->stream, s->totals + TOTAL_STOP, mine + TOTAL_STOP,
                (TOTALS - TOTAL_STOP) * sizeof *mine);
    s->world->fn->all_reduce_f64(s->world, s->stream, s->totals,
                                 has_labels ? TOTALS : TOTAL_LABELS);
    stream_copy(s->stream, s->host->totals, s->totals, sizeof s->host->totals);
}

void step_totals_fold_labels(double sums[MODEL_MAX_SUMS], const double all[MODEL_MAX_SUMS],
                             double tokens)
{
    if (all[5] > 0)
        sums[0] += sums[3] * tokens / all[5];
    sums[3] = sums[4] = sums[5] = 0;
}

double step_totals_part(double x)
{
    return rint(x * 0x1p20) * 0x1p-20;
}

/* A rank's share of it depends on its slots, and so would each share's rounding: rank 0 takes it as
 * a whole. */
static void fold_labels_exactly(struct step_totals *s, double tokens)
{
    struct step_numbers *n = s->host;
    double labels = n->totals[5] > 0 ? step_totals_part(n->totals[3] * tokens / n->totals[5]) : 0;
    n->totals[0] += labels;
    n->sums[0] += s->world->rank == 0 ? labels : 0;
    for (int i = 3; i < MODEL_MAX_SUMS; i++)
        n->sums[i] = n->totals[i] = 0;
}

void step_totals_fold_step(struct step_totals *s, const double before[TOTALS])
{
    struct step_numbers *n = s->host;
    double tokens = n->totals[2] - before[2];
    if (s->has_slots) {
        fold_labels_exactly(s, tokens);
    } else {
        step_totals_fold_labels(n->sums, n->totals, tokens);
        step_totals_fold_labels(n->totals, n->totals, tokens);
    }
    stream_copy(s->stream, s->sums, n->sums, sizeof n->sums);
}
