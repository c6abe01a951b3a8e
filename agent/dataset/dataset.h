/* A labelled set of images in memory, and the batches a rank takes from it. Which rows are in batch
 * b of epoch e is a pure function of the sampler and the seed. So a position in the data is just
 * the epoch and the sampler's first: that is all a checkpoint has to remember. Knows files and
 * ranks, not devices. */
#ifndef SHOAL_AGENT_DATASET_DATASET_H
#define SHOAL_AGENT_DATASET_DATASET_H

#include "agent/dataset/sampler.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { DATASET_CLASSES = 10 }; /* labels are 0 .. 9 */

struct dataset {
    int64_t count, height, width;
    uint8_t *images; /* [count, height, width] */
    uint8_t *labels; /* [count] */
};

enum dataset_split { DATASET_TRAIN, DATASET_TEST };

/* Opens one split of MNIST, or of FashionMNIST, whose files have the same names; plain or .gz. The
 * files are in the first of <root>, <root>/MNIST/raw and <root>/FashionMNIST/raw that has the
 * images. Errors: ERR_NOT_FOUND lists where was looked for what; ERR_INPUT for what idx_read
 * refuses, a label above 9 (with its row) and counts that differ. */
int dataset_open(const char *root, enum dataset_split split, struct dataset **ret_dataset,
                 struct error *err);
void dataset_close(struct dataset *dataset); /* NULL-safe */

/* One rank's way through the data, epoch by epoch. */
struct loader {
    const struct dataset *dataset; /* not owned */
    struct sampler sampler;
    int64_t batch_rows; /* rows per batch and rank; an epoch's last batch may have fewer */
    bool shuffle;
    uint64_t seed;
    uint64_t epoch; /* the one `order` is for */
    int64_t *order; /* [items]; NULL without shuffling */
};

void loader_init(struct loader *loader, const struct dataset *dataset, int rank, int world_size,
                 int64_t batch_rows, bool shuffle, uint64_t seed);
void loader_free(struct loader *loader);

/* Batches of the epoch behind the sampler's first: the same on every rank. */
int64_t loader_batches(const struct loader *loader);

/* Goes to an epoch (its order is computed anew if it is another one). */
void loader_set_epoch(struct loader *loader, uint64_t epoch);

/* Copies batch b (0 .. loader_batches - 1) of those of the current epoch: images [rows, height,
 * width] and labels [rows], with room for batch_rows rows each. Returns rows. */
int64_t loader_batch(const struct loader *loader, int64_t batch, uint8_t *images, int32_t *labels);
#endif
