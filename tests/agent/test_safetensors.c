#include "agent/checkpoint/safetensors.h"

#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define A_F32_2 "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

/* A file of the given header text and this many bytes of data, in a buffer of exactly its size. */
static uint8_t *build(const char *header, size_t data_bytes, size_t *ret_size)
{
    uint64_t length = strlen(header);
    *ret_size = 8 + length + data_bytes;
    uint8_t *file = xcalloc(1, *ret_size);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    return file;
}

static int parse(const uint8_t *bytes, size_t size, struct arena *arena,
                 struct safetensors_header *h, struct error *err)
{
    return safetensors_parse(arena, "model.safetensors", bytes, size, (int64_t)size, h, err);
}

static const struct {
    const char *header;
    size_t data_bytes;
    const char *fails; /* NULL: it is read */
} rows[] = {
    {"{" A_F32_2 "}", 8, NULL},
    {"{" A_F32_2 "}  ", 8, NULL},
    {"{}", 0, NULL},
    {"{\"s\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}", 8, NULL},
    {"{\"e\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[0,0]}}", 0, NULL},
    {"{\"__metadata__\":{\"format\":\"pt\"}," A_F32_2 "}", 8, NULL},
    {"{\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[8,12]}," A_F32_2 "}", 12, NULL},
    /* the text */
    {"", 0, "does not begin with {"},
    {" {}", 0, "does not begin with {"},
    {"[]", 0, "does not begin with {"},
    {"{\"a\":", 0, "header: line 1, column "},
    {"{\"a\nb\":{}}", 0, "header: line 1, column "},
    {"{} x", 0, "header: line 1, column "},
    {"{\"\xff\":{}}", 0, "byte 0xff"},
    {"{" A_F32_2 "," A_F32_2 "}", 8, "duplicate"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     "duplicate"},
    {"{\"a\\nb\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     "control character"},
    {"{\"__metadata__\":{\"n\":1}}", 0, "not a string"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
    /* one tensor */
    {"{\"a\":7}", 0, "tensor a: its entry is not an object"},
    {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "tensor a: has no dtype"},
    {"{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype F31"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "has no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "dimension 0"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,2.0],\"data_offsets\":[0,8]}}", 8, "dimension 1"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8,
     "9 dimensions"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}", 8,
     "product of its shape is too large"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387906],\"data_offsets\":[0,8]}}", 8,
     "do not fill"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,8]}}", 8,
     "dimension 0 of its shape is not"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "data_offsets are not two numbers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}}", 8,
     "data_offsets are not two numbers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
     "[8, 0] are not within the 8 bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, "not within"},
    {"{" A_F32_2 "}", 7, "[0, 8] are not within the 7 bytes"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     "2 elements of F64 do not fill data_offsets [0, 8]"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "3 elements of F32"},
    /* all of them together */
    {"{" A_F32_2 "}", 9, "1 bytes follow the last tensor's data"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
     "tensor a: its data begins at 4, but the data before it ends at 0 (gap)"},
    {"{" A_F32_2 ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
     "tensor b: its data begins at 4, but the data before it ends at 8 (overlap)"},
    {"{" A_F32_2 ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "overlap"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}",
     6, "tensor b: data_offsets [2, 6] are not aligned to the 4 bytes of F32"},
};

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        size_t size;
        auto_free uint8_t *file = build(rows[i].header, rows[i].data_bytes, &size);
        struct safetensors_header h;
        struct error err = {0};
        int result = parse(file, size, arena, &h, &err);
        if (rows[i].fails) {
            assert_fails(result, &err, ERR_INPUT, rows[i].fails);
            assert_true(strncmp(err.msg, "model.safetensors: ", 19) == 0);
            assert_null(strchr(err.msg, '\n'));
        } else {
            assert_ok(result, &err);
        }
    }
}

/* The length in the first 8 bytes. */
static void test_header_length(void **state)
{
    (void)state;
    static const struct {
        uint64_t length;
        size_t size; /* of the file */
        const char *fails;
    } lengths[] = {
        {0, 3, "3 bytes are too few"},
        {0, 7, "7 bytes are too few"},
        {0, 8, "does not begin with {"},
        {3, 10, "claims 3 bytes, the file has only 10"},
        {100000000, 10, "claims 100000000 bytes, the file has only 10"},
        {100000001, 10, "claims 100000001 bytes; at most 100000000"},
        {UINT64_MAX, 10, "claims 18446744073709551615 bytes"},
    };
    for (size_t i = 0; i < array_length(lengths); i++) {
        auto_arena struct arena *arena = arena_open();
        auto_free uint8_t *file = xmalloc(lengths[i].size);
        uint8_t content[16] = {0};
        memcpy(content, &lengths[i].length, 8);
        memcpy(content + 8, "{}", 2);
        memcpy(file, content, lengths[i].size);
        struct safetensors_header h;
        struct error err;
        assert_fails(parse(file, lengths[i].size, arena, &h, &err), &err, ERR_INPUT,
                     lengths[i].fails);
    }
}

