#include "kernels/cuda/attention_choice.h"

#include "base/contract.h"
#include "base/mem.h"

#include <string.h>

/* Two measurements of the same kernel differ by less than 5 %. The bench measures our kernel twice
 * where cuDNN has none, so a smaller difference is noise. */
static const double noise_ratio = 0.95;

int attention_mode_read(const char *text, enum attention_mode *ret_mode, struct error *err)
{
    static const char *const names[] = {
        [ATTENTION_AUTO] = "auto", [ATTENTION_OURS] = "ours", [ATTENTION_CUDNN] = "cudnn"};
    *ret_mode = ATTENTION_AUTO;
    if (!text || !*text)
        return 0;
    for (size_t i = 0; i < array_length(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *ret_mode = (enum attention_mode)i;
            return 0;
        }
    return error_set(err, ERR_CONFIG, ENV_ATTENTION " is \"%s\": auto, ours or cudnn is meant",
                     text);
}

static bool is_possible(enum dtype t, const struct attention_shape *z)
{
    return t == DTYPE_BF16 && (z->hd == 64 || z->hd == 128) && !z->bias && z->dropout <= 0 &&
           !z->key_counts && (z->q_stride | z->k_stride | z->v_stride) % 8 == 0;
}

bool attention_is_measured(const struct attention_choice *choice)
{
    const struct attention_measured *row = choice->table;
    while (row->compute_capability && row->compute_capability != choice->compute_capability)
        row++;
    return row->compute_capability != 0;
}

/* The row that stands for a call; NULL: there is none. */
static const struct attention_measured *find_row(const struct attention_choice *choice,
                                                 enum attention_direction direction,
                                                 const struct attention_shape *z)
{
    const enum attention_mask mask = z->causal ? ATTENTION_CAUSAL : ATTENTION_FULL;
    const struct attention_measured *found = NULL;
    for (const struct attention_measured *row = choice->table; row->compute_capability; row++)
        if (row->compute_capability == choice->compute_capability && row->direction == direction &&
            row->hd == z->hd && row->mask == mask && row->T <= z->T_k &&
            (!found || row->T > found->T))
            found = row;
    return found;
}

bool attention_tries_cudnn(const struct attention_choice *choice,
                           enum attention_direction direction, enum dtype t,
                           const struct attention_shape *z)
{
    if (choice->mode == ATTENTION_OURS || !is_possible(t, z))
        return false;
    if (choice->mode == ATTENTION_CUDNN)
        return true;
    const struct attention_measured *row = find_row(choice, direction, z);
    return row && row->cudnn_ms < noise_ratio * row->ours_ms;
}
