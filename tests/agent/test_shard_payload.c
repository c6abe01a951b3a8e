/* What gathers in fp8 carry: matrices and the rest tile the unit, and the ranks' messages have all
 * of it that codes have not, wherever slices cut. */
#include "agent/shard/shard_payload.h"
#include "agent/shard/wrap.h"
#include "tests/support.h"

#include <string.h>

/* One unit: norm, q k v of one x, a bias that two and four ranks cut, down, a last norm whose end
 * is padded. */
struct fixture {
    struct arena *arena;
    struct module *root;
    struct shard_layout layout;
    const struct layout_unit *unit;
};

static const struct param_row {
    int64_t count;
    bool fp8;
    int beside_count, beside_place;
} rows[] = {
    {48, false, 0, 0},  {1024, true, 3, 0}, {512, true, 3, 1}, {512, true, 3, 2},
    {112, false, 0, 0}, {2048, true, 0, 0}, {41, false, 0, 0},
};
enum { PARAMS = array_length(rows), MOST_RANKS = 5 };

static void add_params(struct fixture *f)
{
    struct module *m = f->root;
    for (int i = 0; i < PARAMS; i++) {
        if (m->param_count == MODULE_MAX_PARAMS)
            m = module_add(f->arena, f->root, module_new(f->arena, "more", "More", NULL));
        struct param *p =
            module_add_param(f->arena, m, "w", (uint64_t)i, 1, (int64_t[]){rows[i].count},
                             (struct param_init){INIT_UNIFORM, 0, 0});
        p->fp8 = rows[i].fp8;
        p->beside_count = rows[i].beside_count;
        p->beside_place = rows[i].beside_place;
    }
}

static void open_fixture(struct fixture *f, int group_size)
{
    f->arena = arena_open();
    f->root = module_new(f->arena, "", "Net", NULL);
    add_params(f);
    wrap_none(f->root);
    shard_layout_make(f->arena, f->root, group_size, group_size, &f->layout);
    f->unit = &f->layout.units[0];
    assert_int_equal(f->layout.align, LAYOUT_ALIGN_FP8);
}

/* ---- matrices ---- */

static void beside_is_one_matrix(void **state)
{
    (void)state;
    static const struct {
        bool joins;
        int left_out; /* the parameter that is not in fp8; -1: none */
        int matrices;
        struct shard_payload_span spans[4];
    } cases[] = {
        {true, -1, 2, {{48, 2048}, {2208, 2048}}},
        {false, -1, 4, {{48, 1024}, {1072, 512}, {1584, 512}, {2208, 2048}}},
        {true, 2, 3, {{48, 1024}, {1584, 512}, {2208, 2048}}},
    };
    for (size_t i = 0; i < array_length(cases); i++) {
        struct fixture f;
        struct shard_payload p;
        open_fixture(&f, 2);
        if (cases[i].left_out >= 0)
            f.unit->params[cases[i].left_out].param->fp8 = false;
        shard_payload_make(f.arena, &f.layout, f.unit, cases[i].joins, &p);
        assert_true(p.is_fp8);
        assert_int_equal(p.matrix_count, cases[i].matrices);
        for (int k = 0; k < p.matrix_count; k++) {
            assert_int_equal(p.matrices[k].offset, cases[i].spans[k].offset);
            assert_int_equal(p.matrices[k].count, cases[i].spans[k].count);
        }
        arena_close(f.arena);
    }
}

/* ---- messages ---- */

