#include "agent/feed.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

/* Mean and standard deviation of MNIST's training pixels, as the tutorial normalises. */
static const float pixel_mean = 0.1307F, pixel_stddev = 0.3081F;

struct feed {
    struct stream *stream;
    int64_t max_rows, pixels;
    uint8_t *host_images; /* [max_rows, pixels] */
    int32_t *host_labels; /* [max_rows] */
    void *images;         /* the same on the device */
    void *labels;
    void *input; /* [max_rows, pixels] fp32 */
};

int feed_open(struct stream *stream, int64_t max_rows, int64_t pixels, struct feed **ret_feed,
              struct error *err)
{
    struct device *device = stream_device(stream);
    struct feed *feed = xcalloc(1, sizeof *feed);
    feed->stream = stream;
    feed->max_rows = max_rows;
    feed->pixels = pixels;
    size_t count = (size_t)(max_rows * pixels), rows = (size_t)max_rows;
    feed->host_images = xmalloc(count);
    feed->host_labels = xmalloc(rows * sizeof *feed->host_labels);
    if (device_alloc(device, MEMORY_INPUT, count, "batch images", &feed->images, err) ||
        device_alloc(device, MEMORY_INPUT, rows * sizeof(int32_t), "batch labels", &feed->labels,
                     err) ||
        device_alloc(device, MEMORY_INPUT, count * sizeof(float), "batch input", &feed->input,
                     err)) {
        feed_close(feed);
        return -1;
    }
    *ret_feed = feed;
    return 0;
}

void feed_close(struct feed *feed)
{
    if (!feed)
        return;
    struct device *device = stream_device(feed->stream);
    device_free(device, feed->images);
    device_free(device, feed->labels);
    device_free(device, feed->input);
    free(feed->host_images);
    free(feed->host_labels);
    free(feed);
}

struct batch feed_batch(struct feed *feed, const struct loader *loader, int64_t b)
{
    int64_t rows = loader_batch(loader, b, feed->host_images, feed->host_labels);
    assert(rows <= feed->max_rows);
    int64_t count = rows * feed->pixels;
    stream_copy(feed->stream, feed->images, feed->host_images, (size_t)count);
    stream_copy(feed->stream, feed->labels, feed->host_labels, (size_t)rows * sizeof(int32_t));
    device_ops(stream_device(feed->stream))
        ->normalize(feed->stream, feed->input, feed->images, count, pixel_mean, pixel_stddev);
    return (struct batch){.input = feed->input, .target = feed->labels, .rows = rows};
}
