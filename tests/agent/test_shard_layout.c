#include "agent/models/mnist.h"
#include "agent/shard/shard_layout.h"
#include "agent/shard/wrap.h"
#include "base/str.h"
#include "tests/support.h"

/* A tree a(6), b(10) with child c(16), d(0 parameters); names are modules. */
static struct module *tree(struct arena *arena)
{
    struct module *root = module_new(arena, "", "Net", NULL);
    struct module *a = module_add(arena, root, module_new(arena, "a", "A", "A()"));
    struct module *b = module_add(arena, root, module_new(arena, "b", "B", NULL));
    struct module *c = module_add(arena, b, module_new(arena, "c", "C", "C()"));
    module_add(arena, root, module_new(arena, "d", "D", "D()"));
    module_add_param(arena, a, "w", 0, 1, (int64_t[]){6}, (struct param_init){INIT_UNIFORM, 0, 0});
    module_add_param(arena, b, "w", 2, 1, (int64_t[]){10},
                     (struct param_init){INIT_UNIFORM, 0, 0}); /* declared after c's */
    module_add_param(arena, c, "w", 1, 2, (int64_t[]){2, 8},
                     (struct param_init){INIT_UNIFORM, 0, 0});
    return root;
}

static void print_pieces(const struct shard_layout *layout, int rank, struct str *out)
{
    auto_arena struct arena *arena = arena_open();
    int count;
    const struct param_range *p = shard_layout_ranges(arena, layout, rank, &count);
    for (int i = 0; i < count; i++, p++)
        str_printf(out, " %s[%d..%d)@%d+%d", p->param->name, (int)p->param_offset,
                   (int)(p->param_offset + p->count), p->unit, (int)p->shard_offset);
}

/* Pieces are printed as PARAMETER[elements)@UNIT+OFFSET. */
static void ranges_tile_the_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *unit_class; /* units beside the root; NULL: none */
        int group_size;
        const char *units; /* count/flat_count/shard_count of each */
        const char *ranges[4];
    } rows[] = {
        /* flat: a 0..6, b 8..18, c 24..40; padded to 8 S */
        {NULL, 1, " 32/40/40", {" a.w[0..6)@0+0 b.c.w[0..16)@0+24 b.w[0..10)@0+8"}},
        {NULL, 2, " 32/48/24", {" a.w[0..6)@0+0 b.w[0..10)@0+8", " b.c.w[0..16)@0+0"}},
        {NULL,
         3,
         " 32/48/16",
         {" a.w[0..6)@0+0 b.w[0..8)@0+8", " b.c.w[0..8)@0+8 b.w[8..10)@0+0", " b.c.w[8..16)@0+0"}},
        {NULL,
         4,
         " 32/64/16",
         {" a.w[0..6)@0+0 b.w[0..8)@0+8", " b.c.w[0..8)@0+8 b.w[8..10)@0+0", " b.c.w[8..16)@0+0",
          ""}},
        {"B", 2, " 6/16/8 26/32/16", {" a.w[0..6)@0+0 b.w[0..10)@1+0", " b.c.w[0..16)@1+0"}},
        {"C",
         2,
         " 16/32/16 16/16/8",
         {" a.w[0..6)@0+0 b.c.w[0..8)@1+0 b.w[0..8)@0+8", " b.c.w[8..16)@1+0 b.w[8..10)@0+0"}},
        {"D", 1, " 32/40/40 0/0/0", {" a.w[0..6)@0+0 b.c.w[0..16)@0+24 b.w[0..10)@0+8"}},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct module *root = tree(arena);
        struct error err;
        wrap_none(root);
        if (rows[i].unit_class)
            assert_ok(wrap_by_class(root, &rows[i].unit_class, 1, &err), &err);
        struct shard_layout layout;
        shard_layout_make(arena, root, rows[i].group_size, rows[i].group_size, &layout);
        auto_str struct str out;
        str_init(&out, 4096);
        for (int u = 0; u < layout.unit_count; u++)
            str_printf(&out, " %d/%d/%d", (int)layout.units[u].count,
                       (int)layout.units[u].flat_count, (int)layout.units[u].shard_count);
        assert_string_equal(str_text(&out), rows[i].units);
        for (int rank = 0; rank < rows[i].group_size; rank++) {
            str_clear(&out);
            print_pieces(&layout, rank, &out);
            assert_string_equal(str_text(&out), rows[i].ranges[rank]);
        }
    }
}

/* Each element of each parameter is in exactly one slice, whatever the world. */
static void every_element_has_one_owner(void **state)
{
    (void)state;
    static const int64_t cuts[] = {100, 20000, 100000000};
    for (size_t i = 0; i < array_length(cuts); i++)
        for (int size = 1; size <= 9; size++) {
            auto_arena struct arena *arena = arena_open();
            struct module *root = model_mnist_new(arena, &mnist_default_shape)->root;
            wrap_by_size(root, cuts[i]);
            struct shard_layout layout;
            shard_layout_make(arena, root, size, size, &layout);
            int64_t total = 0, next[8] = {0};
            for (int rank = 0; rank < size; rank++) {
                int count;
                const struct param_range *p = shard_layout_ranges(arena, &layout, rank, &count);
                for (int k = 0; k < count; k++, total += p->count, p++) {
                    assert_int_equal(p->param_offset, next[p->param->index]);
                    next[p->param->index] += p->count;
                    assert_true(p->shard_offset + p->count <= layout.units[p->unit].shard_count);
                    assert_int_equal(p->shard_offset % LAYOUT_ALIGN, 0);
                }
            }
            assert_int_equal(total, 1199882);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_tile_the_parameters),
        cmocka_unit_test(every_element_has_one_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
