#include "agent/optim.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_STATES = 2 };

struct optim {
    struct optim_config config;
    struct shard *shard;
    int64_t steps;
    float *(*states)[MAX_STATES]; /* one row a unit */
};

struct optim_config optim_defaults(enum optim_type type)
{
    switch (type) {
    case OPTIM_ADADELTA:
        return (struct optim_config){.type = type, .rho = 0.9f, .eps = 1e-6f};
    case OPTIM_SGD:
        return (struct optim_config){.type = type};
    case OPTIM_ADAM:
        return (struct optim_config){.type = type, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};
    case OPTIM_ADAMW:
        return (struct optim_config){
            .type = type, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .weight_decay = 0.01f};
    }
    assert(!"an unknown optimizer");
    return (struct optim_config){0};
}

int optim_state_count(const struct optim *optim)
{
    if (optim->config.type == OPTIM_SGD)
        return optim->config.momentum > 0 ? 1 : 0;
    return 2;
}

const char *optim_state_name(const struct optim *optim, int state)
{
    static const char *const names[][MAX_STATES] = {
        [OPTIM_ADADELTA] = {"square_avg", "acc_delta"},
        [OPTIM_SGD] = {"momentum_buffer"},
        [OPTIM_ADAM] = {"exp_avg", "exp_avg_sq"},
        [OPTIM_ADAMW] = {"exp_avg", "exp_avg_sq"},
    };
    assert(state >= 0 && state < optim_state_count(optim));
    return names[optim->config.type][state];
}

static int open_states(struct optim *optim, struct error *err)
{
    struct stream *stream = shard_home_stream(optim->shard);
    struct device *home = stream_device(stream);
    for (int u = 0; u < shard_unit_count(optim->shard); u++) {
        const struct shard_unit *unit = shard_get_unit(optim->shard, u);
        for (int i = 0; i < optim_state_count(optim) && unit->shard_count; i++) {
            char what[64];
            snprintf(what, sizeof what, "optimizer state %s", optim_state_name(optim, i));
            void *memory;
            if (device_alloc(home, MEMORY_OPTIMIZER, (size_t)unit->shard_count * sizeof(float),
                             what, &memory, err) < 0)
                return -1;
            optim->states[u][i] = memory;
            device_ops(home)->fill(stream, memory, 0, unit->shard_count);
        }
    }
    return 0;
}

int optim_open(const struct optim_config *config, struct shard *shard, struct optim **ret_optim,
               struct error *err)
{
    assert(!config->nesterov || config->momentum > 0);
    struct optim *optim = xcalloc(1, sizeof *optim);
    optim->config = *config;
    optim->shard = shard;
    optim->states = xcalloc((size_t)shard_unit_count(shard), sizeof *optim->states);
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
    struct device *home = stream_device(shard_home_stream(optim->shard));
    for (int u = 0; u < shard_unit_count(optim->shard); u++)
        for (int i = 0; i < MAX_STATES; i++)
            device_free(home, optim->states[u][i]);
    free(optim->states);
    free(optim);
}

static void step_unit(struct optim *optim, int u, float lr)
{
    const struct optim_config *c = &optim->config;
    const struct shard_unit *unit = shard_get_unit(optim->shard, u);
    struct stream *s = shard_home_stream(optim->shard);
    const struct ops *ops = device_ops(stream_device(s));
    float *w = unit->value, *const *state = optim->states[u];
    int64_t n = unit->shard_count;
    switch (c->type) {
    case OPTIM_ADADELTA:
        ops->adadelta(s, w, unit->gradient, state[0], state[1], n, lr, c->rho, c->eps,
                      c->weight_decay);
        break;
    case OPTIM_SGD:
        ops->sgd(s, w, unit->gradient, state[0], n, lr, c->momentum, c->nesterov, c->weight_decay,
                 optim->steps);
        break;
    case OPTIM_ADAM:
    case OPTIM_ADAMW:
        ops->adam(s, DTYPE_F32, w, unit->gradient, state[0], state[1], n,
                  &(struct adam_step){lr, c->beta1, c->beta2, c->eps, c->weight_decay,
                                      c->type == OPTIM_ADAMW, optim->steps},
                  0, 0);
        break;
    }
}

void optim_step(struct optim *optim, float lr)
{
    optim->steps++;
    for (int u = 0; u < shard_unit_count(optim->shard); u++)
        if (shard_get_unit(optim->shard, u)->shard_count)
            step_unit(optim, u, lr);
    shard_values_changed(optim->shard);
}

int64_t optim_steps(const struct optim *optim)
{
    return optim->steps;
}

void optim_set_steps(struct optim *optim, int64_t steps)
{
    optim->steps = steps;
}

float *optim_state(const struct optim *optim, int unit, int state)
{
    assert(state < optim_state_count(optim));
    return optim->states[unit][state];
}
