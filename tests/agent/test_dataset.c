#include "agent/dataset/dataset.h"

#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { COUNT = 10, HEIGHT = 2, WIDTH = 3, PIXELS = HEIGHT * WIDTH };

/* Pixel p of image n; tells where a row of a batch came from. */
static uint8_t pixel(int64_t n, int p)
{
    return (uint8_t)(n * 16 + p);
}

static void write_file(const char *dir, const char *name, const uint8_t *bytes, size_t size)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    size_t length = strlen(path);
    /* zlib's mode "T" writes the bytes as they are */
    gzFile file = gzopen(path, strcmp(path + length - 3, ".gz") == 0 ? "wb" : "wbT");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(file), Z_OK);
}

static void write_images(const char *dir, const char *name)
{
    uint8_t bytes[16 + COUNT * PIXELS] = {0, 0, 8, 3,      0, 0, 0, COUNT,
                                          0, 0, 0, HEIGHT, 0, 0, 0, WIDTH};
    for (int n = 0; n < COUNT; n++)
        for (int p = 0; p < PIXELS; p++)
            bytes[16 + n * PIXELS + p] = pixel(n, p);
    write_file(dir, name, bytes, sizeof bytes);
}

static void write_labels(const char *dir, const char *name, int count, int bad_row)
{
    uint8_t bytes[8 + COUNT] = {0, 0, 8, 1, 0, 0, 0, (uint8_t)count};
    for (int n = 0; n < count; n++)
        bytes[8 + n] = n == bad_row ? 10 : (uint8_t)(n % 10);
    write_file(dir, name, bytes, 8 + (size_t)count);
}

static void test_finds_the_files(void **state)
{
    static const struct {
        const char *below, *suffix;
    } rows[] = {{"", ""}, {"/MNIST/raw", ".gz"}, {"/FashionMNIST/raw", ""}};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *root = xasprintf("%s/%zu", (char *)*state, i);
        auto_free char *parent = xasprintf("%s/%s", root, i == 1 ? "MNIST" : "FashionMNIST");
        auto_free char *dir = xasprintf("%s%s", root, rows[i].below);
        mkdir(root, 0700);
        mkdir(parent, 0700);
        mkdir(dir, 0700);
        auto_free char *images = xasprintf("train-images-idx3-ubyte%s", rows[i].suffix);
        auto_free char *labels = xasprintf("train-labels-idx1-ubyte%s", rows[i].suffix);
        write_images(dir, images);
        write_labels(dir, labels, COUNT, -1);
        struct dataset *d;
        struct error err;
        assert_ok(dataset_open(root, DATASET_TRAIN, &d, &err), &err);
        assert_int_equal(d->count, COUNT);
        assert_int_equal(d->height, HEIGHT);
        assert_int_equal(d->width, WIDTH);
        assert_int_equal(d->images[9 * PIXELS + 5], pixel(9, 5));
        assert_int_equal(d->labels[9], 9);
        dataset_close(d);
        assert_fails(dataset_open(root, DATASET_TEST, &d, &err), &err, ERR_NOT_FOUND,
                     "no t10k-images-idx3-ubyte or t10k-images-idx3-ubyte.gz in");
        assert_non_null(strstr(err.msg, "/FashionMNIST/raw"));
    }
}

static void test_refuses(void **state)
{
    const char *dir = *state;
    struct dataset *d;
    struct error err;
    write_images(dir, "train-images-idx3-ubyte");
    assert_fails(dataset_open(dir, DATASET_TRAIN, &d, &err), &err, ERR_NOT_FOUND,
                 "no train-labels-idx1-ubyte");
    write_labels(dir, "train-labels-idx1-ubyte", COUNT, 7);
    assert_fails(dataset_open(dir, DATASET_TRAIN, &d, &err), &err, ERR_INPUT, "row 7 has label 10");
    write_labels(dir, "train-labels-idx1-ubyte", COUNT - 1, -1);
    assert_fails(dataset_open(dir, DATASET_TRAIN, &d, &err), &err, ERR_INPUT, "has 10 images but");
    assert_non_null(strstr(err.msg, "has 9 labels"));
}

/* Ten images over three ranks in batches of three: each rank has 3 + 1 rows, and each row of a
 * batch is the image and label of one sample. */
static void test_batches(void **state)
{
    uint8_t images[COUNT * PIXELS], labels[COUNT];
    for (int n = 0; n < COUNT; n++) {
        labels[n] = (uint8_t)n;
        for (int p = 0; p < PIXELS; p++)
            images[n * PIXELS + p] = pixel(n, p);
    }
    (void)state;
    struct dataset d = {COUNT, HEIGHT, WIDTH, images, labels};
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        int seen[COUNT] = {0};
        for (int rank = 0; rank < 3; rank++) {
            struct loader loader;
            loader_init(&loader, &d, rank, 3, 3, shuffle, 5);
            loader_set_epoch(&loader, 2);
            assert_int_equal(loader_batches(&loader), 2);
            for (int64_t b = 0; b < 2; b++) {
                uint8_t x[3 * PIXELS];
                int32_t y[3];
                int64_t rows = loader_batch(&loader, b, x, y);
                assert_int_equal(rows, b == 0 ? 3 : 1);
                for (int64_t r = 0; r < rows; r++) {
                    seen[y[r]]++;
                    assert_int_equal(x[r * PIXELS + 4], pixel(y[r], 4));
                    if (!shuffle)
                        assert_int_equal(y[r], ((b * 3 + r) * 3 + rank) % COUNT);
                }
            }
            loader_free(&loader);
        }
        int total = 0;
        for (int n = 0; n < COUNT; n++) {
            assert_in_range(seen[n], 1, 2);
            total += seen[n];
        }
        assert_int_equal(total, 12);
    }
}

/* Going to an epoch directly gives what going there step by step gives. */
static void test_epochs(void **state)
{
    (void)state;
    uint8_t images[COUNT * PIXELS] = {0}, labels[COUNT];
    for (int n = 0; n < COUNT; n++)
        labels[n] = (uint8_t)n;
    struct dataset d = {COUNT, HEIGHT, WIDTH, images, labels};
    struct loader there, steps;
    loader_init(&there, &d, 0, 1, COUNT, true, 5);
    loader_init(&steps, &d, 0, 1, COUNT, true, 5);
    uint8_t x[COUNT * PIXELS];
    int32_t first[COUNT], a[COUNT], b[COUNT];
    loader_batch(&steps, 0, x, first);
    for (uint64_t epoch = 0; epoch <= 3; epoch++)
        loader_set_epoch(&steps, epoch);
    loader_set_epoch(&there, 3);
    loader_batch(&there, 0, x, a);
    loader_batch(&steps, 0, x, b);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, first, sizeof a);
    loader_set_epoch(&there, 0);
    loader_batch(&there, 0, x, a);
    assert_memory_equal(a, first, sizeof a);
    loader_free(&there);
    loader_free(&steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_finds_the_files, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_refuses, support_enter_dir, support_leave_dir),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