static void test_what_is_read(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    size_t size;
    auto_free uint8_t *file =
        build("{\"z\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[24,26]},"
              "\"__metadata__\":{\"format\":\"pt\",\"k\":\"v\"},"
              "\"m\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
              26, &size);
    struct safetensors_header h;
    struct error err;
    assert_ok(parse(file, size, arena, &h, &err), &err);
    assert_int_equal(h.tensor_count, 2);
    assert_int_equal(h.header_bytes, size - 26);
    const struct safetensors_tensor *m = safetensors_find(&h, "m");
    assert_non_null(m);
    assert_int_equal(m->dtype, SAFETENSORS_F32);
    assert_int_equal(m->dims, 2);
    assert_int_equal(m->shape[1], 3);
    assert_int_equal(m->count, 6);
    const struct safetensors_tensor *z = safetensors_find(&h, "z");
    assert_int_equal(z->dims, 0);
    assert_int_equal(z->count, 1);
    assert_int_equal(z->data_begin, 24);
    assert_null(safetensors_find(&h, "y"));
    assert_string_equal(safetensors_get_metadata(&h, "k"), "v");
    assert_null(safetensors_get_metadata(&h, "q"));
}

/* The file that the reference implementation's rules give: widest dtype first, then by name. */
static void test_lay_out(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct safetensors_tensor tensors[] = {
        {.name = "b.half", .dtype = SAFETENSORS_F16, .dims = 1, .shape = {3}},
        {.name = "b", .dtype = SAFETENSORS_F32, .dims = 2, .shape = {2, 1}},
        {.name = "a", .dtype = SAFETENSORS_F32, .dims = 0},
        {.name = "c", .dtype = SAFETENSORS_I64, .dims = 1, .shape = {1}},
    };
    const struct safetensors_metadata note = {"k", "a \"quoted\" value"};
    struct safetensors_layout layout;
    safetensors_lay_out(arena, tensors, 4, &note, 1, &layout);
    const char *expected = "{\"__metadata__\":{\"format\":\"pt\",\"k\":\"a \\\"quoted\\\" value\"},"
                           "\"c\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                           "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]},"
                           "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[12,20]},"
                           "\"b.half\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[20,26]}}";
    assert_int_equal(layout.header_bytes % 8, 0);
    assert_in_range(layout.header_bytes, 8 + strlen(expected), 8 + strlen(expected) + 7);
    assert_memory_equal(layout.header + 8, expected, strlen(expected));
    for (int64_t i = 8 + (int64_t)strlen(expected); i < layout.header_bytes; i++)
        assert_int_equal(layout.header[i], ' ');
    assert_int_equal(layout.file_bytes, layout.header_bytes + 26);
    assert_ptr_equal(layout.order[0], &tensors[3]);
    assert_ptr_equal(layout.order[3], &tensors[0]);

    struct safetensors_header h;
    struct error err;
    auto_free uint8_t *file = xcalloc(1, (size_t)layout.file_bytes);
    memcpy(file, layout.header, (size_t)layout.header_bytes);
    assert_ok(parse(file, (size_t)layout.file_bytes, arena, &h, &err), &err);
    assert_string_equal(safetensors_get_metadata(&h, "k"), note.value);
    assert_int_equal(safetensors_find(&h, "b")->data_begin, 12);
}

/* The known file of 72 bytes, from disk. */
static void test_open(void **state)
{
    (void)state;
    char *dir = support_temp_dir();
    auto_free char *path = xasprintf("%s/a.safetensors", dir);
    size_t size;
    auto_free uint8_t *content = build("{" A_F32_2 "}  ", 8, &size);
    assert_int_equal(size, 72);
    const float values[] = {1.5F, -2.0F};
    memcpy(content + 64, values, 8);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fwrite(content, 1, size, out);
    fclose(out);

    struct safetensors *file;
    struct error err;
    assert_ok(safetensors_open(path, &file, &err), &err);
    const struct safetensors_tensor *a = safetensors_find(safetensors_header(file), "a");
    float read[2] = {0};
    assert_ok(safetensors_read(file, a, 0, 2, read, &err), &err);
    assert_memory_equal(read, values, 8);
    assert_ok(safetensors_read(file, a, 1, 1, read, &err), &err);
    assert_true(read[0] == -2.0F);
    uint64_t before, after;
    assert_ok(safetensors_hash(file, &before, &err), &err);
    assert_int_equal(truncate(path, 70), 0);
    assert_fails(safetensors_read(file, a, 0, 2, read, &err), &err, ERR_INPUT, "become shorter");
    assert_fails(safetensors_hash(file, &after, &err), &err, ERR_INPUT, "become shorter");
    safetensors_close(file);
    assert_fails(safetensors_open(path, &file, &err), &err, ERR_INPUT, "not within the 6 bytes");
    assert_int_equal(truncate(path, 0), 0);
    assert_fails(safetensors_open(path, &file, &err), &err, ERR_INPUT, "0 bytes are too few");
    assert_fails(safetensors_open(dir, &file, &err), &err, ERR_INPUT, "not a regular file");
    unlink(path);
    assert_fails(safetensors_open(path, &file, &err), &err, ERR_NOT_FOUND, path);
    support_remove_tree(dir);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),        cmocka_unit_test(test_header_length),
        cmocka_unit_test(test_what_is_read), cmocka_unit_test(test_lay_out),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
