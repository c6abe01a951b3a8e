/* How much a model computes, and how much a device could. Pure arithmetic. */
#ifndef SHOAL_AGENT_TELEMETRY_FLOPS_H
#define SHOAL_AGENT_TELEMETRY_FLOPS_H

#include "agent/telemetry/run_numbers.h"

#include <stdbool.h>
#include <stdint.h>

/* What of a transformer decides its FLOPs. */
struct flops_shape {
    int64_t parameters;
    int64_t lookup_parameters; /* of them in tables that are only looked up: an embedding, unless it
                                  is the head's matrix too (tied) */
    int64_t layers;
    int64_t attention_width; /* heads * head_dim */
    int64_t sequence_tokens;
    bool sees_all; /* each token sees all others, as BERT's: nothing is causal */
    /* Of an encoder-decoder the decoder's share, the rest being the encoder's; else 0. */
    int64_t target_parameters; /* of `parameters`, multiplied with what the decoder reads */
    int64_t target_layers, target_tokens;
};

/* Forward and backward: 6 (N - N_lookup) + 12 L H hd T, PaLM's appendix B; causal: half of the
 * second term. Of an encoder-decoder per token of either, on the average: each weight counts for
 * the tokens it meets, and the decoder's tokens see half of themselves and all of the encoder's.
 * What is computed again (checkpointing) is not counted. */
double flops_per_token(const struct flops_shape *shape, enum run_convention convention);

/* Dense bf16 FLOP/s of a device by the name its driver gives it ("NVIDIA H100 80GB HBM3");
 * 0: not in the table, as for every CPU. */
double flops_peak_per_s(const char *device_name);

/* Model FLOPs utilisation, 0..1: what was computed per second and rank over what its device could.
 * 0 if anything is not known. */
double flops_utilization(double tokens_per_s, double per_token, int world_size, double peak_per_s);
#endif
