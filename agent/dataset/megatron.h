/* Megatron's indexed data sets (https://github.com/NVIDIA/Megatron-LM, core/datasets): NAME.idx
 * says where in NAME.bin, which is bare ids, each sequence lies. */
#ifndef SHOAL_AGENT_DATASET_MEGATRON_H
#define SHOAL_AGENT_DATASET_MEGATRON_H

#include "agent/dataset/id_type.h"
#include "agent/dataset/token_index.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a file that begins so is an .idx. */
bool megatron_is(const uint8_t *bytes, size_t size);

/* An .idx in memory, checked: the arrays point into it (unaligned). */
struct megatron_index {
    enum id_type type;
    int64_t count;          /* sequences */
    const uint8_t *lengths; /* [count] int32: ids */
    const uint8_t *offsets; /* [count] int64: bytes into the .bin */
};

/* Every sequence is checked to lie within the .bin's bin_bytes. Errors: ERR_INPUT naming the file
 * and the offset or sequence; ERR_UNSUPPORTED for floating-point ids. */
int megatron_parse(const char *name, const uint8_t *bytes, size_t size, int64_t bin_bytes,
                   struct megatron_index *ret_index, struct error *err);

/* Maps the pairs; paths are those of the .idx files and must outlive the documents, which are the
 * sequences of all pairs in order. */
int megatron_open(const char *const *paths, int count, struct id_documents *ret_documents,
                  struct error *err);
#endif
