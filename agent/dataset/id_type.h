/* Integers of any width, little-endian and wherever they lie, to token ids. */
#ifndef SHOAL_AGENT_DATASET_ID_TYPE_H
#define SHOAL_AGENT_DATASET_ID_TYPE_H

#include <stdint.h>

enum id_type { ID_U8, ID_I8, ID_U16, ID_I16, ID_U32, ID_I32, ID_U64, ID_I64 };

int id_type_bytes(enum id_type type); /* of one */

/* out[i] = the number i of those at `bytes`, which need no alignment; what int32 cannot hold
 * becomes INT32_MAX or INT32_MIN, neither of which is in any vocabulary. */
void id_type_copy(enum id_type type, const uint8_t *bytes, int64_t count, int32_t *out);
#endif
