#include "agent/plan/run_plan_internal.h"

/* ---- activations ---- */

/* Of one token in one layer: the inputs of both norms and what they give, queries, keys and values,
 * what attention gives and the logarithms of its sums (fp32), the feed-forward's middle. */
static int64_t layer_bytes(const struct plan_activations *a, int value, bool is_selective)
{
    int64_t heads = a->heads * a->hd, kv = a->kv_heads * a->hd;
    int64_t norms = is_selective ? 2 * a->D : 4 * a->D;
    int64_t middle = (a->gated ? 2 : 1) * a->I + (is_selective ? 0 : a->I);
    return value * (norms + heads + 2 * kv + heads + middle) + 4 * a->heads;
}

/* What a layer of a decoder keeps of one token for looking at the encoder's output: another norm's
 * input and what it gives, queries and what attention gives; and of one of the encoder's tokens:
 * keys and values. */
static int64_t cross_bytes(const struct plan_activations *a, int value, bool is_selective)
{
    int64_t norms = is_selective ? a->D : 2 * a->D;
    return value * (norms + 2 * a->heads * a->hd) + 4 * a->heads;
}

/* Bytes of a layer, as it is kept: of all its tokens, at work or only to be run again. */
struct layers {
    int64_t count, whole, kept;
};

static struct layers encoder_layers(const struct run_plan_facts *f)
{
    const struct plan_activations *a = &f->activations;
    int64_t tokens = f->batch_rows * (f->sequence_tokens - a->target_tokens);
    int64_t whole =
        tokens * layer_bytes(a, f->bytes.value, a->checkpointing == TAPE_CHECKPOINTING_SELECTIVE);
    bool recomputes =
        a->checkpointing == TAPE_CHECKPOINTING_FULL; /* of each block its input, and one at work */
    return (struct layers){a->L, whole, recomputes ? tokens * f->bytes.value * a->D : whole};
}

static struct layers decoder_layers(const struct run_plan_facts *f)
{
    const struct plan_activations *a = &f->activations;
    bool is_selective = a->checkpointing == TAPE_CHECKPOINTING_SELECTIVE;
    int64_t source = f->batch_rows * (f->sequence_tokens - a->target_tokens);
    int64_t tokens = f->batch_rows * a->target_tokens, value = f->bytes.value;
    int64_t whole = tokens * (layer_bytes(a, f->bytes.value, is_selective) +
                              cross_bytes(a, f->bytes.value, is_selective)) +
                    source * value * 2 * a->kv_heads * a->hd;
    bool recomputes = a->checkpointing == TAPE_CHECKPOINTING_FULL;
    return (struct layers){a->decoder_L, whole, recomputes ? tokens * value * a->D : whole};
}

/* What a linear layer holds in fp8 at once (agent/nn/nn_fp8.c): forward, values and the weight; for
 * the weight's gradient dy twice, and values; for the values' one dy, and the weight. `decoded`
 * bytes more for each code of the two factors of a product. A weight that is gathered in fp8 is not
 * copied for the one of these two that takes it as it lies. The most that a block has is the same:
 * forward of its last layer takes what the gradient of the values before its middle does, and the
 * other way round. */
static int64_t copies_of(int64_t rows, int64_t in, int64_t out, int64_t decoded)
{
    int64_t forward = rows * in + in * out, values = rows * out + in * out;
    int64_t weights = rows * (2 * out + in) + decoded * rows * (out + in);
    return max(weights, (1 + decoded) * max(forward, values));
}

/* The most that one of a block's has. A CPU decodes to bf16 (kernels/cpu/fp8.c), and does one after
 * the other of what is one matrix on a GPU (agent/nn/nn_linears.c). */
static int64_t fp8_copies(const struct run_plan_facts *f)
{
    const struct plan_activations *a = &f->activations;
    int64_t rows = f->batch_rows * max(f->sequence_tokens - a->target_tokens, a->target_tokens);
    int64_t heads = a->heads * a->hd, qkv = heads + 2 * a->kv_heads * a->hd;
    int64_t middle = (a->gated ? 2 : 1) * a->I, decoded = 0;
    if (!a->fp8)
        return 0;
    if (a->fp8_decoded) {
        decoded = (int64_t)sizeof(bf16);
        qkv = heads;
        middle = a->I;
    }
    int64_t attention =
        max(copies_of(rows, a->D, qkv, decoded), copies_of(rows, heads, a->D, decoded));
    return max(attention,
               max(copies_of(rows, a->D, middle, decoded), copies_of(rows, a->I, a->D, decoded)));
}

