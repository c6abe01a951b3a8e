#include "tests/support.h"

#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_file_is_read_whole_up_to_its_cap(void **state)
{
    (void)state;
    auto_free char *directory = support_temp_dir();
    auto_free char *path = xasprintf("%s/f", directory);
    enum { SIZE = 200 * 1000 };
    auto_free char *content = xmalloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        content[i] = (char)(i * 7);
    FILE *file = fopen(path, "we");
    assert_int_equal(fwrite(content, 1, SIZE, file), SIZE);
    fclose(file);

    auto_free char *bytes = NULL;
    size_t size = 0;
    struct error err;
    assert_ok(file_read(path, SIZE, &bytes, &size, &err), &err);
    assert_int_equal(size, SIZE);
    assert_memory_equal(bytes, content, SIZE);
    assert_int_equal(bytes[SIZE], 0);

    char *none = NULL;
    assert_fails(file_read(path, SIZE - 1, &none, &size, &err), &err, ERR_INPUT,
                 "larger than 199999");
    assert_null(none);
    support_remove_tree(directory);
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t size = 0;
    struct error err;
    assert_fails(file_read("/nonexistent/x", 1, &bytes, &size, &err), &err, ERR_NOT_FOUND,
                 "/nonexistent/x: No such file");
    assert_fails(file_read("/", 1, &bytes, &size, &err), &err, ERR_INPUT, "/: Is a directory");
}

static void directories_are_told_from_the_rest(void **state)
{
    (void)state;
    auto_free char *directory = support_temp_dir();
    auto_free char *link = xasprintf("%s/link", directory);
    assert_int_equal(symlink(directory, link), 0);
    assert_true(file_is_directory(directory));
    assert_true(file_is_directory(link));
    assert_false(file_is_directory("/dev/null"));
    assert_false(file_is_directory("/nonexistent/x"));
    support_remove_tree(directory);
}

static void paths_are_told_from_the_root(void **state)
{
    (void)state;
    static const struct {
        const char *path, *behind; /* the working directory */
    } rows[] = {{".", ""},           {"./", ""},    {"./a", "/a"},    {".//./a/b", "/a/b"},
                {"a/./b", "/a/./b"}, {".a", "/.a"}, {"../a", "/../a"}};
    auto_free char *here = getcwd(NULL, 0), *root = file_absolute("/x/./y");
    assert_string_equal(root, "/x/./y");
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *path = file_absolute(rows[i].path);
        auto_free char *expected = xasprintf("%s%s", here, rows[i].behind);
        assert_string_equal(path, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole_up_to_its_cap),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(paths_are_told_from_the_root),
        cmocka_unit_test(directories_are_told_from_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
