#include "base/durable.h"

#include "base/mem.h"
#include "tests/support.h"
#include "tests/support_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file's text; "" if there is none. */
static const char *text_of(const char *path, char *buffer, size_t room)
{
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(buffer, 1, room - 1, file) : 0;
    if (file)
        fclose(file);
    buffer[n] = '\0';
    return buffer;
}

static void test_write_file(void **state)
{
    auto_free char *path = xasprintf("%s/file", (char *)*state);
    struct durable_result result;
    struct error err;
    assert_ok(durable_write_file(&file_ops_system, path, "abc", 3, &result, &err), &err);
    assert_int_equal(result.bytes, 3);
    assert_true(result.xxh64 == 0x44BC2CF5AD770999); /* XXH64("abc"), from xxhash's own tests */
    char text[16];
    assert_string_equal(text_of(path, text, sizeof text), "abc");
    assert_fails(durable_write_file(&file_ops_system, path, "x", 1, &result, &err), &err,
                 ERR_EXISTS, path);
    assert_string_equal(text_of(path, text, sizeof text), "abc");
}

/* Whatever fails, the file is not there afterwards and the error names it. */
static void test_write_file_fails(void **state)
{
    auto_free char *path = xasprintf("%s/file", (char *)*state);
    for (int n = 0; n < 4; n++) { /* create, write, fsync, close */
        struct faulty_files f;
        faulty_init(&f, n, n == 1 ? ENOSPC : EIO);
        struct durable_result result;
        struct error err;
        assert_fails(durable_write_file(&f.ops, path, "abc", 3, &result, &err), &err,
                     n == 1 ? ERR_NO_SPACE : ERR_IO, path);
        if (n == 1)
            assert_non_null(strstr(err.msg, "3 more bytes are needed: No space left on device"));
        assert_int_equal(support_count_entries(*state), 0);
        faulty_free(&f);
    }
}

static int replace(const struct file_ops *ops, const char *temp, const char *path, const char *text,
                   struct error *err)
{
    struct durable_result result;
    if (durable_write_file(ops, temp, text, strlen(text), &result, err) < 0)
        return -1;
    return durable_rename(ops, temp, path, err);
}

/* A crash at any operation, with any loss, leaves the old text or the new one; and after success
 * the new one whatever is lost. */
static void test_replace_crashes(void **state)
{
    auto_free char *path = xasprintf("%s/file", (char *)*state);
    auto_free char *temp = xasprintf("%s/temp", (char *)*state);
    for (int loss = LOSE_NOTHING; loss <= LOSE_ALL; loss++) {
        bool finished = false;
        for (int n = 0; !finished; n++) {
            unlink(path);
            unlink(temp);
            struct durable_result result;
            struct error err;
            assert_ok(durable_write_file(&file_ops_system, path, "old", 3, &result, &err), &err);
            struct faulty_files f;
            faulty_init(&f, n, 0);
            finished = replace(&f.ops, temp, path, "new", &err) == 0;
            faulty_lose(&f, (enum faulty_loss)loss);
            faulty_free(&f);
            char text[16];
            text_of(path, text, sizeof text);
            if (finished || strcmp(text, "old") != 0)
                assert_string_equal(text, "new");
            assert_int_equal(f.crashed, !finished);
            assert_in_range(n, 0, 6);
        }
    }
}

/* A directory of the same name is swapped out in one step. */
static void test_rename_directory(void **state)
{
    auto_free char *a = xasprintf("%s/a", (char *)*state);
    auto_free char *b = xasprintf("%s/b", (char *)*state);
    auto_free char *in_a = xasprintf("%s/a/file", (char *)*state);
    auto_free char *in_b = xasprintf("%s/b/file", (char *)*state);
    struct durable_result result;
    struct error err;
    assert_ok(durable_make_dir(&file_ops_system, a, &err), &err);
    assert_ok(durable_write_file(&file_ops_system, in_a, "new", 3, &result, &err), &err);
    assert_ok(durable_rename(&file_ops_system, a, b, &err), &err);
    assert_int_equal(access(a, F_OK), -1);
    assert_ok(durable_make_dir(&file_ops_system, a, &err), &err);
    assert_ok(durable_write_file(&file_ops_system, in_a, "newer", 5, &result, &err), &err);
    assert_ok(durable_rename(&file_ops_system, a, b, &err), &err);
    char text[16];
    assert_string_equal(text_of(in_b, text, sizeof text), "newer");
    assert_string_equal(text_of(in_a, text, sizeof text), "new");
    assert_ok(durable_remove_tree(&file_ops_system, a, &err), &err);
    assert_int_equal(access(a, F_OK), -1);
    assert_ok(durable_remove_tree(&file_ops_system, a, &err), &err);
    assert_fails(durable_rename(&file_ops_system, a, b, &err), &err, ERR_NOT_FOUND, "/a to ");
    assert_ok(durable_write_file(&file_ops_system, a, "file", 4, &result, &err), &err);
    assert_fails(durable_rename(&file_ops_system, a, b, &err), &err, ERR_IO, "directory");
    assert_string_equal(text_of(in_b, text, sizeof text), "newer");
}