void run_plan_add_activations(const struct run_plan_facts *f, struct run_plan *plan)
{
    const struct plan_activations *a = &f->activations;
    int64_t tokens = f->batch_rows * f->sequence_tokens, value = f->bytes.value;
    plan->activations = a->pass_bytes;
    if (a->L == 0)
        return;
    const struct layers stacks[] = {encoder_layers(f), decoder_layers(f)};
    int64_t horizon = a->offload ? a->horizon : a->L + a->decoder_L, at_work = 0;
    for (int i = 1; i >= 0; i--) { /* the last ones are those that stay */
        int64_t here = stacks[i].count < horizon ? stacks[i].count : horizon;
        horizon -= here;
        plan->activations += here * stacks[i].kept;
        plan->host_activations += a->offload ? stacks[i].count * stacks[i].kept : 0;
        if (stacks[i].count > 0 && stacks[i].whole > at_work)
            at_work = stacks[i].whole;
    }
    plan->activations += a->checkpointing == TAPE_CHECKPOINTING_FULL ? at_work : 0;
    plan->activation_gradients = tokens * value * (a->I + a->D);
    plan->fp8_copies = fp8_copies(f);
    tokens = a->decoder_L > 0 ? f->batch_rows * a->target_tokens : tokens;
    int64_t rows = tokens < a->chunk_rows ? tokens : a->chunk_rows;
    plan->logits = rows * a->logit_stride * value;
}

/* What cuDNN's backward takes beside that: the keys' and the values' gradients of every head, and
 * the scores; or, in any order, the queries' gradient in fp32. It does as many sequences at a time
 * as its workspace is enough for; what has too much for one is not cuDNN's. */
static int64_t cudnn_scratch(const struct run_plan_facts *f, int64_t T)
{
    const struct plan_activations *a = &f->activations;
    if (!a->cudnn_backward || f->bytes.value != (int)sizeof(bf16) || (a->hd != 64 && a->hd != 128))
        return 0;
    int64_t queries = a->heads * T; /* of a sequence */
    int64_t keys = a->heads > a->kv_heads ? 2 * queries * a->hd : 0;
    int64_t scores = a->nondeterministic ? 0 : queries * T;
    int64_t sums = a->nondeterministic ? queries * a->hd : 0;
    int64_t workspace = (int64_t)sizeof(bf16) * (scores + keys);
    int64_t sequences = f->batch_rows;
    while (sequences > 0 &&
           (f->batch_rows % sequences != 0 || sequences * workspace > RUN_PLAN_CUDNN))
        sequences--;
    return sequences * (workspace + sums * (int64_t)sizeof(float));
}

/* What attention's backward has for itself, at the most (kernels/cuda/attention.cu, cudnn_run.c):
 * of each query and head a sum, or two numbers of so many tiles of 128; of a bias, its numbers as
 * they are read and sums of the scores' gradients along diagonals, of so many queries each. */
int64_t run_plan_attention_scratch(const struct run_plan_facts *f)
{
    const struct plan_activations *a = &f->activations;
    int64_t T = max(f->sequence_tokens - a->target_tokens, a->target_tokens);
    int64_t heads = f->batch_rows * a->heads, floats = heads * T;
    if (a->hopper_backward)
        return heads * ((T + 127) / 128 * 128) * 2 * (int64_t)sizeof(float);
    if (!a->bias)
        return floats * (int64_t)sizeof(float) + cudnn_scratch(f, T);
    int64_t queries = a->hd > 64 ? 16 : 32, length = (T + 63) / 64 * 64 + 32;
    floats += heads * ((T + queries - 1) / queries) * length + 2 * T * a->heads;
    return floats * (int64_t)sizeof(float);
}
