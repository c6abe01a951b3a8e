#include "agent/checkpoint/export.h"

#include "agent/checkpoint/pretrained_index.h"
#include "agent/checkpoint/safetensors.h"
#include "base/file.h"
#include "base/mem.h"
#include "kernels/dtype.h"
#include "tests/agent/ranks.h"
#include "tests/support.h"
#include "tests/support_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANKS = 3, TENSORS = 4 };

static const struct export_tensor tensors[TENSORS] = {
    {"embed.weight", 2, {5, 4}}, {"a.weight", 2, {2, 3}}, {"b.weight", 1, {7}}, {"c.bias", 1, {1}}};
static const int64_t counts[TENSORS] = {20, 6, 7, 1};
static const struct export_text texts[] = {{"config.json", "{}\n", 3},
                                           {"tokenizer.json", "[1]", 3}};

/* Whole numbers that bf16 holds. */
static float value(int generation, int tensor, int64_t i)
{
    return (float)(64 * generation + 24 * (tensor % 2) + i);
}

/* One rank's part in an export. */
struct part {
    struct export_directory what;
    int generation, gathered;
    int lose_peer_at; /* this gather fails on all ranks; -1: none */
};

static int gather(void *ctx, int tensor, float *values, struct error *err)
{
    struct part *p = ctx;
    if (p->gathered++ == p->lose_peer_at)
        return error_set(err, ERR_PEER, "a peer is lost");
    for (int64_t i = 0; i < counts[tensor]; i++)
        values[i] = value(p->generation, tensor, i);
    return 0;
}

static int export_part(struct rank *r, struct comm *comm, struct stream *stream, struct error *err)
{
    struct part *p = r->arg;
    p->what.model.comm = comm;
    p->what.model.stream = stream;
    p->what.model.ctx = p;
    return export_directory(&p->what, err);
}

static struct part plain_part(const struct file_ops *files, const char *path)
{
    return (struct part){.what = {.model = {.files = files,
                                            .path = path,
                                            .tensors = tensors,
                                            .count = TENSORS,
                                            .gather = gather},
                                  .texts = texts,
                                  .text_count = 2},
                         .generation = 1,
                         .lose_peer_at = -1};
}

