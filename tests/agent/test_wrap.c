#include "agent/models/mnist.h"
#include "agent/shard/wrap.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "name name ...": the modules that are units, in the order of their numbers. */
static void list_units(const struct module *m, struct str *list, int *next)
{
    if (m->unit >= 0) {
        assert_int_equal(m->unit, (*next)++);
        if (*m->path)
            str_printf(list, " %s", m->path);
    }
    for (int i = 0; i < m->child_count; i++)
        list_units(m->children[i], list, next);
}

static void assert_units(const struct module *root, const char *expected)
{
    auto_str struct str list;
    str_init(&list, 4096);
    int next = 0;
    list_units(root, &list, &next);
    assert_string_equal(str_text(&list), expected);
    assert_int_equal(root->unit, 0);
}

/* units.txt: what size_based_auto_wrap_policy chose at each limit. */
static void sizes_choose_the_units_that_pytorch_chooses(void **state)
{
    (void)state;
    auto_fclose FILE *file = fopen("tests/data/parity/units.txt", "r");
    assert_non_null(file);
    char line[256];
    int rows = 0;
    for (; fgets(line, sizeof line, file); rows++) {
        line[strcspn(line, "\n")] = '\0';
        char *colon = strchr(line, ':');
        assert_non_null(colon);
        auto_arena struct arena *arena = arena_open();
        struct module *root = model_mnist_new(arena, &mnist_default_shape)->root;
        if (strncmp(line, "none", 4) == 0)
            wrap_none(root);
        else
            wrap_by_size(root, strtoll(line, NULL, 10));
        assert_units(root, colon + 1);
    }
    assert_int_equal(rows, 10);
}

/* A tree of lists and attention: { name, class, list, block, own parameters } below a parent. */
static struct module *transformer(struct arena *arena)
{
    struct module *root = module_new(arena, "", "Model", NULL);
    struct module *list = module_add(arena, root, module_new(arena, "layers", "ModuleList", NULL));
    list->is_list = true;
    for (int i = 0; i < 2; i++) {
        struct module *block =
            module_add(arena, list, module_new(arena, i ? "1" : "0", "Block", NULL));
        block->is_block = true;
        struct module *attention =
            module_add(arena, block, module_new(arena, "attention", "MultiheadAttention", NULL));
        struct module *out =
            module_add(arena, attention, module_new(arena, "out", "Linear", "Linear()"));
        module_add_param(arena, out, "weight", 0, 1, (int64_t[]){600},
                         (struct param_init){INIT_UNIFORM, 0, 0});
        struct module *mlp = module_add(arena, block, module_new(arena, "mlp", "Linear", "Linear"));
        module_add_param(arena, mlp, "weight", 0, 1, (int64_t[]){50},
                         (struct param_init){INIT_UNIFORM, 0, 0});
    }
    return root;
}

static void lists_and_attention_are_never_units_by_size(void **state)
{
    (void)state;
    static const struct {
        int64_t min_num_params;
        const char *units;
    } rows[] = {
        {50, " layers.0 layers.0.mlp layers.1 layers.1.mlp"}, /* attention's 600 go to the block */
        {51, " layers.0 layers.1"},
        {650, " layers.0 layers.1"},
        {651, ""}, /* the list is large enough but a list */
        {1301, ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct module *root = transformer(arena);
        wrap_by_size(root, rows[i].min_num_params);
        assert_units(root, rows[i].units);
    }
}

static void classes_choose_blocks(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct module *root = transformer(arena);
    struct error err;
    assert_ok(wrap_by_class(root, NULL, 0, &err), &err);
    assert_units(root, " layers.0 layers.1");
    const char *classes[] = {"Linear", "Nothing"};
    assert_fails(wrap_by_class(root, classes, 2, &err), &err, ERR_CONFIG,
                 "Could not find the transformer layer class Nothing in the model.");
    assert_ok(wrap_by_class(root, classes, 1, &err), &err);
    assert_units(root, " layers.0.attention.out layers.0.mlp layers.1.attention.out layers.1.mlp");
    wrap_none(root);
    assert_units(root, "");
}

static void classes_that_are_not_there_are_an_error(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct module *root = model_mnist_new(arena, &mnist_default_shape)->root;
    struct error err;
    const char *classes[] = {"LlamaDecoderLayer"};
    assert_fails(
        wrap_by_class(root, classes, 1, &err), &err, ERR_CONFIG,
        "Could not find the transformer layer class LlamaDecoderLayer in the model. Net has "
        "Conv2d, Dropout, Linear");
    assert_fails(wrap_by_class(root, NULL, 0, &err), &err, ERR_CONFIG,
                 "Net has no transformer blocks to wrap");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_choose_the_units_that_pytorch_chooses),
        cmocka_unit_test(lists_and_attention_are_never_units_by_size),
        cmocka_unit_test(classes_choose_blocks),
        cmocka_unit_test(classes_that_are_not_there_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
