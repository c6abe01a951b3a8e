#include "tests/support.h"

#include "base/file.h"
#include "base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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

enum { PRINTED_BYTES = 100 * 1000 }; /* more than stdio's buffer and a pipe hold */

/* What a process that prints so much to fd returns at its end; -1: file_flush_standard failed. */
static int end_of_printing_to(int fd)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct error err;
        static char text[PRINTED_BYTES];
        signal(SIGPIPE, SIG_IGN);
        dup2(fd, STDOUT_FILENO);
        fwrite(text, 1, sizeof text, stdout); /* at once: the buffer stays empty */
        _exit(file_flush_standard(&err) < 0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void a_reader_that_went_away_has_what_it_wanted_and_a_full_disk_has_not(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    fflush(stdout); /* or the children print it as well */
    assert_int_equal(end_of_printing_to(ends[1]), 0);
    auto_close int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(end_of_printing_to(full), -1);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole_up_to_its_cap),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(paths_are_told_from_the_root),
        cmocka_unit_test(directories_are_told_from_the_rest),
        cmocka_unit_test(a_reader_that_went_away_has_what_it_wanted_and_a_full_disk_has_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
