/* What a gather of a unit carries. Pure arithmetic over its layout, with the same result on every
 * rank.
 *
 * Without fp8 that is the flat buffer, in the dtype that the model computes in. Where weights that
 * are multiplied in fp8 make up nearly all of a unit, it is a byte for each element, at the same
 * place: the weights' codes. They are matrices, of which each has a scale, and what is between and
 * around them is the rest: norms, biases, a table of positions.
 *
 *   flat buffer   [ q      | k   | v   ][ bias ][ down           ][ norm ]
 *   codes         [ matrix 0           ]  ....  [ matrix 1       ]  ....
 *   rest          [ bias ][ norm ]
 *
 * A slice cuts that anywhere. So before a unit's first gather after an update each rank sends a
 * message of bf16: the largest magnitude of each matrix in its slice, then what its slice has of
 * the rest. Of all messages each rank makes the scales, the same that the whole tensors have, and
 * the rest. Both stay until the next update; the codes come and go with the unit.
 *
 *   message       [ largest of 0, 7 zeros ][ of 1, 7 zeros ][ the slice's part of the rest ] */
#ifndef SHOAL_AGENT_SHARD_SHARD_PAYLOAD_H
#define SHOAL_AGENT_SHARD_SHARD_PAYLOAD_H

#include "agent/shard/shard_layout.h"

#include <stdbool.h>
#include <stdint.h>

/* Elements of a message for a matrix: 16 bytes, as ops want them. */
enum { SHARD_PAYLOAD_LARGEST = 8 };

/* A part of the flat buffer or of a slice. */
struct shard_payload_span {
    int64_t offset, count; /* elements; multiples of LAYOUT_ALIGN_FP8 */
};

/* What one rank's message has of the rest. */
struct shard_payload_piece {
    int rank; /* in the shard group */
    int64_t slice_offset, message_offset, rest_offset, count;
};

/* Where a parameter of the unit is. */
struct shard_payload_place {
    int matrix;          /* -1: in the rest */
    int64_t rest_offset; /* there */
};

struct shard_payload {
    bool is_fp8; /* false: the flat buffer, and nothing of what follows */
    struct shard_payload_span *matrices;
    int matrix_count;
    struct shard_payload_piece *pieces; /* of all ranks */
    int piece_count;
    struct shard_payload_place *places; /* of the unit's parameters, in its order */
    int64_t rest_count, message_count;
};

/* The most elements of the rest that any slice has. */
static inline int64_t shard_payload_most(int64_t rest, int64_t shard_count)
{
    return rest < shard_count ? rest : shard_count;
}

/* Whether codes are worth it: they and the messages of all ranks together are fewer bytes than the
 * flat buffer in bf16, however the slices lie. fp8_count: of the elements, those of weights that
 * are multiplied in fp8. False for a group of one, which gathers nothing. */
bool shard_payload_saves(int64_t flat_count, int64_t fp8_count, int group_size);

/* joins: weights that lie beside each other and multiply one x are one matrix (nn_linears, on a
 * GPU). For a layout whose `align` is LAYOUT_ALIGN_FP8; false is_fp8 for others. Allocates in
 * `arena`. */
void shard_payload_make(struct arena *arena, const struct shard_layout *layout,
                        const struct layout_unit *unit, bool joins,
                        struct shard_payload *ret_payload);

/* What the slice of `rank` has of the span, from the slice's begin on; count 0: nothing. */
struct shard_payload_span shard_payload_in_slice(const struct shard_payload_span *span,
                                                 int64_t shard_count, int rank);
#endif
