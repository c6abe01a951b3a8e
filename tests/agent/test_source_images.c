/* Batches of images: a run goes on behind the samples that are done, whatever batches and ranks did
 * them. */
#include "agent/batches/batch_source.h"
#include "base/mem.h"
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IMAGES = 47, SIDE = 2, PIXELS = SIDE * SIDE, SEEN_MAX = 4 * IMAGES };

/* Image n has n in its first pixel. */
static void write_images(const char *root)
{
    auto_free char *images = xasprintf("%s/train-images-idx3-ubyte", root);
    auto_free char *labels = xasprintf("%s/train-labels-idx1-ubyte", root);
    const uint8_t head[] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    const uint8_t label_head[] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    FILE *file = fopen(images, "we"), *label_file = fopen(labels, "we");
    assert_true(file && label_file);
    fwrite(head, 1, sizeof head, file);
    fwrite(label_head, 1, sizeof label_head, label_file);
    for (int n = 0; n < IMAGES; n++) {
        fwrite((uint8_t[PIXELS]){(uint8_t)n}, 1, PIXELS, file);
        fputc(n % 10, label_file);
    }
    fclose(file);
    fclose(label_file);
}

struct seen {
    int images[SEEN_MAX]; /* by place behind where the ranks began */
    int64_t count;
};

static int image_of(float pixel)
{
    return (int)lroundf((pixel * 0.3081F + 0.1307F) * 255);
}

/* One rank's way through an epoch behind `samples`, at most `most` batches of it. */
static void read_rank(const struct agent_config *config, int r, int size, int64_t samples,
                      int64_t most, struct seen *seen)
{
    const struct model model = {.task = MODEL_IMAGES, .input_shape = {SIDE, SIDE}};
    struct device *device;
    struct stream *stream;
    struct batch_source *source;
    struct step_batches fetched;
    struct error err;
    assert_ok(device_open("cpu", 1, &device, &err), &err);
    assert_ok(stream_open(device, "test", &stream, &err), &err);
    const struct batch_source_env env = {
        .stream = stream, .rank = r, .size = size, .max_batches = 1};
    assert_ok(batch_source_open(config, SPLIT_TRAIN, &model, &env, &source, &err), &err);
    assert_ok(batch_source_seek(source, 1, samples, "", &err), &err);
    for (int64_t b = 0; b < most; b++) {
        assert_ok(batch_source_next(source, 1, &fetched, &err), &err);
        if (fetched.batches == 0)
            break;
        struct batch batch = batch_source_batch(source, 0);
        assert_ok(stream_sync(stream, &err), &err);
        for (int64_t row = 0; row < batch.rows; row++) {
            int n = image_of(((const float *)batch.input)[row * PIXELS]);
            assert_int_equal(batch.target[row], n % 10);
            seen->images[(b * source->batch_rows + row) * size + r] = n;
            seen->count++;
        }
    }
    batch_source_close(source);
    stream_close(stream);
    device_close(device);
}

static struct seen read_all(const struct agent_config *config, int size, int64_t samples,
                            int64_t most)
{
    struct seen seen = {.count = 0};
    for (int r = 0; r < size; r++)
        read_rank(config, r, size, samples, most, &seen);
    return seen;
}

static const struct agent_config *configure(struct arena *arena, const char *root,
                                            const char *flags)
{
    struct config *config = arena_new(arena, struct config);
    struct error err;
    assert_ok(config_line_parse(arena,
                                arena_printf(arena, "--preset mnist --root %s %s", root, flags), "",
                                config, &err),
              &err);
    return &config->value;
}

static void another_global_batch_goes_on_where_it_was(void **state)
{
    write_images(*state);
    static const struct {
        int batch, ranks;
        int64_t steps;
    } befores[] = {{4, 3, 3}, {3, 1, 5}, {5, 4, 2}};
    static const struct {
        int batch, ranks;
    } afters[] = {{7, 1}, {4, 3}, {2, 3}, {5, 4}, {1, 2}};
    for (size_t i = 0; i < array_length(befores); i++)
        for (size_t k = 0; k < array_length(afters); k++) {
            auto_arena struct arena *arena = arena_open();
            const struct agent_config *before =
                configure(arena, *state, arena_printf(arena, "--batch_size %d", befores[i].batch));
            const struct agent_config *after =
                configure(arena, *state, arena_printf(arena, "--batch_size %d", afters[k].batch));
            struct seen whole = read_all(before, 1, 0, IMAGES);
            struct seen begun = read_all(before, befores[i].ranks, 0, befores[i].steps);
            struct seen rest = read_all(after, afters[k].ranks, begun.count, IMAGES);
            int64_t left = IMAGES - begun.count, ranks = afters[k].ranks;
            assert_int_equal(whole.count, IMAGES);
            assert_int_equal(begun.count, befores[i].steps * befores[i].batch * befores[i].ranks);
            assert_int_equal(rest.count, (left + ranks - 1) / ranks * ranks);
            for (int64_t n = 0; n < begun.count; n++)
                assert_int_equal(begun.images[n], whole.images[n]);
            for (int64_t n = 0; n < rest.count; n++)
                assert_int_equal(rest.images[n], whole.images[(begun.count + n) % IMAGES]);
        }
}

/* Of an epoch that is over, and of one whose rest makes no whole batch, nothing is left. */
static void what_is_over_stays_over(void **state)
{
    write_images(*state);
    auto_arena struct arena *arena = arena_open();
    const struct agent_config *all = configure(arena, *state, "--batch_size 4");
    const struct agent_config *whole =
        configure(arena, *state, "--batch_size 5 --data.drop_last true");
    assert_int_equal(read_all(all, 3, IMAGES, IMAGES).count, 0);
    assert_int_equal(read_all(all, 3, IMAGES + 1, IMAGES).count, 0);
    assert_int_equal(read_all(whole, 3, 0, IMAGES).count, 45);
    assert_int_equal(read_all(whole, 3, 45, IMAGES).count, 0);
    assert_int_equal(read_all(whole, 1, 36, IMAGES).count, 10);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(another_global_batch_goes_on_where_it_was),
        IN_DIR(what_is_over_stays_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
