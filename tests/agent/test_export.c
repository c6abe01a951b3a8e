#include "agent/checkpoint/export.h"

#include "agent/checkpoint/safetensors.h"
#include "base/mem.h"
#include "tests/agent/ranks.h"
#include "tests/support.h"
#include "tests/support_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3 };

static const struct export_tensor tensors[] = {
    {"fc.weight", 2, {2, 3}},
    {"conv.weight", 4, {1, 2, 1, 2}},
    {"scale", 0, {0}},
};

static float value(int generation, int tensor, int64_t i)
{
    return (float)(1000 * generation + 100 * tensor + i);
}

/* One rank's part in an export. */
struct part {
    const struct file_ops *files;
    const char *path;
    int generation, gathered;
    int lose_peer_at; /* this gather fails on all ranks; -1: none */
};

static int gather(void *ctx, int tensor, float *values, struct error *err)
{
    struct part *p = ctx;
    static const int64_t counts[] = {6, 4, 1};
    if (p->gathered++ == p->lose_peer_at)
        return error_set(err, ERR_PEER, "a peer is lost");
    for (int64_t i = 0; i < counts[tensor]; i++)
        values[i] = value(p->generation, tensor, i);
    return 0;
}

static int export_part(struct rank *r, struct comm *comm, struct stream *stream, struct error *err)
{
    struct part *p = r->arg;
    const struct export_model what = {p->files, p->path, tensors, 3,         gather,
                                      p,        comm,    stream,  DTYPE_F32, false};
    return export_model(&what, err);
}

/* Exports on all ranks, which must agree on how it ended. */
static int export(const struct file_ops *files, const char *path, int generation, int lose_peer_at,
                  struct error *ret_err)
{
    struct rank ranks[RANKS] = {0};
    struct part parts[RANKS];
    for (int r = 0; r < RANKS; r++) {
        parts[r] = (struct part){files, path, generation, 0, lose_peer_at};
        ranks[r].arg = &parts[r];
    }
    ranks_run(ranks, RANKS, RANKS_TIMEOUT_MS, export_part);
    for (int r = 1; r < RANKS; r++) {
        assert_int_equal(ranks[r].result, ranks[0].result);
        assert_int_equal(parts[r].gathered, parts[0].gathered);
        if (ranks[r].result < 0)
            assert_string_equal(ranks[r].err.msg, ranks[0].err.msg);
    }
    *ret_err = ranks[0].err;
    return ranks[0].result;
}

/* The generation of a whole file; every element is checked. */
static int generation_of(const char *path)
{
    struct safetensors *file;
    struct error err;
    assert_ok(safetensors_open(path, &file, &err), &err);
    const struct safetensors_header *h = safetensors_header(file);
    assert_int_equal(h->tensor_count, 3);
    assert_string_equal(safetensors_get_metadata(h, "format"), "pt");
    int generation = 0;
    for (int t = 2; t >= 0; t--) {
        const struct safetensors_tensor *found = safetensors_find(h, tensors[t].name);
        assert_non_null(found);
        assert_int_equal(found->dtype, SAFETENSORS_F32);
        assert_int_equal(found->dims, tensors[t].dims);
        assert_memory_equal(found->shape, tensors[t].shape,
                            (size_t)found->dims * sizeof found->shape[0]);
        float values[8];
        assert_ok(safetensors_read(file, found, 0, found->count, values, &err), &err);
        if (t == 2)
            generation = ((int)values[0] - 200) / 1000;
        for (int64_t i = 0; i < found->count; i++)
            assert_true(values[i] == value(generation, t, i));
    }
    safetensors_close(file);
    return generation;
}

static void test_export(void **state)
{
    auto_free char *path = xasprintf("%s/out/net.safetensors", (char *)*state);
    auto_free char *out = xasprintf("%s/out", (char *)*state);
    struct error err;
    for (int generation = 1; generation <= 2; generation++) {
        assert_ok(export(&file_ops_system, path, generation, -1, &err), &err);
        assert_int_equal(generation_of(path), generation);
        assert_int_equal(support_count_entries(out), 1);
    }
}

/* Whatever rank 0 cannot do, all ranks gather to the end and then fail alike; the
 * old file stays. */
static void test_failure_anywhere(void **state)
{
    auto_free char *path = xasprintf("%s/net.safetensors", (char *)*state);
    struct error err;
    assert_ok(export(&file_ops_system, path, 1, -1, &err), &err);
    auto_free struct faulty_files *f = xmalloc(sizeof *f);
    int n = 0;
    for (bool failed = true; failed; n++) {
        faulty_init(f, n, ENOSPC);
        failed = export(&f->ops, path, 2, -1, &err) < 0;
        if (failed) {
            assert_int_equal(err.code, ERR_NO_SPACE);
            assert_non_null(strstr(err.msg, *state));
        }
        if (!failed || !strstr(err.msg, "sync directory")) /* in place, but not promised */
            assert_int_equal(generation_of(path), failed ? 1 : 2);
        faulty_free(f);
        assert_int_equal(support_count_entries(*state), 1);
    }
    assert_in_range(n, 9, 10); /* create, 4 writes, fsync, close, rename, sync_dir; and none */
}

static void test_crash_anywhere(void **state)
{
    auto_free char *path = xasprintf("%s/net.safetensors", (char *)*state);
    auto_free struct faulty_files *f = xmalloc(sizeof *f);
    struct error err;
    for (int loss = LOSE_NOTHING; loss <= LOSE_ALL; loss++) {
        bool crashed = true;
        for (int n = 0; crashed; n++) {
            assert_ok(export(&file_ops_system, path, 1, -1, &err), &err);
            assert_int_equal(support_count_entries(*state), 1); /* nothing of the crash before */
            faulty_init(f, n, 0);
            int result = export(&f->ops, path, 2, -1, &err);
            crashed = f->crashed;
            faulty_lose(f, (enum faulty_loss)loss);
            assert_in_range(generation_of(path), result == 0 ? 2 : 1, 2);
            faulty_free(f);
        }
    }
}

static void test_lost_peer(void **state)
{
    auto_free char *path = xasprintf("%s/net.safetensors", (char *)*state);
    struct error err;
    for (int at = 0; at < 3; at++) {
        assert_fails(export(&file_ops_system, path, 1, at, &err), &err, ERR_PEER, "peer is lost");
        assert_int_equal(support_count_entries(*state), 0);
    }
}

/* What is not ours stays: a directory of the file's name, and all that only looks like debris. */
static void test_others_stay(void **state)
{
    static const char *const names[] = {"net.st", "net.st.tmp", "net.st.tmp-0123456789abcdef",
                                        "net.st.tmp-old", "xnet.st.tmp-0123456789abcdef"};
    auto_free char *path = xasprintf("%s/net.st", (char *)*state);
    struct error err;
    for (size_t i = 0; i < array_length(names); i++) {
        auto_free char *dir = xasprintf("%s/%s", (char *)*state, names[i]);
        assert_ok(durable_make_dir(&file_ops_system, dir, &err), &err);
    }
    assert_fails(export(&file_ops_system, path, 1, -1, &err), &err, ERR_EXISTS,
                 "net.st is a directory; name a file");
    assert_int_equal(support_count_entries(*state), 5);
    rmdir(path);
    assert_ok(export(&file_ops_system, path, 1, -1, &err), &err);
    assert_int_equal(support_count_entries(*state), 5);
    assert_int_equal(generation_of(path), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_export, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_failure_anywhere, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(test_crash_anywhere, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_others_stay, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_lost_peer, support_enter_dir, support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