/* What the ranks' messages make of the rest, where the flat buffer holds each element's offset. */
static int64_t *rest_of_messages(struct arena *arena, const struct layout_unit *unit,
                                 const struct shard_payload *p)
{
    int64_t *rest = arena_array(arena, int64_t, p->rest_count);
    memset(rest, 0xff, (size_t)p->rest_count * sizeof *rest);
    for (int i = 0, rank = -1; i < p->piece_count; i++) {
        const struct shard_payload_piece *piece = &p->pieces[i];
        int64_t end = 0; /* of what the message has before */
        if (piece->rank == rank)
            end = p->pieces[i - 1].message_offset + p->pieces[i - 1].count;
        else
            end = (int64_t)p->matrix_count * SHARD_PAYLOAD_LARGEST;
        rank = piece->rank;
        assert_int_equal(piece->message_offset, end);
        assert_true(end + piece->count <= p->message_count);
        assert_true(piece->slice_offset + piece->count <= unit->shard_count);
        for (int64_t k = 0; k < piece->count; k++)
            rest[piece->rest_offset + k] = rank * unit->shard_count + piece->slice_offset + k;
    }
    return rest;
}

static void messages_have_the_rest(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++) {
        struct fixture f;
        struct shard_payload p;
        int64_t in_slices[2] = {0};
        open_fixture(&f, ranks);
        shard_payload_make(f.arena, &f.layout, f.unit, true, &p);
        assert_true(p.is_fp8);
        assert_int_equal(p.message_count % LAYOUT_ALIGN_FP8, 0);
        assert_int_equal(p.rest_count + p.matrices[0].count + p.matrices[1].count,
                         f.unit->flat_count);
        const int64_t *rest = rest_of_messages(f.arena, f.unit, &p);
        for (int i = 0; i < PARAMS; i++) {
            assert_int_equal(p.places[i].matrix, !rows[i].fp8 ? -1 : i < 4 ? 0 : 1);
            for (int64_t k = 0; !rows[i].fp8 && k < rows[i].count; k++)
                assert_int_equal(rest[p.places[i].rest_offset + k], f.unit->params[i].offset + k);
        }
        for (int rank = 0; rank < ranks; rank++)
            for (int i = 0; i < p.matrix_count; i++) {
                const struct shard_payload_span in =
                    shard_payload_in_slice(&p.matrices[i], f.unit->shard_count, rank);
                assert_true(in.count == 0 || in.offset + in.count <= f.unit->shard_count);
                assert_int_equal(in.count % LAYOUT_ALIGN_FP8, 0);
                in_slices[i] += in.count;
            }
        assert_int_equal(in_slices[0], p.matrices[0].count);
        assert_int_equal(in_slices[1], p.matrices[1].count);
        arena_close(f.arena);
    }
}

/* ---- whether ---- */

static void codes_must_save_bytes(void **state)
{
    (void)state;
    static const struct {
        int64_t flat, fp8;
        int ranks;
        bool saves;
    } cases[] = {
        {1600, 1600, 2, true}, {1600, 1600, 1, false}, /* nothing is gathered */
        {1600, 1584, 2, true}, {1600, 1200, 2, false}, /* the rest may be one slice's */
        {1600, 1216, 2, true}, {1600, 0, 2, false},
        {1600, 1584, 4, true}, {1600, 1584, 50, false}, /* too many messages */
    };
    for (size_t i = 0; i < array_length(cases); i++)
        if (shard_payload_saves(cases[i].flat, cases[i].fp8, cases[i].ranks) != cases[i].saves)
            fail_msg("case %zu", i);
}

static void others_are_flat(void **state)
{
    (void)state;
    struct fixture f;
    struct shard_payload p;
    open_fixture(&f, 1); /* one rank */
    shard_payload_make(f.arena, &f.layout, f.unit, true, &p);
    assert_false(p.is_fp8);
    for (int i = 0; i < PARAMS; i++)
        f.unit->params[i].param->fp8 = false;
    shard_layout_make(f.arena, f.root, 2, 2, &f.layout);
    assert_int_equal(f.layout.align, LAYOUT_ALIGN);
    shard_payload_make(f.arena, &f.layout, &f.layout.units[0], true, &p);
    assert_false(p.is_fp8);
    arena_close(f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beside_is_one_matrix),
        cmocka_unit_test(messages_have_the_rest),
        cmocka_unit_test(codes_must_save_bytes),
        cmocka_unit_test(others_are_flat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
