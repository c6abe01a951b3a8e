#include "agent/shard/optim.h"

#include "base/mem.h"
#include "kernels/ops.h"
#include "kernels/random.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDING = 1 }; /* keeps its random numbers apart from dropout's and initial values' */

/* Neighbours in a slice that are stepped at once. */
struct slice_range {
    int unit;
    int64_t offset, count; /* within the slice */
    bool decays;
    uint64_t param_index, param_offset; /* of its first element */
};

struct optim {
    struct optim_config config;
    struct shard *shard;
    int64_t steps;
    void *(*states)[OPTIM_MAX_STATES]; /* one row a unit */
    struct slice_range *ranges;
    int range_count;
    void *sum_of_squares; /* a double, of all gradients; on the shard device */
    void *digits;         /* with slots: the same exactly, double[EXACT_DIGITS]; else NULL */
    void *sum_there; /* the same as of the last sync, in memory that the shard device copies beside
                        the host */
    bool measured;   /* since the last step */
};

struct optim_config optim_defaults(const struct optim_kind *kind)
{
    return (struct optim_config){
        .kind = kind,
        .rho = (float)kind->rho,
        .beta1 = (float)kind->beta1,
        .beta2 = (float)kind->beta2,
        .eps = (float)kind->eps,
        .weight_decay = (float)kind->weight_decay,
    };
}

int optim_config_states(const struct optim_config *config)
{
    if (config->kind->state_count)
        return config->kind->state_count(config);
    int count = 0;
    while (count < OPTIM_MAX_STATES && config->kind->states[count])
        count++;
    return count;
}

int optim_state_count(const struct optim *optim)
{
    return optim_config_states(&optim->config);
}

const char *optim_state_name(const struct optim *optim, int state)
{
    assert(state >= 0 && state < optim_state_count(optim));
    return optim->config.kind->states[state];
}

bool optim_decays_matrices(void *ctx, const struct param *p)
{
    (void)ctx;
    return p->dims >= 2;
}

/* ---- ranges ---- */

static bool decays(const struct optim *optim, const struct param *p)
{
    const struct optim_config *c = &optim->config;
    return !c->decays || c->decays(c->decays_ctx, p);
}

/* Whether the range can be stepped with what lies before it: padding between them is 0 and stays 0.
 * Stochastic rounding names each element by its parameter. */
static bool continues(const struct optim *optim, const struct slice_range *before,
                      const struct slice_range *next)
{
    int64_t gap = next->offset - (before->offset + before->count);
    return shard_dtype(optim->shard) == DTYPE_F32 && before->unit == next->unit &&
           before->decays == next->decays && gap >= 0 && gap < LAYOUT_ALIGN;
}

/* Those of a unit. */
static void add_spans(struct optim *optim, int unit, const struct param_range *ranges, int count)
{
    for (int i = 0; i < count; i++) {
        const struct param_range *p = &ranges[i];
        struct slice_range next = {p->unit,         p->shard_offset,
                                   p->count,        decays(optim, p->param),
                                   p->param->index, (uint64_t)p->param_offset};
        struct slice_range *last =
            optim->range_count ? &optim->ranges[optim->range_count - 1] : NULL;
        if (p->unit != unit)
            continue;
        if (last && continues(optim, last, &next))
            last->count = next.offset + next.count - last->offset;
        else
            optim->ranges[optim->range_count++] = next;
    }
}

/* Unit by unit, in the order in which the next pass meets them: the root has parameters before all
 * others and behind. */
static void make_spans(struct optim *optim)
{
    int count;
    const struct param_range *ranges = shard_ranges(optim->shard, &count);
    optim->ranges = xcalloc((size_t)count + 1, sizeof *optim->ranges);
    for (int u = 0; u < shard_unit_count(optim->shard); u++)
        add_spans(optim, u, ranges, count);
}

/* ---- opening ---- */

static int open_states(struct optim *optim, struct error *err)
{
    struct stream *stream = shard_update_stream(optim->shard);
    struct device *shard_device = stream_device(stream);
    for (int u = 0; u < shard_unit_count(optim->shard); u++) {
        const struct shard_unit *unit = shard_get_unit(optim->shard, u);
        for (int i = 0; i < optim_state_count(optim) && unit->shard_count; i++) {
            char what[64];
            snprintf(what, sizeof what, "optimizer state %s", optim_state_name(optim, i));
            void *memory;
            size_t bytes = (size_t)unit->shard_count * dtype_bytes(shard_dtype(optim->shard));
            if (device_alloc(shard_device, MEMORY_OPTIMIZER, bytes, what, &memory, err) < 0)
                return -1;
            optim->states[u][i] = memory;
            device_ops(shard_device)->fill(stream, memory, 0, (int64_t)(bytes / sizeof(float)));
        }
    }
    if (device_alloc(shard_device, MEMORY_INPUT, sizeof(double), "gradient norm",
                     &optim->sum_of_squares, err))
        return -1;
    if (shard_has_slots(optim->shard) &&
        device_alloc(shard_device, MEMORY_INPUT, EXACT_DIGITS * sizeof(double), "exact norm",
                     &optim->digits, err))
        return -1;
    return device_host_alloc(shard_device, sizeof(double), "gradient norm on the host",
                             &optim->sum_there, err);
}

