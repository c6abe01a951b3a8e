#include "agent/models/mnist.h"
#include "agent/shard/wrap.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

/* The wrapped network as PyTorch printed it (tests/parity/make_rules_fixture.py). */
static void the_tree_reads_as_pytorch_prints_it(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int64_t min_num_params; /* 0: no policy */
    } rows[] = {
        {"tests/data/parity/tree_none.txt", 0},
        {"tests/data/parity/tree_100.txt", 100},
        {"tests/data/parity/tree_20000.txt", 20000},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct module *root = model_mnist_new(arena, &mnist_default_shape)->root;
        if (rows[i].min_num_params)
            wrap_by_size(root, rows[i].min_num_params);
        else
            wrap_none(root);

        char expected[4096] = "";
        auto_fclose FILE *file = fopen(rows[i].file, "r");
        assert_non_null(file);
        assert_true(fread(expected, 1, sizeof expected - 1, file) > 0);
        auto_str struct str tree;
        str_init(&tree, sizeof expected);
        module_print(root, MODULE_UNITS, &tree);
        str_add(&tree, "\n");
        assert_string_equal(str_text(&tree), expected);
    }
}

static void the_bare_tree_has_no_units(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct module *root = module_new(arena, "", "Net", NULL);
    struct module *list = module_add(arena, root, module_new(arena, "layers", "ModuleList", NULL));
    module_add(arena, list, module_new(arena, "0", "ReLU", NULL));
    wrap_none(root);
    auto_str struct str tree;
    str_init(&tree, 4096);
    module_print(root, MODULE_BARE, &tree);
    assert_string_equal(str_text(&tree), "Net(\n  (layers): ModuleList(\n    (0): ReLU()\n  )\n)");
    str_clear(&tree);
    module_print(root, MODULE_COPIED, &tree); /* as PyTorch's DDP prints itself */
    assert_string_equal(str_text(&tree),
                        "DistributedDataParallel(\n  (module): Net(\n    (layers): ModuleList(\n"
                        "      (0): ReLU()\n    )\n  )\n)");
}

static void parameters_are_named_by_their_path(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct module *root = module_new(arena, "", "Net", NULL);
    struct module *block = module_add(arena, root, module_new(arena, "h", "Block", NULL));
    struct module *leaf = module_add(arena, block, module_new(arena, "fc", "Linear", "Linear()"));
    struct param *p = module_add_param(arena, leaf, "weight", 0, 2, (int64_t[]){3, 4},
                                       (struct param_init){INIT_UNIFORM, -1, 1});
    struct param *q = module_add_param(arena, root, "scale", 1, 1, (int64_t[]){5},
                                       (struct param_init){INIT_UNIFORM, 0, 0});
    assert_string_equal(p->name, "h.fc.weight");
    assert_string_equal(q->name, "scale");
    assert_int_equal(p->count, 12);
    assert_int_equal(module_param_count(root), 17);
    assert_int_equal(module_param_count(block), 12);
}

static void many_children_keep_their_order(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct module *root = module_new(arena, "", "Net", NULL);
    for (int i = 0; i < 37; i++)
        module_add(arena, root, module_new(arena, arena_printf(arena, "%d", i), "ReLU", NULL));
    assert_int_equal(root->child_count, 37);
    for (int i = 0; i < 37; i++)
        assert_string_equal(root->children[i]->path, arena_printf(arena, "%d", i));
}

static void the_tutorials_network_has_pytorchs_parameters(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct module *root = model_mnist_new(arena, &mnist_default_shape)->root;
    assert_int_equal(module_param_count(root), 1199882);
    const struct param *w = root->children[1]->params[0];
    assert_string_equal(w->name, "conv2.weight");
    assert_int_equal(w->dims, 4);
    assert_int_equal(w->shape[0], 64);
    assert_int_equal(w->shape[1], 32);
    assert_true(w->init.b > 0.0589f && w->init.b < 0.0590f); /* 1 / sqrt(9 * 32) */
    assert_string_equal(root->children[5]->params[1]->name, "fc2.bias");
    assert_int_equal(root->children[5]->params[1]->index, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_reads_as_pytorch_prints_it),
        cmocka_unit_test(the_bare_tree_has_no_units),
        cmocka_unit_test(parameters_are_named_by_their_path),
        cmocka_unit_test(many_children_keep_their_order),
        cmocka_unit_test(the_tutorials_network_has_pytorchs_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
