#include "agent/telemetry/flops.h"

#include "base/mem.h"

#include <string.h>

/* Per sample of S tokens for the encoder and T for the decoder, divided by both. */
static double translation_per_token(const struct flops_shape *s, enum run_convention convention)
{
    double S = (double)s->sequence_tokens, T = (double)s->target_tokens;
    double at_source = (double)(s->parameters - s->lookup_parameters - s->target_parameters);
    double seen_by_target = S + (convention == FLOPS_CAUSAL ? T / 2 : T);
    double scores = (double)s->layers * S * S + (double)s->target_layers * T * seen_by_target;
    return (6 * (at_source * S + (double)s->target_parameters * T) +
            12 * (double)s->attention_width * scores) /
           (S + T);
}

double flops_per_token(const struct flops_shape *s, enum run_convention convention)
{
    if (s->target_layers > 0)
        return translation_per_token(s, convention);
    /* Per parameter one multiplication and one addition forward, and twice that backward (dx and
     * dw). */
    double products = 6 * (double)(s->parameters - s->lookup_parameters);
    /* Q K^T and P V: 2 products of width x T, 2 FLOPs each, 3 times with backward: 12 (PaLM,
     * appendix B). */
    double scores =
        12 * (double)s->layers * (double)s->attention_width * (double)s->sequence_tokens;
    return products + (convention == FLOPS_CAUSAL && !s->sees_all ? scores / 2 : scores);
}

/* From the data sheets, without sparsity. The first row whose words are all in the name counts, so
 * the particular stand before the general. */
static const struct {
    const char *words[2];
    double flops_per_s;
} peaks[] = {
    {{"H100", "NVL"}, 835e12}, {{"H100", "PCIe"}, 756e12},
    {{"H100"}, 989e12},        {{"H200"}, 989e12},
    {{"GH200"}, 989e12},       {{"H20"}, 148e12},
    {{"GB200"}, 2.5e15},       {{"B200"}, 2.25e15},
    {{"A100"}, 312e12},        {{"L40S"}, 362e12},
    {{"A6000"}, 154.85e12},    {{"T4"}, 8.1e12}, /* of fp32: it has no bf16 */
};

/* Whether `word` stands in the name with no letter or digit around it. */
static bool has_word(const char *name, const char *word)
{
    static const char in_words[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t length = strlen(word);
    for (const char *at = strstr(name, word); at; at = strstr(at + 1, word)) {
        bool begins = at == name || !strchr(in_words, at[-1]);
        bool ends = at[length] == '\0' || !strchr(in_words, at[length]);
        if (begins && ends)
            return true;
    }
    return false;
}

double flops_peak_per_s(const char *device_name)
{
    for (size_t i = 0; i < array_length(peaks); i++)
        if (has_word(device_name, peaks[i].words[0]) &&
            (!peaks[i].words[1] || has_word(device_name, peaks[i].words[1])))
            return peaks[i].flops_per_s;
    return 0;
}

double flops_utilization(double tokens_per_s, double per_token, int world_size, double peak_per_s)
{
    if (tokens_per_s <= 0 || per_token <= 0 || world_size < 1 || peak_per_s <= 0)
        return 0;
    return tokens_per_s * per_token / world_size / peak_per_s;
}
