/* Images and labels: batches of bytes that become the model's input on the device. */
#include "agent/batches/batch_source.h"
#include "agent/dataset/dataset.h"
#include "base/mem.h"
#include "kernels/ops.h"

#include <assert.h>
#include <stdlib.h>

/* Mean and standard deviation of MNIST's training pixels, as the tutorial normalises. */
static const float pixel_mean = 0.1307F, pixel_stddev = 0.3081F;

struct images {
    struct batch_source head; /* first: the functions get a pointer to it */
    struct stream *stream;
    struct dataset *set;
    struct loader loader;
    int64_t next; /* batch to be fetched, behind where the epoch was gone to */
    bool drop_last;
    int64_t first[2];            /* batch that is in the prefetcher's sets */
    int64_t max_batches, pixels; /* batches at once; of an image */
    enum dtype dtype;
    void *input; /* [batch_rows, pixels] of dtype, on the device */
};

static struct images *of(struct batch_source *source)
{
    return (struct images *)source;
}

static size_t image_bytes(const struct images *s) /* of a batch */
{
    return (size_t)(s->head.batch_rows * s->pixels);
}

/* In a batch, which begins with the images. */
static int32_t *labels_of(const struct images *s, void *images)
{
    return (int32_t *)((char *)images + prefetcher_aligned(image_bytes(s)));
}

static int64_t rows_of(const struct images *s, int64_t batch)
{
    int64_t left = sampler_count(&s->loader.sampler) - batch * s->head.batch_rows;
    return left < s->head.batch_rows ? left : s->head.batch_rows;
}

/* Behind `samples`, whatever batches they were in: an epoch is over by the data's own size, which
 * does not depend on the world as the padded count does. */
static int seek(struct batch_source *source, int64_t epoch, int64_t samples, const char *state,
                struct error *err)
{
    (void)state, (void)err;
    struct images *s = of(source);
    loader_set_epoch(&s->loader, (uint64_t)epoch);
    s->loader.sampler.first = samples < s->head.samples ? samples : s->head.samples;
    s->next = 0;
    return 0;
}

static int64_t batches_left(const struct images *s)
{
    return (s->drop_last ? sampler_count(&s->loader.sampler) / s->head.batch_rows
                         : loader_batches(&s->loader)) -
           s->next;
}

static int fetch(struct batch_source *source, int64_t max_batches, struct step_batches *ret_fetched,
                 struct error *err)
{
    (void)err;
    struct images *s = of(source);
    assert(max_batches <= s->max_batches);
    int64_t first = s->next, left = batches_left(s);
    *ret_fetched =
        (struct step_batches){.batches = left < max_batches ? left : max_batches, .same = true};
    s->first[prefetcher_next_set(s->head.prefetcher)] = first;
    s->next += ret_fetched->batches;
    for (int64_t i = 0; i < ret_fetched->batches; i++) {
        void *images = prefetcher_next(s->head.prefetcher, i);
        ret_fetched->rows += loader_batch(&s->loader, first + i, images, labels_of(s, images));
    }
    ret_fetched->targets = ret_fetched->rows;
    return 0;
}

static struct batch batch(struct batch_source *source, int64_t i)
{
    struct images *s = of(source);
    void *images = prefetcher_take(s->head.prefetcher, i);
    int64_t rows = rows_of(s, s->first[prefetcher_set(s->head.prefetcher)] + i);
    device_ops(stream_device(s->stream))
        ->normalize(s->stream, s->dtype, s->input, images, rows * s->pixels, pixel_mean,
                    pixel_stddev);
    return (struct batch){.input = s->input, .target = labels_of(s, images), .rows = rows};
}

static const char *state(struct batch_source *source)
{
    (void)source;
    return "";
}

static void close_images(struct batch_source *source)
{
    struct images *s = of(source);
    prefetcher_close(s->head.prefetcher);
    device_free(stream_device(s->stream), s->input);
    loader_free(&s->loader);
    dataset_close(s->set);
    free(s);
}

static int open_buffers(struct images *s, struct error *err)
{
    size_t labels = (size_t)s->head.batch_rows * sizeof(int32_t);
    if (prefetcher_open(s->stream, prefetcher_aligned(image_bytes(s)) + labels, s->max_batches,
                        "batch images", &s->head.prefetcher, err))
        return -1;
    return device_alloc(stream_device(s->stream), MEMORY_INPUT,
                        image_bytes(s) * dtype_bytes(s->dtype), "batch input", &s->input, err);
}

static int check_size(const struct images *s, const struct model *model, struct error *err)
{
    const int64_t *shape = model->input_shape;
    if (s->set->height == shape[0] && s->set->width == shape[1])
        return 0;
    return error_set(err, ERR_INPUT, "%s: images are %lldx%lld, the model takes %lldx%lld",
                     s->head.what, (long long)s->set->height, (long long)s->set->width,
                     (long long)shape[0], (long long)shape[1]);
}

int batch_source_images_open(const struct agent_config *config, enum data_split split,
                             const struct model *model, const struct batch_source_env *env,
                             struct batch_source **ret_source, struct error *err)
{
    static const struct batch_source_functions functions = {seek, fetch, batch, state,
                                                            close_images};
    bool train = split == SPLIT_TRAIN;
    struct images *s = xcalloc(1, sizeof *s);
    s->head.fn = &functions;
    s->head.what = config->data.source.root;
    s->head.batch_rows = train ? config->data.train_batch_size : config->data.eval_batch_size;
    s->stream = env->stream;
    s->dtype = env->dtype;
    s->max_batches = env->max_batches;
    if (dataset_open(config->data.source.root, train ? DATASET_TRAIN : DATASET_TEST, &s->set,
                     err) ||
        check_size(s, model, err)) {
        close_images(&s->head);
        return -1;
    }
    int64_t limit = train ? config->data.train_size : config->data.eval_size;
    if (limit > 0 && limit < s->set->count)
        s->set->count = limit;
    loader_init(&s->loader, s->set, env->rank, env->size, s->head.batch_rows,
                train && config->data.shuffle, (uint64_t)config->runtime.seed);
    s->head.samples = s->set->count;
    s->drop_last = train && config->data.drop_last;
    s->head.batches = batches_left(s);
    s->pixels = s->set->height * s->set->width;
    if (open_buffers(s, err)) {
        close_images(&s->head);
        return -1;
    }
    *ret_source = &s->head;
    return 0;
}
