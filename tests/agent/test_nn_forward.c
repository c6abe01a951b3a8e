/* What layers give forward that their gradients do not show: an order of elements, and whose masks
 * are whose. */
#include "agent/nn/nn.h"
#include "tests/agent/taped.h"
#include "tests/support.h"

/* [B, H, W, C] to channel-major rows, as torch.flatten of [B, C, H, W]. */
static void flatten_is_channel_major(void **state)
{
    struct taped *f = *state;
    struct error err;
    float input[12], flat[12];
    for (int i = 0; i < 12; i++)
        input[i] = (float)(i % 2 * 100 + i / 2); /* channel c of pixel i: 100 c + i */
    tape_begin(f->tape, &(struct tape_pass){.training = false});
    struct tensor *y = nn_flatten(f->tape, tape_input(f->tape, input, 4, (int64_t[]){1, 2, 3, 2}));
    assert_int_equal(y->dims, 2);
    assert_int_equal(y->shape[1], 12);
    stream_copy(f->stream, flat, y->data, sizeof flat);
    tape_release(f->tape, y);
    assert_ok(tape_finish(f->tape, &err), &err);
    assert_ok(stream_sync(f->stream, &err), &err);
    for (int i = 0; i < 12; i++)
        assert_true(flat[i] == (float)(i / 6 * 100 + i % 6));
}

/* Which elements survive, of `rows` rows of 4; dropout at 1/2. */
static void survivors(struct taped *f, const struct tape_pass *pass, uint64_t layer, int rows,
                      float *ret)
{
    struct error err;
    float ones[32];
    struct module *m = module_new(f->arena, "d", "Dropout", NULL);
    m->dropout = 0.5f;
    for (int i = 0; i < 4 * rows; i++)
        ones[i] = 1;
    tape_begin(f->tape, pass);
    struct tensor *x = tape_input(f->tape, ones, 2, (int64_t[]){rows, 4});
    struct tensor *y = nn_dropout(f->tape, m, x, layer);
    stream_copy(f->stream, ret, y->data, (size_t)rows * 4 * sizeof(float));
    tape_release(f->tape, y);
    assert_ok(tape_finish(f->tape, &err), &err);
    assert_ok(stream_sync(f->stream, &err), &err);
}

static void dropout_masks_belong_to_global_rows(void **state)
{
    struct taped *f = *state;
    const struct tape_pass whole = {.training = true, .seed = 1, .step = 9, .row_stride = 1};
    struct tape_pass other = whole, part = whole, evaluation = whole;
    float a[32], b[32], c[16];
    survivors(f, &whole, 0, 8, a);
    survivors(f, &whole, 1, 8, b);
    assert_memory_not_equal(a, b, sizeof a); /* another layer */
    other.step = 10;
    survivors(f, &other, 0, 8, b);
    assert_memory_not_equal(a, b, sizeof a); /* another step */
    other = whole;
    other.seed = 2;
    survivors(f, &other, 0, 8, b);
    assert_memory_not_equal(a, b, sizeof a);    /* another seed */
    for (uint64_t rank = 0; rank < 2; rank++) { /* the same rows, dealt to two ranks */
        part.first_row = rank;
        part.row_stride = 2;
        survivors(f, &part, 0, 4, c);
        for (int row = 0; row < 4; row++)
            assert_memory_equal(c + 4 * row, a + 4 * (2 * row + (int)rank), 4 * sizeof(float));
    }
    evaluation.training = false;
    survivors(f, &evaluation, 0, 8, b);
    for (int i = 0; i < 32; i++)
        assert_true(b[i] == 1);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, taped_setup, taped_teardown)
    const struct CMUnitTest tests[] = {
        ROW(flatten_is_channel_major),
        ROW(dropout_masks_belong_to_global_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
