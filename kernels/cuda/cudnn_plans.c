#include "kernels/cuda/cudnn_plans.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { WORKSPACE_MAX = 256 << 20 /* bytes: what NVIDIA's own front end grants such a backward */ };

void cudnn_plans_close(struct cudnn_plans *plans)
{
    for (int i = 0; i < CUDNN_PLANS && plans->plans[i]; i++) {
        cudnn_graph_close(&plans->plans[i]->attention.graph);
        free(plans->plans[i]);
    }
}

static struct cudnn_plan_key key_of(const struct attention_shape *z, bool backward)
{
    return (struct cudnn_plan_key){z->B,        z->T_q,      z->T_k,
                                   z->heads,    z->kv_heads, z->hd,
                                   z->q_stride, z->k_stride, z->v_stride,
                                   z->causal,   backward,    backward && z->nondeterministic};
}

struct cudnn_plan *cudnn_plans_find(const struct cudnn_plans *plans,
                                    const struct attention_shape *shape, bool backward)
{
    const struct cudnn_plan_key key = key_of(shape, backward);
    for (int i = 0; i < CUDNN_PLANS && plans->plans[i]; i++)
        if (memcmp(&plans->plans[i]->key, &key, sizeof key) == 0)
            return plans->plans[i];
    return NULL;
}

struct cudnn_plan *cudnn_plans_take(struct cudnn_plans *plans, const struct attention_shape *shape,
                                    bool backward)
{
    struct cudnn_plan *plan = cudnn_plans_find(plans, shape, backward);
    if (plan)
        plan->used_at = ++plans->uses;
    return plan;
}

/* Where the next plan goes: a free place, or that of the one used longest ago. */
static int place_of_next(const struct cudnn_plans *plans)
{
    int oldest = 0;
    for (int i = 0; i < CUDNN_PLANS; i++) {
        if (!plans->plans[i])
            return i;
        oldest = plans->plans[i]->used_at < plans->plans[oldest]->used_at ? i : oldest;
    }
    return oldest;
}

bool cudnn_plans_are_full(const struct cudnn_plans *plans)
{
    return plans->plans[place_of_next(plans)] != NULL;
}

/* As many sequences of a batch as a workspace, which grows with them, is enough for: a divisor of
 * B; 0: there is none. Each part's lse begins at a multiple of 16 bytes. */
static int64_t sequences_within(const struct attention_shape *z, int64_t workspace)
{
    int64_t each = workspace / z->B;
    for (int64_t b = z->B; b > 0; b--)
        if (z->B % b == 0 && each * b <= WORKSPACE_MAX &&
            b * z->heads * z->T_q % (CUDNN_ALIGNMENT / (int64_t)sizeof(float)) == 0)
            return b;
    return 0;
}

/* Of the whole batch, or of as many sequences as there is a plan for. */
static void open_plan(struct cudnn_plan *plan, const struct cudnn_api *api, cudnn_descriptor device,
                      const struct attention_shape *shape, bool backward)
{
    struct cudnn_attention *a = &plan->attention;
    struct attention_shape part = *shape;
    plan->sequences = shape->B;
    cudnn_attention_open(a, api, device, &part, backward, WORKSPACE_MAX);
    if (a->plan || a->workspace <= WORKSPACE_MAX)
        return;
    part.B = sequences_within(shape, a->workspace);
    if (part.B == 0 || part.B == shape->B)
        return;
    plan->sequences = part.B;
    cudnn_graph_close(&a->graph);
    cudnn_attention_open(a, api, device, &part, backward, WORKSPACE_MAX);
}

struct cudnn_plan *cudnn_plans_make(struct cudnn_plans *plans, const struct cudnn_api *api,
                                    cudnn_descriptor device, const struct attention_shape *shape,
                                    bool backward)
{
    struct cudnn_plan **place = &plans->plans[place_of_next(plans)];
    if (*place)
        cudnn_graph_close(&(*place)->attention.graph);
    else
        *place = xcalloc(1, sizeof **place);
    struct cudnn_plan *plan = *place;
    plan->key = key_of(shape, backward);
    plan->used_at = ++plans->uses;
    plan->is_compared = false;
    open_plan(plan, api, device, shape, backward);
    return plan;
}