/* Exports on all ranks, which must agree on how it ended. */
static int export(const struct part *part, struct error *ret_err)
{
    struct rank ranks[RANKS] = {0};
    struct part parts[RANKS];
    for (int r = 0; r < RANKS; r++) {
        parts[r] = *part;
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

/* Checks a tensor of the file against a generation. */
static void check_tensor(const struct safetensors *file, int t, int generation, enum dtype dtype)
{
    struct error err;
    const struct safetensors_tensor *found =
        safetensors_find(safetensors_header(file), tensors[t].name);
    assert_non_null(found);
    assert_int_equal(found->count, counts[t]);
    assert_int_equal(found->dtype, dtype == DTYPE_BF16 ? SAFETENSORS_BF16 : SAFETENSORS_F32);
    union {
        float floats[32];
        bf16 halves[32];
    } values;
    assert_ok(safetensors_read(file, found, 0, found->count, &values, &err), &err);
    for (int64_t i = 0; i < found->count; i++)
        assert_true((dtype == DTYPE_BF16 ? bf16_to_float(values.halves[i]) : values.floats[i]) ==
                    value(generation, t, i));
}

static struct safetensors *open_weights(const char *dir, const char *name)
{
    struct safetensors *file;
    struct error err;
    auto_free char *path = xasprintf("%s/%s", dir, name);
    assert_ok(safetensors_open(path, &file, &err), &err);
    return file;
}

static void check_text(const char *dir, const char *name, const char *expected)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    auto_free char *text = NULL;
    size_t bytes;
    struct error err;
    assert_ok(file_read(path, 4096, &text, &bytes, &err), &err);
    assert_string_equal(text, expected);
}

/* The generation of a whole directory of one file of weights. */
static int generation_of(const char *dir)
{
    for (int generation = 1; generation <= 2; generation++) {
        struct safetensors *file = open_weights(dir, PRETRAINED_FILE);
        struct error err;
        float first;
        assert_ok(safetensors_read(file, safetensors_find(safetensors_header(file), "c.bias"), 0, 1,
                                   &first, &err),
                  &err);
        bool is_it = first == value(generation, 3, 0);
        for (int t = 0; is_it && t < TENSORS; t++)
            check_tensor(file, t, generation, DTYPE_F32);
        safetensors_close(file);
        if (!is_it)
            continue;
        check_text(dir, "config.json", "{}\n");
        check_text(dir, "tokenizer.json", "[1]");
        assert_int_equal(support_count_entries(dir), 3);
        return generation;
    }
    fail_msg("neither generation is in %s", dir);
    return 0;
}

static void one_file_and_the_texts(void **state)
{
    static const char *const names[] = {"model//", "model/", "model"}; /* one place */
    struct error err;
    for (size_t i = 0; i < array_length(names); i++) {
        auto_free char *path = xasprintf("%s/out/%s", (char *)*state, names[i]);
        struct part part = plain_part(&file_ops_system, path);
        for (part.generation = 1; part.generation <= 2; part.generation++) {
            assert_ok(export_try_directory(&part.what, &err), &err);
            assert_ok(export(&part, &err), &err);
            assert_int_equal(generation_of(path), part.generation);
        }
    }
    auto_free char *out = xasprintf("%s/out", (char *)*state);
    assert_int_equal(support_count_entries(out), 1);
}

/* 80, 24, 28 and 4 bytes: no file takes more than 60 but for the one that must. */
static void several_files_and_their_index(void **state)
{
    auto_free char *path = xasprintf("%s/model", (char *)*state);
    struct part part = plain_part(&file_ops_system, path);
    struct error err;
    part.what.max_file_bytes = 60;
    assert_ok(export(&part, &err), &err);
    assert_int_equal(support_count_entries(path), 5);
    struct safetensors *file = open_weights(path, "model-00001-of-00002.safetensors");
    assert_int_equal(safetensors_header(file)->tensor_count, 1);
    check_tensor(file, 0, 1, DTYPE_F32);
    safetensors_close(file);
    file = open_weights(path, "model-00002-of-00002.safetensors");
    for (int t = 1; t < TENSORS; t++)
        check_tensor(file, t, 1, DTYPE_F32);
    safetensors_close(file);
    check_text(path, PRETRAINED_INDEX,
               "{\n  \"metadata\": {\n    \"total_size\": 136\n  },\n  \"weight_map\": {\n"
               "    \"a.weight\": \"model-00002-of-00002.safetensors\",\n"
               "    \"b.weight\": \"model-00002-of-00002.safetensors\",\n"
               "    \"c.bias\": \"model-00002-of-00002.safetensors\",\n"
               "    \"embed.weight\": \"model-00001-of-00002.safetensors\"\n  }\n}\n");
    part.what.max_file_bytes = 0; /* one file in its place: no file of the old ones is left */
    part.generation = 2;
    assert_ok(export(&part, &err), &err);
    assert_int_equal(generation_of(path), 2);
}

static void in_bf16_half_the_bytes(void **state)
{
    auto_free char *path = xasprintf("%s/model", (char *)*state);
    struct part part = plain_part(&file_ops_system, path);
    struct error err;
    part.what.model.dtype = DTYPE_BF16;
    part.what.max_file_bytes = 60;
    assert_ok(export(&part, &err), &err);
    struct safetensors *file = open_weights(path, "model-00001-of-00002.safetensors");
    check_tensor(file, 0, 1, DTYPE_BF16);
    check_tensor(file, 1, 1, DTYPE_BF16);
    safetensors_close(file);
}

static void other_peoples_directories_stay(void **state)
{
    auto_free char *path = xasprintf("%s/model", (char *)*state);
    auto_free char *file = xasprintf("%s/model/thesis.tex", (char *)*state);
    struct part part = plain_part(&file_ops_system, path);
    struct durable_result written;
    struct error err;
    assert_ok(durable_make_dir(&file_ops_system, path, &err), &err);
    assert_ok(export_try_directory(&part.what, &err), &err); /* an empty one is fine */
    assert_ok(durable_write_file(&file_ops_system, file, "x", 1, &written, &err), &err);
    assert_fails(export_try_directory(&part.what, &err), &err, ERR_EXISTS, "holds thesis.tex");
    assert_fails(export(&part, &err), &err, ERR_EXISTS, "holds thesis.tex");
    assert_int_equal(support_count_entries(path), 1);
    assert_int_equal(support_count_entries(*state), 1);
    part.what.model.path = file;
    assert_fails(export(&part, &err), &err, ERR_EXISTS, "is a file; name a directory");
}

static void volumes_roots_are_refused_before_training(void **state)
{
    (void)state;
    struct part part = plain_part(&file_ops_system, "/proc/");
    struct error err;
    assert_fails(export_try_directory(&part.what, &err), &err, ERR_EXISTS,
                 "/proc is where a volume is mounted");
}

/* The directory behind a link is replaced; the link stays one. */
static void links_are_followed(void **state)
{
    auto_free char *path = xasprintf("%s/model", (char *)*state);
    auto_free char *link = xasprintf("%s/link", (char *)*state);
    struct part part = plain_part(&file_ops_system, link);
    struct error err;
    assert_ok(durable_make_dir(&file_ops_system, path, &err), &err);
    assert_int_equal(symlink("model", link), 0);
    assert_ok(export_try_directory(&part.what, &err), &err);
    for (int i = 0; i < 2; i++)
        assert_ok(export(&part, &err), &err);
    safetensors_close(open_weights(path, "model.safetensors"));
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(support_count_entries(*state), 2);
}

/* Whatever rank 0 cannot do, all ranks gather to the end and fail alike; a whole export stays, the
 * old one unless only its removal failed. */
static void failure_anywhere_leaves_a_whole_one(void **state)
{
    auto_free char *path = xasprintf("%s/model", (char *)*state);
    auto_free struct faulty_files *f = xmalloc(sizeof *f);
    struct error err;
    bool failed = true;
    int olds = 0;
    for (int n = 0; failed; n++) {
        struct part part = plain_part(&file_ops_system, path);
        assert_ok(export(&part, &err), &err);
        faulty_init(f, n, EIO);
        part.what.model.files = &f->ops;
        part.generation = 2;
        int result = export(&part, &err);
        failed = f->done > n;
        faulty_free(f);
        int found = generation_of(path);
        assert_true(failed ? result < 0 : found == 2);
        olds += found == 1;
    }
    assert_true(olds > 10);
}

static void crash_anywhere_leaves_a_whole_one(void **state)
{
    auto_free char *path = xasprintf("%s/model", (char *)*state);
    auto_free struct faulty_files *f = xmalloc(sizeof *f);
    struct error err;
    for (int loss = LOSE_NOTHING; loss <= LOSE_ALL; loss++) {
        bool crashed = true;
        for (int n = 0; crashed; n++) {
            struct part part = plain_part(&file_ops_system, path);
            assert_ok(export(&part, &err), &err);
            assert_int_equal(support_count_entries(*state), 1); /* nothing of the crash before */
            faulty_init(f, n, 0);
            part.what.model.files = &f->ops;
            part.generation = 2;
            int result = export(&part, &err);
            crashed = f->crashed;
            faulty_lose(f, (enum faulty_loss)loss);
            assert_in_range(generation_of(path), result == 0 ? 2 : 1, 2);
            faulty_free(f);
        }
    }
}

static void a_lost_peer_leaves_nothing(void **state)
{
    auto_free char *path = xasprintf("%s/model", (char *)*state);
    struct part part = plain_part(&file_ops_system, path);
    struct error err;
    part.what.max_file_bytes = 60;
    for (int at = 0; at < TENSORS; at++) {
        part.lose_peer_at = at;
        assert_fails(export(&part, &err), &err, ERR_PEER, "peer is lost");
        assert_int_equal(support_count_entries(*state), 0);
    }
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        ROW(one_file_and_the_texts),
        ROW(several_files_and_their_index),
        ROW(in_bf16_half_the_bytes),
        ROW(other_peoples_directories_stay),
        ROW(volumes_roots_are_refused_before_training),
        ROW(links_are_followed),
        ROW(failure_anywhere_leaves_a_whole_one),
        ROW(crash_anywhere_leaves_a_whole_one),
        ROW(a_lost_peer_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
