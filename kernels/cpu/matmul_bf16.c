/* Products of bf16 matrices by oneDNN's matmul primitives. Making one costs a millisecond, so each
 * shape's is kept: a training step asks for the same few again and again. */
#include "base/mem.h"
#include "kernels/cpu/matmul.h"

#include <dnnl.h>
#include <stdlib.h>
#include <string.h>

enum { PLANS = 64 }; /* a model has about ten shapes; the one used longest ago makes room */

struct plan {
    struct matmul matmul; /* what the primitive is made for */
    bool with_bias;
    uint64_t used_at; /* 0: free */
    dnnl_primitive_t primitive;
    dnnl_memory_t a, b, bias, c, scratchpad;
    size_t scratchpad_bytes;
};

struct matmul_cache {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint64_t uses;
    struct plan plans[PLANS];
};

static void must(dnnl_status_t status)
{
    assert(status == dnnl_success); /* a shape it does not know is a bug, no memory ends us */
    (void)status;
}

struct matmul_cache *matmul_cache_open(void)
{
    struct matmul_cache *cache = xcalloc(1, sizeof *cache);
    must(dnnl_engine_create(&cache->engine, dnnl_cpu, 0));
    must(dnnl_stream_create(&cache->stream, cache->engine, dnnl_stream_default_flags));
    return cache;
}

static void plan_clear(struct plan *plan)
{
    if (plan->used_at) {
        must(dnnl_primitive_destroy(plan->primitive));
        must(dnnl_memory_destroy(plan->a));
        must(dnnl_memory_destroy(plan->b));
        must(dnnl_memory_destroy(plan->c));
        must(dnnl_memory_destroy(plan->scratchpad));
        if (plan->bias)
            must(dnnl_memory_destroy(plan->bias));
    }
    memset(plan, 0, sizeof *plan);
}

void matmul_cache_close(struct matmul_cache *cache)
{
    if (!cache)
        return;
    for (int i = 0; i < PLANS; i++)
        plan_clear(&cache->plans[i]);
    must(dnnl_stream_destroy(cache->stream));
    must(dnnl_engine_destroy(cache->engine));
    free(cache);
}

static dnnl_memory_desc_t describe(int64_t rows, int64_t cols, int64_t stride, bool trans,
                                   enum dtype t)
{
    dnnl_memory_desc_t matrix;
    dnnl_dims_t dims = {rows, cols}, strides = {stride, 1};
    if (trans) {
        strides[0] = 1;
        strides[1] = stride;
    }
    must(dnnl_memory_desc_init_by_strides(&matrix, 2, dims, t == DTYPE_F32 ? dnnl_f32 : dnnl_bf16,
                                          strides));
    return matrix;
}

static dnnl_memory_t hold(const struct matmul_cache *cache, const dnnl_memory_desc_t *matrix)
{
    dnnl_memory_t memory;
    must(dnnl_memory_create(&memory, matrix, cache->engine, DNNL_MEMORY_NONE));
    return memory;
}

static void plan_make(const struct matmul_cache *cache, struct plan *plan)
{
    const struct matmul *p = &plan->matmul;
    dnnl_memory_desc_t a = describe(p->m, p->k, p->a_stride, p->trans_a, DTYPE_BF16);
    dnnl_memory_desc_t b = describe(p->k, p->n, p->b_stride, p->trans_b, DTYPE_BF16);
    dnnl_memory_desc_t c = describe(p->m, p->n, p->c_stride, false, p->t_c);
    dnnl_memory_desc_t bias = describe(1, p->n, p->n, false, DTYPE_BF16);
    dnnl_matmul_desc_t matmul;
    must(dnnl_matmul_desc_init(&matmul, &a, &b, plan->with_bias ? &bias : NULL, &c));
    dnnl_primitive_attr_t attributes;
    must(dnnl_primitive_attr_create(&attributes));
    /* A scratchpad of ours: the stream's memory serves one op at a time, and each primitive of
     * oneDNN would otherwise keep its own. */
    must(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    dnnl_post_ops_t after;
    must(dnnl_post_ops_create(&after));
    if (p->accumulate)
        must(dnnl_post_ops_append_sum(after, 1.0f));
    must(dnnl_primitive_attr_set_post_ops(attributes, after));
    dnnl_primitive_desc_t descriptor;
    must(dnnl_primitive_desc_create(&descriptor, &matmul, attributes, cache->engine, NULL));
    must(dnnl_primitive_create(&plan->primitive, descriptor));
    const dnnl_memory_desc_t *scratchpad =
        dnnl_primitive_desc_query_md(descriptor, dnnl_query_scratchpad_md, 0);
    plan->scratchpad_bytes = dnnl_memory_desc_get_size(scratchpad);
    plan->scratchpad = hold(cache, scratchpad);
    plan->a = hold(cache, &a);
    plan->b = hold(cache, &b);
    plan->c = hold(cache, &c);
    plan->bias = plan->with_bias ? hold(cache, &bias) : NULL;
    must(dnnl_post_ops_destroy(after));
    must(dnnl_primitive_attr_destroy(attributes));
    must(dnnl_primitive_desc_destroy(descriptor));
}

static struct plan *plan_find(struct matmul_cache *cache, const struct matmul *p, bool with_bias)
{
    struct plan *oldest = &cache->plans[0];
    cache->uses++;
    for (int i = 0; i < PLANS; i++) {
        struct plan *plan = &cache->plans[i];
        if (plan->used_at && plan->with_bias == with_bias && matmul_equal(&plan->matmul, p)) {
            plan->used_at = cache->uses;
            return plan;
        }
        oldest = plan->used_at < oldest->used_at ? plan : oldest;
    }
    plan_clear(oldest);
    oldest->matmul = *p;
    oldest->with_bias = with_bias;
    oldest->used_at = cache->uses;
    plan_make(cache, oldest);
    return oldest;
}

static void set(dnnl_memory_t memory, const void *data)
{
    must(dnnl_memory_set_data_handle(memory, (void *)data));
}

bool matmul_native_bf16(struct stream *s, const struct matmul *p, const void *a, const void *b,
                        const void *bias, void *c)
{
    int isa = (int)dnnl_get_effective_cpu_isa(), needed = dnnl_cpu_isa_avx512_core_bf16;
    /* Without these instructions oneDNN would not be faster than fp32's sgemm, which product.c
     * takes then. */
    if ((isa & needed) != needed)
        return false;
    struct matmul_cache *cache = cpu_matmul_cache(s);
    struct plan *plan = plan_find(cache, p, bias != NULL);
    /* The primitive knows shapes and strides alone; the pointers are those of this call. */
    set(plan->a, a);
    set(plan->b, b);
    set(plan->c, c);
    set(plan->scratchpad, cpu_scratch(s, plan->scratchpad_bytes));
    if (bias)
        set(plan->bias, bias);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, plan->a},
                              {DNNL_ARG_WEIGHTS, plan->b},
                              {DNNL_ARG_DST, plan->c},
                              {DNNL_ARG_SCRATCHPAD, plan->scratchpad},
                              {DNNL_ARG_BIAS, plan->bias}};
    must(dnnl_primitive_execute(plan->primitive, cache->stream, bias ? 5 : 4, args));
    must(dnnl_stream_wait(cache->stream));
    return true;
}
