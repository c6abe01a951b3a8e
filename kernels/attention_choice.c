#include "kernels/attention_choice.h"

#include "base/contract.h"
#include "base/mem.h"

#include <string.h>

/* Two measurements of the same kernel differ by less than 5 %. The bench measures our kernel twice
 * where cuDNN has none, so a smaller difference is noise. */
static const double noise_ratio = 0.95;

int attention_mode_read(const char *text, enum attention_mode *ret_mode, struct error *err)
{
    static const char *const names[] = {[ATTENTION_AUTO] = "auto",
                                        [ATTENTION_OURS] = "ours",
                                        [ATTENTION_CUDNN] = "cudnn",
                                        [ATTENTION_HOPPER] = "hopper"};
    *ret_mode = ATTENTION_AUTO;
    if (!text || !*text)
        return 0;
    for (size_t i = 0; i < array_length(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *ret_mode = (enum attention_mode)i;
            return 0;
        }
    return error_set(err, ERR_CONFIG,
                     ENV_ATTENTION " is \"%s\": auto, ours, cudnn or hopper is meant", text);
}

int attention_mode_check(enum attention_mode mode, const char *gpu, int compute_capability,
                         struct error *err)
{
    if (mode != ATTENTION_HOPPER || compute_capability == 90)
        return 0;
    return error_set(err, ERR_CONFIG,
                     ENV_ATTENTION
                     "=hopper is for compute capability 9.0: %s has %d.%d. auto, ours "
                     "and cudnn are for all",
                     gpu, compute_capability / 10, compute_capability % 10);
}

static bool is_possible(enum dtype t, const struct attention_shape *z)
{
    return t == DTYPE_BF16 && (z->hd == 64 || z->hd == 128) && !z->bias && z->dropout <= 0 &&
           !z->key_counts && (z->q_stride | z->k_stride | z->v_stride) % 8 == 0;
}

/* What tensor maps can say of q, k and v (tensor_map.h). */
static bool is_possible_on_hopper(const struct attention_choice *choice,
                                  const struct attention_shape *z)
{
    return choice->compute_capability == 90 && z->q_stride % z->hd == 0 &&
           z->k_stride % z->hd == 0 && z->v_stride % z->hd == 0;
}

static const struct attention_measured *next(const struct attention_measured *row, size_t bytes)
{
    return (const struct attention_measured *)((const char *)row + bytes);
}

/* The row that stands for a call, and whether there is any of its kind. Rows are `bytes` apart. */
static const struct attention_measured *
find_row(const struct attention_measured *rows, size_t bytes, int compute_capability,
         enum attention_direction direction, const struct attention_shape *z, bool *ret_is_known)
{
    const enum attention_mask mask = z->causal ? ATTENTION_CAUSAL : ATTENTION_FULL;
    const struct attention_measured *found = NULL;
    *ret_is_known = false;
    for (const struct attention_measured *row = rows; row->compute_capability;
         row = next(row, bytes)) {
        if (row->compute_capability != compute_capability || row->direction != direction ||
            row->hd != z->hd || row->mask != mask)
            continue;
        *ret_is_known = true;
        if (row->T <= z->T_k && (!found || row->T > found->T))
            found = row;
    }
    return found;
}

enum attention_doer attention_choose(const struct attention_choice *choice,
                                     enum attention_direction direction, enum dtype t,
                                     const struct attention_shape *z)
{
    enum attention_doer doer = ATTENTION_CUDNN_MEASURED;
    bool is_known;
    if (choice->mode == ATTENTION_OURS || !is_possible(t, z))
        return ATTENTION_BY_US;
    if (choice->mode == ATTENTION_HOPPER)
        return is_possible_on_hopper(choice, z) ? ATTENTION_BY_HOPPER : ATTENTION_BY_US;
    if (choice->mode == ATTENTION_CUDNN)
        return ATTENTION_CUDNN_ASKED;
    if (direction == ATTENTION_BACKWARD && z->nondeterministic)
        direction = ATTENTION_BACKWARD_NONDETERMINISTIC;
    const struct attention_measured *row = find_row(
        choice->table, sizeof *choice->table, choice->compute_capability, direction, z, &is_known);
    if (!is_known) {
        doer = ATTENTION_CUDNN_PUBLISHED;
        row = find_row(&choice->published->row, sizeof *choice->published,
                       choice->compute_capability, direction, z, &is_known);
    }
    return row && row->cudnn_ms < noise_ratio * row->ours_ms ? doer : ATTENTION_BY_US;
}

static bool has_rows(const struct attention_measured *row, size_t bytes, int compute_capability)
{
    while (row->compute_capability && row->compute_capability != compute_capability)
        row = next(row, bytes);
    return row->compute_capability != 0;
}

bool attention_is_known(const struct attention_choice *choice)
{
    return has_rows(choice->table, sizeof *choice->table, choice->compute_capability) ||
           has_rows(&choice->published->row, sizeof *choice->published, choice->compute_capability);
}
