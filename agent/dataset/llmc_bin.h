/* llm.c's token files (https://github.com/karpathy/llm.c, dev/data/data_common.py): a header of 256
 * int32, then the ids: 16 bits each for GPT-2, 32 for Llama 3. Shards follow one another. */
#ifndef SHOAL_AGENT_DATASET_LLMC_BIN_H
#define SHOAL_AGENT_DATASET_LLMC_BIN_H

#include "agent/dataset/token_index.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first words of the header: magic number, version, count of ids. */
enum {
    LLMC_HEADER_BYTES = 1024,
    LLMC_MAGIC_GPT2 = 20240520, /* 16 bits */
    LLMC_VERSION_GPT2 = 1,
    LLMC_MAGIC_LLAMA3 = 20240801, /* 32 bits */
    LLMC_VERSION_LLAMA3 = 7,
};

/* Whether a file that begins so is one of these. */
bool llmc_bin_is(const uint8_t *bytes, size_t size);

/* Maps the shards and checks their headers against their sizes: ERR_INPUT naming the file. The
 * paths must outlive the documents, one per shard. */
int llmc_bin_open(const char *const *paths, int count, struct id_documents *ret_documents,
                  struct error *err);
#endif