static int no_sync(void *ctx, const char *path)
{
    (void)ctx, (void)path;
    errno = EIO;
    return -1;
}

/* What was there before stays under its name, and is not what the caller removes. */
static void test_rename_directory_that_is_not_synced(void **state)
{
    auto_free char *a = xasprintf("%s/a", (char *)*state);
    auto_free char *b = xasprintf("%s/b", (char *)*state);
    auto_free char *in_a = xasprintf("%s/a/file", (char *)*state);
    auto_free char *in_b = xasprintf("%s/b/file", (char *)*state);
    struct file_ops ops = file_ops_system;
    struct durable_result result;
    struct error err;
    char text[16];
    ops.sync_dir = no_sync;
    assert_ok(durable_make_dir(&file_ops_system, a, &err), &err);
    assert_ok(durable_make_dir(&file_ops_system, b, &err), &err);
    assert_ok(durable_write_file(&file_ops_system, in_a, "new", 3, &result, &err), &err);
    assert_ok(durable_write_file(&file_ops_system, in_b, "old", 3, &result, &err), &err);
    assert_fails(durable_rename(&ops, a, b, &err), &err, ERR_IO, "");
    assert_string_equal(text_of(in_b, text, sizeof text), "old");
    assert_string_equal(text_of(in_a, text, sizeof text), "new");
}

/* As NFS has it. */
static int no_exchange(void *ctx, const char *a, const char *b)
{
    (void)ctx, (void)a, (void)b;
    errno = EINVAL;
    return -1;
}

/* Where nothing is swapped in one step, the old directory or the new one is there after a crash,
 * and under no name that is removed as left over. */
static void test_rename_directory_without_exchange(void **state)
{
    auto_free char *a = xasprintf("%s/a.tmp-0123456789abcdef", (char *)*state);
    auto_free char *b = xasprintf("%s/b", (char *)*state);
    auto_free char *old = xasprintf("%s.shoal-replaced", b);
    auto_free char *in_a = xasprintf("%s/file", a);
    auto_free char *in_b = xasprintf("%s/file", b);
    auto_free char *in_old = xasprintf("%s/file", old);
    bool finished = false;
    for (int n = 0; !finished; n++) {
        struct durable_result result;
        struct error err;
        assert_ok(durable_make_dir(&file_ops_system, a, &err), &err);
        assert_ok(durable_write_file(&file_ops_system, in_a, "new", 3, &result, &err), &err);
        assert_ok(durable_make_dir(&file_ops_system, b, &err), &err);
        assert_ok(durable_write_file(&file_ops_system, in_b, "old", 3, &result, &err), &err);
        struct faulty_files f;
        faulty_init(&f, n, 0);
        f.ops.exchange = no_exchange;
        finished = durable_rename(&f.ops, a, b, &err) == 0;
        faulty_free(&f);
        assert_int_equal(f.crashed, !finished);
        assert_in_range(n, 0, 4);
        char text[16];
        if (finished)
            assert_string_equal(text_of(in_a, text, sizeof text), "old");
        const char *now = text_of(in_b, text, sizeof text);
        if (finished || (strcmp(now, "old") != 0 && now[0]))
            assert_string_equal(now, "new");
        if (!now[0])
            assert_string_equal(text_of(in_old, text, sizeof text), "old");
        assert_int_equal(durable_is_replaced(old), access(b, F_OK) == 0);
        assert_false(durable_is_replaced(b));

        /* Whoever comes next replaces it, and twice. */
        for (int again = 0; again < 2; again++) {
            assert_ok(durable_remove_tree(&file_ops_system, a, &err), &err);
            assert_ok(durable_make_dir(&file_ops_system, a, &err), &err);
            assert_ok(durable_write_file(&file_ops_system, in_a, "next", 4, &result, &err), &err);
            faulty_init(&f, -1, 0);
            f.ops.exchange = no_exchange;
            assert_ok(durable_rename(&f.ops, a, b, &err), &err);
            faulty_free(&f);
            assert_string_equal(text_of(in_b, text, sizeof text), "next");
        }
        assert_int_equal(access(old, F_OK), -1);
        assert_ok(durable_remove_tree(&file_ops_system, a, &err), &err);
        assert_ok(durable_remove_tree(&file_ops_system, b, &err), &err);
    }
}