int optim_open(const struct optim_config *config, struct shard *shard, struct optim **ret_optim,
               struct error *err)
{
    assert(!config->nesterov || config->momentum > 0);
    struct optim *optim = xcalloc(1, sizeof *optim);
    optim->config = *config;
    optim->shard = shard;
    optim->states = xcalloc((size_t)shard_unit_count(shard), sizeof *optim->states);
    make_spans(optim);
    if (open_states(optim, err) < 0) {
        optim_close(optim);
        return -1;
    }
    *ret_optim = optim;
    return 0;
}

void optim_close(struct optim *optim)
{
    if (!optim)
        return;
    struct device *shard_device = stream_device(shard_update_stream(optim->shard));
    for (int u = 0; u < shard_unit_count(optim->shard); u++)
        for (int i = 0; i < OPTIM_MAX_STATES; i++)
            device_free(shard_device, optim->states[u][i]);
    device_free(shard_device, optim->sum_of_squares);
    device_free(shard_device, optim->digits);
    device_host_free(shard_device, optim->sum_there);
    free(optim->states);
    free(optim->ranges);
    free(optim);
}

/* ---- the norm of all gradients ---- */

/* carry: of exact sums, else NULL. */
static void add_squares(struct optim *optim, op_sum_of_squares *op, op_exact_carry *carry,
                        double *sums, int count)
{
    int cuts = 0;
    struct stream *s = shard_update_stream(optim->shard);
    device_ops(stream_device(s))
        ->fill(s, (void *)sums, 0, count * (int64_t)(sizeof(double) / sizeof(float)));
    for (int u = 0; u < shard_unit_count(optim->shard); u++) {
        const struct shard_unit *unit = shard_get_unit(optim->shard, u);
        if (unit->shard_count == 0)
            continue;
        op(s, sums, unit->gradient, unit->shard_count);
        if (carry && ++cuts % EXACT_CUTS == 0)
            carry(s, sums);
    }
    if (carry)
        carry(s, sums);
    /* Each rank has squared its slice: the slices are disjoint, so the sum over the group is that
     * of the whole gradient. */
    shard_sum(optim->shard, sums, count);
}

void optim_measure(struct optim *optim)
{
    struct stream *s = shard_update_stream(optim->shard);
    const struct ops *ops = device_ops(stream_device(s));
    _Static_assert((int)LAYOUT_ALIGN % (int)EXACT_BLOCK == 0, "slices are whole blocks");
    if (optim->digits) {
        add_squares(optim, ops->exact_squares, ops->exact_carry, optim->digits, EXACT_DIGITS);
        ops->exact_sum(s, optim->sum_of_squares, optim->digits);
    } else {
        add_squares(optim, ops->sum_of_squares, NULL, optim->sum_of_squares, 1);
    }
    stream_copy(s, optim->sum_there, optim->sum_of_squares, sizeof(double));
    optim->measured = true;
}

double optim_norm(const struct optim *optim)
{
    return sqrt(*(const double *)optim->sum_there);
}

/* ---- a step ---- */

static void *at(void *slice, enum dtype t, int64_t offset)
{
    return slice ? (char *)slice + offset * (int64_t)dtype_bytes(t) : NULL;
}

static void step_range(struct optim *optim, const struct slice_range *r, float lr)
{
    const struct optim_config *c = &optim->config;
    const struct shard_unit *unit = shard_get_unit(optim->shard, r->unit);
    enum dtype t = shard_dtype(optim->shard);
    struct optim_range range = {
        .stream = shard_update_stream(optim->shard),
        .dtype = t,
        .weights = at(unit->value, t, r->offset),
        .gradient = unit->gradient + r->offset,
        .count = r->count,
        .lr = lr,
        .weight_decay = r->decays ? c->weight_decay : 0,
        .step = optim->steps,
        /* The random numbers hang on the parameter, the element and the step, and not on the rank:
         * any number of ranks rounds alike. */
        .key = random_key(c->seed, r->param_index, (uint64_t)optim->steps, ROUNDING),
        .first = r->param_offset,
    };
    for (int i = 0; i < OPTIM_MAX_STATES; i++)
        range.states[i] = at(optim->states[r->unit][i], t, r->offset);
    /* As torch.nn.utils.clip_grad_norm_, with the norm over all ranks. The device computes the
     * factor, so the host does not wait. */
    range.extras.sum_of_squares = c->grad_clip > 0 ? optim->sum_of_squares : NULL;
    range.extras.max_norm = c->grad_clip;
    range.extras.copy = at(unit->copy, DTYPE_BF16, r->offset);
    c->kind->step(c, &range);
}

void optim_step(struct optim *optim, float lr)
{
    if (optim->config.grad_clip > 0 && !optim->measured)
        optim_measure(optim);
    optim->measured = false;
    optim->steps++;
    shard_join_update(optim->shard);
    for (int i = 0; i < optim->range_count; i++) {
        const struct slice_range *range = &optim->ranges[i];
        step_range(optim, range, lr);
        if (i + 1 == optim->range_count || optim->ranges[i + 1].unit != range->unit)
            shard_unit_updated(optim->shard, range->unit);
    }
    shard_values_updated(optim->shard);
}

int64_t optim_steps(const struct optim *optim)
{
    return optim->steps;
}

void optim_set_steps(struct optim *optim, int64_t steps)
{
    optim->steps = steps;
}

void *optim_state(const struct optim *optim, int unit, int state)
{
    assert(state < optim_state_count(optim));
    return optim->states[unit][state];
}
