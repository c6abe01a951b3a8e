/* Every way a save can be cut short, and every way a checkpoint can be damaged. */
#include "agent/checkpoint/checkpoint.h"

#include "base/file.h"
#include "base/mem.h"
#include "tests/agent/checkpoints.h"
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A crash of rank 0 at any operation while it replaces, adds or removes a checkpoint, whatever of
 * the unsynced is lost: the latest is whole, and it is the new one once saving said so. */
static void test_crash_anywhere(void **state)
{
    int crashes = 0;
    for (int loss = LOSE_NOTHING; loss <= LOSE_ALL; loss++) {
        bool finished = false;
        for (int n = 0; !finished; n++) {
            auto_free char *dir = xasprintf("%s/%d-%d", (char *)*state, loss, n);
            struct error err;
            assert_ok(checkpoints_save(dir, 1, 1, NULL, &err), &err);
            auto_free struct faulty_files *f = xmalloc(sizeof *f);
            faulty_init(f, n, 0);
            bool saved = checkpoints_save(dir, 1, 2, f, &err) == 0;
            saved = saved && checkpoints_save(dir, 1, 2, f, &err) == 0; /* again: replaces */
            bool second = saved;
            saved = saved && checkpoint_prune(&f->ops, dir, 200, 1, &err) == 0;
            finished = !f->crashed;
            faulty_lose(f, (enum faulty_loss)loss);
            int latest = checkpoints_check_latest(dir);
            assert_in_range(latest, second ? 2 : 1, 2);
            crashes += f->crashed;
            faulty_free(f);
            /* The next save cleans up. */
            assert_ok(checkpoints_save(dir, 1, 3, NULL, &err), &err);
            assert_int_equal(checkpoints_check_latest(dir), 3);
            assert_in_range(support_count_entries(dir), 2, 3);
        }
    }
    assert_in_range(crashes, 3 * 60, 3 * 400);
}

/* Any operation of any rank fails: all ranks say so, with the rank that failed; the checkpoint
 * before is the latest and nothing is left over. */
static void test_failure_anywhere(void **state)
{
    const char *dir = *state;
    struct error err;
    enum { RANKS = 3 };
    assert_ok(checkpoints_save(dir, RANKS, 1, NULL, &err), &err);
    auto_free struct faulty_files *f = xcalloc(RANKS, sizeof *f);
    for (int rank = 0; rank < RANKS; rank++) {
        bool failed = true;
        for (int n = 0; failed; n++) {
            for (int r = 0; r < RANKS; r++)
                faulty_init(&f[r], r == rank ? n : -1, ENOSPC);
            failed = checkpoints_save(dir, RANKS, 2, f, &err) < 0;
            if (failed) {
                char from[32];
                snprintf(from, sizeof from, "rank %d: ", rank);
                assert_true(strncmp(err.msg, from, strlen(from)) == 0);
                assert_int_equal(err.code, ERR_NO_SPACE);
                assert_non_null(strstr(err.msg, dir));
                if (strstr(err.msg, "write "))
                    assert_non_null(strstr(err.msg, "more bytes are needed"));
            }
            /* When only the last sync failed the new one is in place, but not promised. */
            bool in_place = support_count_entries(dir) == 2;
            assert_int_equal(checkpoints_check_latest(dir), in_place ? 2 : 1);
            assert_true(!failed || !in_place || strstr(err.msg, "sync directory"));
            auto_free char *second = xasprintf("%s/net-200steps", dir);
            support_remove_tree(second);
            assert_int_equal(support_count_entries(dir), 1);
            for (int r = 0; r < RANKS; r++)
                faulty_free(&f[r]);
        }
    }
}

/* Flips a bit of every 7th byte of a file, cuts its end off, takes it away: loading names it. */
static void damage(const char *path, const char *below)
{
    auto_free char *file = xasprintf("%s/%s", path, below);
    auto_free char *aside = xasprintf("%s.aside", file);
    auto_free char *content = NULL;
    size_t size;
    struct error err;
    assert_ok(file_read(file, 1 << 20, &content, &size, &err), &err);
    auto_close int fd = open(file, O_WRONLY);
    for (size_t at = 0; at < size; at += 7) {
        char flipped = content[at] ^ 4;
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        assert_fails(checkpoints_load(path, 1, &err), &err, ERR_INPUT, below);
        assert_int_equal(pwrite(fd, &content[at], 1, (off_t)at), 1);
    }
    assert_int_equal(ftruncate(fd, (off_t)size - 1), 0);
    assert_fails(checkpoints_load(path, 1, &err), &err, ERR_INPUT, below);
    assert_int_equal(pwrite(fd, &content[size - 1], 1, (off_t)size - 1), 1);
    rename(file, aside);
    assert_fails(checkpoints_load(path, 1, &err), &err, ERR_NOT_FOUND, below);
    rename(aside, file);
    assert_ok(checkpoints_load(path, 1, &err), &err);
}

static void test_damage(void **state)
{
    static const char *const below[] = {".", "model", "optimizer"};
    auto_free char *path = xasprintf("%s/net-100steps", (char *)*state);
    struct error err;
    assert_ok(checkpoints_save(*state, 3, 1, NULL, &err), &err);
    int files = 0;
    for (size_t i = 0; i < array_length(below); i++) {
        auto_free char *dir = xasprintf("%s/%s", path, below[i]);
        struct dirent **entries;
        int count = scandir(dir, &entries, NULL, alphasort);
        for (int e = 0; e < count; e++) {
            if (entries[e]->d_type == DT_REG) {
                auto_free char *name = i == 0 ? xstrdup(entries[e]->d_name)
                                              : xasprintf("%s/%s", below[i], entries[e]->d_name);
                damage(path, name);
                files++;
            }
            free(entries[e]);
        }
        free(entries);
    }
    assert_in_range(files, 2 + 2 * 3, 2 + 2 * 3 * BOX_MAX_PER_RANGE);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_crash_anywhere),
        IN_DIR(test_failure_anywhere),
        IN_DIR(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