/* What cannot take its place leaves the other where it was. */
static void test_rename_without_exchange_undone(void **state)
{
    auto_free char *a = xasprintf("%s/a", (char *)*state);
    auto_free char *b = xasprintf("%s/b", (char *)*state);
    struct error err;
    assert_ok(durable_make_dir(&file_ops_system, a, &err), &err);
    assert_ok(durable_make_dir(&file_ops_system, b, &err), &err);
    struct faulty_files f;
    faulty_init(&f, 1, EIO);
    f.ops.exchange = no_exchange;
    assert_fails(durable_rename(&f.ops, a, b, &err), &err, ERR_IO, "rename ");
    faulty_free(&f);
    assert_int_equal(access(a, F_OK), 0);
    assert_int_equal(access(b, F_OK), 0);
    assert_int_equal(support_count_entries(*state), 2);
    /* nor does what is left of an earlier try: that is named */
    auto_free char *old = xasprintf("%s.shoal-replaced", b);
    assert_ok(durable_make_dir(&file_ops_system, old, &err), &err);
    faulty_init(&f, 0, EIO);
    f.ops.exchange = no_exchange;
    assert_fails(durable_rename(&f.ops, a, b, &err), &err, ERR_IO, "b.shoal-replaced");
    faulty_free(&f);
}

static void test_make_dirs(void **state)
{
    auto_free char *path = xasprintf("%s/x/y/z", (char *)*state);
    auto_free char *file = xasprintf("%s/x/file", (char *)*state);
    auto_free char *below = xasprintf("%s/x/file/w", (char *)*state);
    struct durable_result result;
    struct error err;
    struct stat st;
    struct faulty_files f;
    faulty_init(&f, -1, 0);
    assert_ok(durable_make_dirs(&f.ops, path, &err), &err);
    assert_int_equal(f.change_count, 0); /* all of it durable */
    assert_ok(durable_make_dirs(&f.ops, path, &err), &err);
    faulty_free(&f);
    assert_int_equal(stat(path, &st), 0);
    assert_ok(durable_write_file(&file_ops_system, file, "", 0, &result, &err), &err);
    assert_fails(durable_make_dirs(&file_ops_system, below, &err), &err, ERR_EXISTS,
                 "x/file is not a directory");
    assert_fails(durable_sync_dir(&file_ops_system, below, &err), &err, ERR_IO, below);
}

/* Leaves nothing behind, and tells what is in the way. */
static void test_try_dir(void **state)
{
    auto_free char *path = xasprintf("%s/x/y", (char *)*state);
    struct durable_result result;
    struct error err;
    assert_ok(durable_try_dir(&file_ops_system, path, &err), &err);
    assert_int_equal(support_count_entries(path), 0);
    rmdir(path);
    assert_ok(durable_write_file(&file_ops_system, path, "", 0, &result, &err), &err);
    assert_fails(durable_try_dir(&file_ops_system, path, &err), &err, ERR_EXISTS, "x/y is not");
    struct faulty_files f;
    faulty_init(&f, 0, EACCES);
    assert_fails(durable_try_dir(&f.ops, *state, &err), &err, ERR_FORBIDDEN, *state);
    faulty_free(&f);
    /* "." and the temporary file's name are no help to who asks where. */
    faulty_init(&f, 0, EACCES);
    auto_free char *here = getcwd(NULL, 0);
    auto_free char *expected = xasprintf("cannot make a file in %s: Permission denied", here);
    assert_fails(durable_try_dir(&f.ops, ".", &err), &err, ERR_FORBIDDEN, expected);
    faulty_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write_file, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_write_file_fails, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(test_replace_crashes, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_rename_directory_without_exchange, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(test_rename_without_exchange_undone, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(test_rename_directory, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(test_rename_directory_that_is_not_synced, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(test_try_dir, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_make_dirs, support_enter_dir, support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
