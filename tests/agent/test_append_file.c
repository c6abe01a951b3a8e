#include "tests/support.h"

#include "agent/telemetry/append_file.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static void append(const char *path, const char *head, const char *row)
{
    struct append_file *file;
    struct error err;
    assert_ok(append_file_open(path, head, &file, &err), &err);
    assert_ok(append_file_write(file, row, strlen(row), &err), &err);
    append_file_close(file);
}

static void assert_content(const char *path, const char *text)
{
    auto_free char *found = NULL;
    size_t bytes;
    struct error err;
    assert_ok(file_read(path, 1 << 20, &found, &bytes, &err), &err);
    assert_string_equal(found, text);
}

static void rows_are_added_under_one_head(void **state)
{
    auto_free char *path = xasprintf("%s/a/b/run.csv", (char *)*state);
    append(path, "step,loss\n", "1,2.5\n");
    append(path, "step,loss\n", "2,2.25\n");
    assert_content(path, "step,loss\n1,2.5\n2,2.25\n");
}

static void a_torn_row_is_ended(void **state)
{
    auto_free char *path = xasprintf("%s/run.jsonl", (char *)*state);
    append(path, "", "{\"step\":1}\n{\"st");
    append(path, "", "{\"step\":2}\n");
    assert_content(path, "{\"step\":1}\n{\"st\n{\"step\":2}\n");
}

static void rows_are_there_before_the_file_is_closed(void **state)
{
    auto_free char *path = xasprintf("%s/run.csv", (char *)*state);
    struct append_file *file;
    struct error err;
    assert_ok(append_file_open(path, "step\n", &file, &err), &err);
    assert_content(path, "step\n");
    assert_ok(append_file_write(file, "1\n", 2, &err), &err);
    assert_content(path, "step\n1\n");
    append_file_close(file);
}

static void other_columns_are_not_mixed(void **state)
{
    auto_free char *path = xasprintf("%s/run.csv", (char *)*state);
    struct append_file *file = NULL;
    struct error err;
    append(path, "step,loss\n", "1,2.5\n");
    assert_fails(append_file_open(path, "step,metric/train_loss\n", &file, &err), &err, ERR_EXISTS,
                 "run.csv: has other columns than this run would write");
    assert_null(file);
    assert_content(path, "step,loss\n1,2.5\n");
}

static void failures_name_the_file(void **state)
{
    struct append_file *file = NULL;
    struct error err;
    assert_fails(append_file_open(*state, "", &file, &err), &err, ERR_EXISTS,
                 "is a directory: name a file");
    append_file_close(NULL);
    assert_ok(append_file_open("/dev/full", "", &file, &err), &err);
    assert_fails(append_file_write(file, "1\n", 2, &err), &err, ERR_NO_SPACE, "write /dev/full");
    append_file_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_added_under_one_head, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(a_torn_row_is_ended, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(rows_are_there_before_the_file_is_closed, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(other_columns_are_not_mixed, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(failures_name_the_file, support_enter_dir,
                                        support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
