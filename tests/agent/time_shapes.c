#include "tests/agent/time_shapes.h"

#include "tests/support.h"

#define LLAMA .value_bytes = 2, .gated = true, .rope = true
#define GPT2  .value_bytes = 2, .biases = true, .positions = true, .packed_qkv = true, .tied = true

const struct time_shape llama_1b = {
    LLAMA,         .tied = true, .L = 16,   .D = 2048,   .heads = 32,
    .kv_heads = 8, .hd = 64,     .I = 8192, .V = 128256, .parameters = 1235814400};
const struct time_shape llama_8b = {LLAMA,       .L = 32,       .D = 4096,
                                    .heads = 32, .kv_heads = 8, .hd = 128,
                                    .I = 14336,  .V = 128256,   .parameters = 8030261248};
const struct time_shape llama2_7b = {LLAMA,       .L = 32,        .D = 4096,
                                     .heads = 32, .kv_heads = 32, .hd = 128,
                                     .I = 11008,  .V = 32000,     .parameters = 6738415616};
const struct time_shape qwen_05b = {LLAMA,       .tied = true,           .L = 24,  .D = 896,
                                    .heads = 14, .kv_heads = 2,          .hd = 64, .I = 4864,
                                    .V = 151936, .parameters = 494032768};
const struct time_shape qwen_15b = {
    LLAMA,         .tied = true, .L = 28,   .D = 1536,   .heads = 12,
    .kv_heads = 2, .hd = 128,    .I = 8960, .V = 151936, .parameters = 1543714304};
const struct time_shape qwen_3b = {
    LLAMA,         .tied = true, .L = 36,    .D = 2048,   .heads = 16,
    .kv_heads = 2, .hd = 128,    .I = 11008, .V = 151936, .parameters = 3085938688};
const struct time_shape qwen_7b = {LLAMA,       .L = 28,       .D = 3584,
                                   .heads = 28, .kv_heads = 4, .hd = 128,
                                   .I = 18944,  .V = 152064,   .parameters = 7615616512};
const struct time_shape gpt2_124m = {GPT2,        .L = 12,        .D = 768,
                                     .heads = 12, .kv_heads = 12, .hd = 64,
                                     .I = 3072,   .V = 50257,     .parameters = 124439808};
const struct time_shape gpt2_1558m = {GPT2,        .L = 48,        .D = 1600,
                                      .heads = 25, .kv_heads = 25, .hd = 64,
                                      .I = 6400,   .V = 50257,     .parameters = 1557611200};

struct time_ranks time_ranks_of(const struct time_shape *s, enum shard_strategy strategy, int world)
{
    int64_t blocks = s->L, embedding = s->V * s->D * (s->tied ? 1 : 2);
    return (struct time_ranks){
        .strategy = strategy,
        .world = world,
        .group = strategy == NO_SHARD       ? 1
                 : strategy == HYBRID_SHARD ? 8
                                            : world,
        .node = world < 8 ? world : 8,
        .micro_batches = 1,
        .value_bytes = 2,
        .reduce_bytes = 4,
        .units = (int)blocks + 1,
        .root = embedding + s->D,
        .block = (s->parameters - embedding) / blocks,
    };
}

double time_tokens_per_s(const struct time_device *d, const struct time_shape *s,
                         const struct time_ways *w, const struct time_ranks *r)
{
    struct time_step step;
    time_step_make(d, s, w, r, &step);
    return step.tokens / step.total_s;
}

struct time_device time_device_of(const char *name)
{
    const struct time_device *d;
    struct error err;
    assert_int_equal(time_device_find(name, &d, &err), 0);
    return *d;
}
