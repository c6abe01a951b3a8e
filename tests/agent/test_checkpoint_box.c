#include "agent/checkpoint/checkpoint_box.h"

#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

/* "offset+extent" in each dimension, boxes joined by a space. */
static void print(int dims, const struct box *boxes, int count, char *out, size_t room)
{
    size_t length = 0;
    out[0] = '\0';
    for (int b = 0; b < count; b++)
        for (int d = 0; d < dims; d++)
            length +=
                (size_t)snprintf(out + length, room - length, "%s%d+%d", d ? "," : (b ? " " : ""),
                                 (int)boxes[b].offset[d], (int)boxes[b].extent[d]);
}

static void test_cut(void **state)
{
    (void)state;
    static const struct {
        int dims;
        int64_t shape[BOX_MAX_DIMS];
        int64_t first, count;
        const char *boxes;
    } rows[] = {
        {1, {10}, 0, 10, "0+10"},
        {1, {10}, 3, 4, "3+4"},
        {1, {10}, 3, 0, ""},
        {2, {4, 5}, 0, 20, "0+4,0+5"},
        {2, {4, 5}, 5, 10, "1+2,0+5"},
        {2, {4, 5}, 6, 2, "1+1,1+2"},
        {2, {4, 5}, 3, 4, "0+1,3+2 1+1,0+2"},
        {2, {4, 5}, 3, 14, "0+1,3+2 1+2,0+5 3+1,0+2"},
        {2, {1, 5}, 1, 3, "0+1,1+3"},
        {2, {5, 1}, 1, 3, "1+3,0+1"},
        {3, {2, 2, 2}, 1, 6, "0+1,0+1,1+1 0+1,1+1,0+2 1+1,0+1,0+2 1+1,1+1,0+1"},
        {4,
         {2, 3, 3, 3},
         1,
         52,
         "0+1,0+1,0+1,1+2 0+1,0+1,1+2,0+3 0+1,1+2,0+3,0+3 1+1,0+2,0+3,0+3 1+1,2+1,0+2,0+3 "
         "1+1,2+1,2+1,0+2"},
        {4,
         {3, 3, 3, 3},
         1,
         79,
         "0+1,0+1,0+1,1+2 0+1,0+1,1+2,0+3 0+1,1+2,0+3,0+3 1+1,0+3,0+3,0+3 2+1,0+2,0+3,0+3 "
         "2+1,2+1,0+2,0+3 2+1,2+1,2+1,0+2"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct box boxes[BOX_MAX_PER_RANGE];
        char text[256];
        int count = box_split(rows[i].dims, rows[i].shape, rows[i].first, rows[i].count, boxes);
        print(rows[i].dims, boxes, count, text, sizeof text);
        assert_string_equal(text, rows[i].boxes);
    }
    struct box scalar[BOX_MAX_PER_RANGE];
    assert_int_equal(box_split(0, NULL, 0, 1, scalar), 1);
    assert_int_equal(scalar[0].count, 1);
}

/* Of every range of a small tensor: the boxes follow each other, and none is empty. */
static void test_every_range(void **state)
{
    (void)state;
    static const int64_t shapes[][BOX_MAX_DIMS] = {{2, 3, 2, 4}, {1, 4, 1, 5}, {3, 1, 1, 1}};
    for (size_t s = 0; s < array_length(shapes); s++) {
        const int64_t *shape = shapes[s];
        int64_t all = shape[0] * shape[1] * shape[2] * shape[3];
        for (int64_t first = 0; first < all; first++) {
            for (int64_t count = 0; first + count <= all; count++) {
                struct box boxes[BOX_MAX_PER_RANGE];
                int n = box_split(4, shape, first, count, boxes);
                int64_t at = first;
                for (int b = 0; b < n; b++) {
                    int64_t place = -1;
                    const int64_t *e = boxes[b].extent;
                    assert_true(box_is_range(4, shape, boxes[b].offset, e, &place));
                    assert_int_equal(place, at);
                    assert_int_equal(boxes[b].count, e[0] * e[1] * e[2] * e[3]);
                    at += boxes[b].count;
                }
                assert_int_equal(at, first + count);
            }
        }
    }
}

static void test_is_range(void **state)
{
    (void)state;
    static const struct {
        int64_t offset[BOX_MAX_DIMS], extent[BOX_MAX_DIMS];
        int64_t first; /* -1: it is not one */
    } rows[] = {
        {{0, 0}, {4, 5}, 0},   {{2, 0}, {2, 5}, 10}, {{2, 1}, {1, 4}, 11},
        {{0, 0}, {2, 4}, -1},  {{0, 1}, {4, 1}, -1}, {{3, 0}, {2, 5}, -1},
        {{-1, 0}, {1, 5}, -1}, {{0, 0}, {0, 5}, -1}, {{0, 3}, {1, 3}, -1},
    };
    const int64_t shape[BOX_MAX_DIMS] = {4, 5};
    for (size_t i = 0; i < array_length(rows); i++) {
        int64_t first = -1;
        bool is = box_is_range(2, shape, rows[i].offset, rows[i].extent, &first);
        assert_int_equal(is, rows[i].first >= 0);
        assert_int_equal(first, rows[i].first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_every_range),
        cmocka_unit_test(test_is_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
