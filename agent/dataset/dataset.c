#include "agent/dataset/dataset.h"

#include "agent/dataset/idx.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES_MAX_BYTES = 400 };

/* The first directory that has the file, plain or .gz. Caller frees; NULL and the places tried in
 * `tried` if there is none. */
static char *find_file(const char *root, const char *name, struct str *tried)
{
    /* torchvision.datasets.MNIST(root) keeps its files in root/MNIST/raw, FashionMNIST likewise. */
    static const char *const below[] = {"", "/MNIST/raw", "/FashionMNIST/raw"};
    static const char *const suffixes[] = {"", ".gz"};
    for (size_t d = 0; d < array_length(below); d++) {
        for (size_t s = 0; s < array_length(suffixes); s++) {
            char *path = xasprintf("%s%s/%s%s", root, below[d], name, suffixes[s]);
            if (access(path, F_OK) == 0)
                return path;
            free(path);
        }
        str_printf(tried, "%s%s%s", d ? ", " : "", root, below[d]);
    }
    return NULL;
}

static int read_file(const char *root, const char *name, int dims, char **ret_path,
                     struct idx *ret_idx, struct error *err)
{
    auto_str struct str tried;
    str_init(&tried, PLACES_MAX_BYTES);
    *ret_path = find_file(root, name, &tried);
    if (!*ret_path)
        return error_set(err, ERR_NOT_FOUND,
                         "no %s or %s.gz in %s: name the directory that has the data set", name,
                         name, str_text(&tried));
    return idx_read(*ret_path, dims, ret_idx, err);
}

static int check_labels(const char *path, const struct idx *labels, struct error *err)
{
    for (int64_t row = 0; row < labels->shape[0]; row++)
        if (labels->bytes[row] >= DATASET_CLASSES)
            return error_set(err, ERR_INPUT,
                             "%s: row %lld has label %d; labels are 0 to %d: not this data set's "
                             "labels, or damaged",
                             path, (long long)row, labels->bytes[row], DATASET_CLASSES - 1);
    return 0;
}

static int read_pair(const char *root, const char *prefix, struct idx *images, struct idx *labels,
                     struct error *err)
{
    auto_free char *images_path = NULL;
    auto_free char *labels_path = NULL;
    auto_free char *images_name = xasprintf("%s-images-idx3-ubyte", prefix);
    auto_free char *labels_name = xasprintf("%s-labels-idx1-ubyte", prefix);
    if (read_file(root, images_name, 3, &images_path, images, err) < 0 ||
        read_file(root, labels_name, 1, &labels_path, labels, err) < 0 ||
        check_labels(labels_path, labels, err) < 0)
        return -1;
    if (images->shape[0] != labels->shape[0])
        return error_set(err, ERR_INPUT,
                         "%s has %lld images but %s has %lld labels: take both from the same data "
                         "set",
                         images_path, (long long)images->shape[0], labels_path,
                         (long long)labels->shape[0]);
    return 0;
}

int dataset_open(const char *root, enum dataset_split split, struct dataset **ret_dataset,
                 struct error *err)
{
    struct idx images = {0}, labels = {0};
    if (read_pair(root, split == DATASET_TRAIN ? "train" : "t10k", &images, &labels, err) < 0) {
        idx_free(&images);
        idx_free(&labels);
        return -1;
    }
    struct dataset *d = xcalloc(1, sizeof *d);
    *d = (struct dataset){.count = images.shape[0],
                          .height = images.shape[1],
                          .width = images.shape[2],
                          .images = images.bytes,
                          .labels = labels.bytes};
    *ret_dataset = d;
    return 0;
}

void dataset_close(struct dataset *dataset)
{
    if (!dataset)
        return;
    free(dataset->images);
    free(dataset->labels);
    free(dataset);
}

void loader_init(struct loader *loader, const struct dataset *dataset, int rank, int world_size,
                 int64_t batch_rows, bool shuffle, uint64_t seed)
{
    assert(batch_rows >= 1 && rank >= 0 && rank < world_size);
    *loader = (struct loader){
        .dataset = dataset,
        .sampler = {.items = dataset->count, .rank = rank, .world_size = world_size},
        .batch_rows = batch_rows,
        .shuffle = shuffle,
        .seed = seed,
    };
    if (shuffle) {
        loader->order = xcalloc((size_t)dataset->count, sizeof *loader->order);
        sampler_permute(dataset->count, seed, 0, loader->order);
    }
}

void loader_free(struct loader *loader)
{
    free(loader->order);
    loader->order = NULL;
}

int64_t loader_batches(const struct loader *loader)
{
    return (sampler_count(&loader->sampler) + loader->batch_rows - 1) / loader->batch_rows;
}

void loader_set_epoch(struct loader *loader, uint64_t epoch)
{
    if (loader->shuffle && epoch != loader->epoch)
        sampler_permute(loader->dataset->count, loader->seed, epoch, loader->order);
    loader->epoch = epoch;
}

int64_t loader_batch(const struct loader *loader, int64_t batch, uint8_t *images, int32_t *labels)
{
    const struct dataset *d = loader->dataset;
    assert(batch >= 0 && batch < loader_batches(loader));
    int64_t first = batch * loader->batch_rows;
    int64_t left = sampler_count(&loader->sampler) - first;
    int64_t rows = left < loader->batch_rows ? left : loader->batch_rows;
    int64_t image_bytes = d->height * d->width;
    for (int64_t row = 0; row < rows; row++) {
        int64_t i = sampler_index(&loader->sampler, loader->order, first + row);
        memcpy(images + row * image_bytes, d->images + i * image_bytes, (size_t)image_bytes);
        labels[row] = d->labels[i];
    }
    return rows;
}
