#include "agent/dataset/idx.h"

#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* 2 images of 2x3 and 5 labels. */
#define IMAGES_HEAD "\0\0\x08\x03\0\0\0\2\0\0\0\2\0\0\0\3"
#define LABELS_HEAD "\0\0\x08\x01\0\0\0\5"
#define BYTES(text) text, sizeof(text) - 1

static size_t compress_gzip(const void *data, size_t size, uint8_t *out, size_t room)
{
    z_stream z = {.next_in = (Bytef *)data, .avail_in = (uInt)size};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static const struct {
    const char *name;
    int dims;
    const char *content;
    size_t size;
    const char *fails; /* part of the error; NULL: it is read */
} rows[] = {
    {"images", 3, BYTES(IMAGES_HEAD "abcdefghijkl"), NULL},
    {"labels", 1, BYTES(LABELS_HEAD "\1\2\3\4\5"), NULL},
    {"labels for images", 3, BYTES(LABELS_HEAD "\1\2\3\4\5"),
     "magic number 0x00000801, expected 0x00000803"},
    {"images for labels", 1, BYTES(IMAGES_HEAD "abcdefghijkl"),
     "magic number 0x00000803, expected 0x00000801"},
    {"floats", 1, BYTES("\0\0\x0d\x01\0\0\0\1abcd"), "magic number 0x00000d01"},
    {"empty", 1, BYTES(""), "cut off in its header (0 of 8 bytes)"},
    {"half a magic number", 1, BYTES("\0\0"), "cut off in its header (2 of 8 bytes)"},
    {"no sizes", 3, BYTES("\0\0\x08\x03\0\0\0\2"), "cut off in its header (8 of 16 bytes)"},
    {"one byte short", 3, BYTES(IMAGES_HEAD "abcdefghijk"), "cut off"},
    {"one byte long", 3, BYTES(IMAGES_HEAD "abcdefghijklm"), "after the end of its data"},
    {"no images", 3, BYTES("\0\0\x08\x03\0\0\0\0\0\0\0\2\0\0\0\3"), "size 1 is 0"},
    {"images of no width", 3, BYTES("\0\0\x08\x03\0\0\0\1\0\0\0\2\0\0\0\0"), "size 3 is 0"},
    {"huge", 1, BYTES("\0\0\x08\x01\xff\xff\xff\xff"), "more than 1073741824 bytes"},
    {"product overflows", 3, BYTES("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
     "more than 1073741824 bytes"},
    {"lies below the cap", 1, BYTES("\0\0\x08\x01\x3f\xff\xff\xff"), "announces 1073741823 bytes"},
};

static void check(const char *name, int dims, const uint8_t *content, size_t size,
                  const char *fails, const char *data)
{
    struct idx idx = {0};
    struct error err = {0};
    int result = idx_parse(name, content, size, dims, &idx, &err);
    if (fails) {
        assert_fails(result, &err, ERR_INPUT, fails);
        assert_non_null(strstr(err.msg, name));
        return;
    }
    assert_ok(result, &err);
    assert_int_equal(idx.shape[0], dims == 3 ? 2 : 5);
    int64_t count = dims == 3 ? 12 : 5;
    assert_memory_equal(idx.bytes, data, (size_t)count);
    idx_free(&idx);
}

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++)
        check(rows[i].name, rows[i].dims, (const uint8_t *)rows[i].content, rows[i].size,
              rows[i].fails, rows[i].content + (rows[i].dims == 3 ? 16 : 8));
}

/* The same rows, gzipped: the same answers. */
static void test_parse_gzip(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        uint8_t packed[256];
        size_t size = compress_gzip(rows[i].content, rows[i].size, packed, sizeof packed);
        check(rows[i].name, rows[i].dims, packed, size, rows[i].fails,
              rows[i].content + (rows[i].dims == 3 ? 16 : 8));
    }
}

/* A gzip stream that is cut off or changed anywhere is refused. */
static void test_broken_gzip(void **state)
{
    (void)state;
    char content[8 + 64] = LABELS_HEAD;
    content[7] = 64;
    for (int i = 0; i < 64; i++)
        content[8 + i] = (char)(i * 37 % 10);
    uint8_t packed[256];
    size_t size = compress_gzip(content, sizeof content, packed, sizeof packed - 1);
    struct idx idx;
    struct error err;
    for (size_t cut = 2; cut < size; cut++) {
        /* Exactly as long as the data, so that AddressSanitizer sees a read beyond it. */
        auto_free uint8_t *copy = xmalloc(cut);
        memcpy(copy, packed, cut);
        assert_fails(idx_parse("cut.gz", copy, cut, 1, &idx, &err), &err, ERR_INPUT, "cut");
    }
    /* Only bits without meaning (in the gzip header, padding of the deflate stream) may change. */
    int refused = 0;
    for (size_t at = 0; at < size; at++) {
        packed[at] ^= 0x10;
        if (idx_parse("bad.gz", packed, size, 1, &idx, &err) == 0) {
            assert_memory_equal(idx.bytes, content + 8, 64);
            idx_free(&idx);
        } else {
            assert_int_equal(err.code, ERR_INPUT);
            refused++;
        }
        packed[at] ^= 0x10;
    }
    assert_true(refused > (int)size - 10);
    packed[size] = 0;
    assert_fails(idx_parse("more.gz", packed, size + 1, 1, &idx, &err), &err, ERR_INPUT,
                 "after the end");
}

static void test_read(void **state)
{
    (void)state;
    char *dir = support_temp_dir();
    auto_free char *path = xasprintf("%s/labels", dir);
    struct idx idx;
    struct error err;
    assert_fails(idx_read(path, 1, &idx, &err), &err, ERR_NOT_FOUND, path);
    assert_fails(idx_read(dir, 1, &idx, &err), &err, ERR_INPUT, "not a regular file");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_fails(idx_read(path, 1, &idx, &err), &err, ERR_INPUT, "the file is empty");
    file = fopen(path, "w");
    fwrite(LABELS_HEAD "\1\2\3\4\5", 1, 13, file);
    fclose(file);
    assert_ok(idx_read(path, 1, &idx, &err), &err);
    assert_int_equal(idx.bytes[4], 5);
    idx_free(&idx);
    support_remove_tree(dir);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_gzip),
        cmocka_unit_test(test_broken_gzip),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
