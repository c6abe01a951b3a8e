/* Saving on several ranks (threads), loading on as many or others, and every way it can be cut
 * short. */
#include "agent/checkpoint/checkpoint.h"

#include "agent/comm/comm_local.h"
#include "base/file.h"
#include "base/mem.h"
#include "tests/support.h"
#include "tests/support_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A small model: tensors of 0 to 4 dimensions, and one optimizer state of each. */
static const struct {
    const char *name, *state_name;
    int dims;
    int64_t shape[BOX_MAX_DIMS];
    int64_t count;
} tensors[] = {
    {"conv.weight", "conv.weight.square_avg", 4, {3, 2, 3, 5}, 90},
    {"conv.bias", "conv.bias.square_avg", 1, {3}, 3},
    {"fc.weight", "fc.weight.square_avg", 2, {7, 11}, 77},
    {"scale", "scale.square_avg", 0, {0}, 1},
};
enum { TENSORS = 4, ELEMENTS = 90 + 3 + 77 + 1, MAX_RANKS = 5, JOIN_TIMEOUT_MS = 60000 };

/* What element i of all tensors in a row is; the generation tells checkpoints apart. */
static float value(int generation, enum checkpoint_part part, int64_t i)
{
    return (float)generation * 1000.0F + (part == CHECKPOINT_MODEL ? 0.25F : 0.75F) + (float)i;
}

/* What one rank of `ranks` has: all tensors one after the other, cut into equal slices. */
struct holding {
    float data[CHECKPOINT_PARTS][ELEMENTS];
    struct checkpoint_piece pieces[CHECKPOINT_PARTS][TENSORS];
    struct checkpoint_pieces parts[CHECKPOINT_PARTS];
    int64_t begin, end; /* the slice */
};

static void hold(struct holding *h, int rank, int ranks)
{
    *h = (struct holding){0};
    int64_t slice = (ELEMENTS + ranks - 1) / ranks;
    h->begin = rank * slice < ELEMENTS ? rank * slice : ELEMENTS;
    h->end = h->begin + slice < ELEMENTS ? h->begin + slice : ELEMENTS;
    for (int part = 0; part < CHECKPOINT_PARTS; part++) {
        int count = 0;
        int64_t base = 0;
        for (int t = 0; t < TENSORS; base += tensors[t++].count) {
            int64_t first = h->begin > base ? h->begin - base : 0;
            int64_t end = h->end < base + tensors[t].count ? h->end - base : tensors[t].count;
            if (first >= end)
                continue;
            struct checkpoint_piece *p = &h->pieces[part][count++];
            *p = (struct checkpoint_piece){
                .name = part == CHECKPOINT_MODEL ? tensors[t].name : tensors[t].state_name,
                .dims = tensors[t].dims,
                .first = first,
                .count = end - first,
                .data = &h->data[part][base + first],
            };
            memcpy(p->shape, tensors[t].shape, sizeof p->shape);
        }
        h->parts[part] = (struct checkpoint_pieces){h->pieces[part], count};
    }
}

static void fill(struct holding *h, int generation)
{
    for (int part = 0; part < CHECKPOINT_PARTS; part++)
        for (int64_t i = h->begin; i < h->end; i++)
            h->data[part][i] = value(generation, (enum checkpoint_part)part, i);
}

/* Where the run of a generation is; how states are stored is test_checkpoint_state's. */
static struct checkpoint_state state_of(int generation)
{
    return (struct checkpoint_state){
        .step = 100 * generation, .world_size = 3, .strategy = "FULL_SHARD", .data = ""};
}

/* ---- saving on ranks that are threads ---- */

/* The system's operations without the waiting for a disk. */
static int no_fsync(void *ctx, int fd)
{
    (void)ctx, (void)fd;
    return 0;
}

static int no_sync_dir(void *ctx, const char *path)
{
    (void)ctx;
    return access(path, F_OK);
}

static struct file_ops quick_ops(void)
{
    struct file_ops ops = file_ops_system;
    ops.fsync = no_fsync;
    ops.sync_dir = no_sync_dir;
    return ops;
}

struct saver {
    pthread_t thread;
    struct comm_local *group;
    const struct file_ops *files;
    const char *dir;
    int rank, ranks, generation;
    int result;
    struct error err;
};

static int save_on(struct saver *s, struct comm *comm, struct stream *stream)
{
    auto_free struct holding *h = xmalloc(sizeof *h);
    hold(h, s->rank, s->ranks);
    fill(h, s->generation);
    const struct checkpoint_state state = state_of(s->generation);
    char name[32];
    snprintf(name, sizeof name, "net-%dsteps", 100 * s->generation);
    const struct checkpoint_save save = {
        .files = s->files,
        .dir = s->dir,
        .name = name,
        .state = &state,
        .parts = {h->parts[0], h->parts[1]},
        .comm = comm,
        .stream = stream,
    };
    int64_t bytes = 0;
    int result = checkpoint_save(&save, &bytes, &s->err);
    assert_true(result < 0 || bytes > 0);
    return result;
}

static void *run_saver(void *arg)
{
    struct saver *s = arg;
    struct device *device = NULL;
    struct stream *stream = NULL;
    struct comm *comm = NULL;
    s->result = device_open("cpu", 1, &device, &s->err);
    if (s->result == 0)
        s->result = stream_open(device, "save", &stream, &s->err);
    if (s->result == 0)
        s->result = s->ranks == 1 ? comm_self_open(&comm, &s->err)
                                  : comm_local_join(s->group, s->rank, s->ranks, JOIN_TIMEOUT_MS,
                                                    &comm, &s->err);
    if (s->result == 0)
        s->result = save_on(s, comm, stream);
    stream_close(stream);
    comm_close(comm);
    device_close(device);
    return NULL;
}

/* Saves a generation on `ranks` ranks; files[rank] are theirs (NULL: no faults). All ranks must
 * agree on how it ended; *ret_err is rank 0's. */
static int save(const char *dir, int ranks, int generation, struct faulty_files *faulty,
                struct error *ret_err)
{
    const struct file_ops quick = quick_ops();
    struct saver savers[MAX_RANKS];
    struct comm_local *group = comm_local_open();
    for (int r = 0; r < ranks; r++) {
        savers[r] = (struct saver){.group = group,
                                   .files = faulty ? &faulty[r].ops : &quick,
                                   .dir = dir,
                                   .rank = r,
                                   .ranks = ranks,
                                   .generation = generation};
        pthread_create(&savers[r].thread, NULL, run_saver, &savers[r]);
    }
    for (int r = 0; r < ranks; r++)
        pthread_join(savers[r].thread, NULL);
    comm_local_close(group);
    for (int r = 1; r < ranks; r++) {
        assert_int_equal(savers[r].result, savers[0].result);
        if (savers[r].result < 0)
            assert_string_equal(savers[r].err.msg, savers[0].err.msg);
    }
    *ret_err = savers[0].err;
    return savers[0].result;
}

/* ---- loading ---- */

/* Loads a checkpoint as each of `ranks` ranks and returns the first failure. */
static int load(const char *path, int ranks, struct holding *h, int *ret_generation,
                struct error *err)
{
    struct checkpoint *c;
    if (checkpoint_open(path, &c, err) < 0)
        return -1;
    int result = 0;
    *ret_generation = (int)checkpoint_get_state(c)->step / 100;
    for (int r = 0; r < ranks && result == 0; r++) {
        hold(&h[r], r, ranks);
        for (int part = 0; part < CHECKPOINT_PARTS && result == 0; part++)
            result = checkpoint_load(c, (enum checkpoint_part)part, &h[r].parts[part], err);
    }
    checkpoint_close(c);
    return result;
}

/* Loads as `ranks` ranks and checks every element; returns the generation. */
static int load_and_check(const char *path, int ranks)
{
    auto_free struct holding *h = xcalloc((size_t)ranks, sizeof *h);
    struct error err;
    int generation = 0;
    assert_ok(load(path, ranks, h, &generation, &err), &err);
    for (int r = 0; r < ranks; r++)
        for (int part = 0; part < CHECKPOINT_PARTS; part++)
            for (int64_t i = h[r].begin; i < h[r].end; i++)
                assert_true(h[r].data[part][i] == value(generation, (enum checkpoint_part)part, i));
    return generation;
}

/* The generation of the latest checkpoint, all of it checked. */
static int check_latest(const char *dir)
{
    struct checkpoint_found found;
    struct error err;
    assert_ok(checkpoint_find_latest(dir, INT64_MAX, NULL, &found, &err), &err);
    int generation = load_and_check(found.path, 2);
    free(found.path);
    return generation;
}

/* ---- the tests ---- */

static void test_any_world_to_any_world(void **state)
{
    for (int from = 1; from <= MAX_RANKS; from++) {
        auto_free char *dir = xasprintf("%s/%d", (char *)*state, from);
        auto_free char *path = xasprintf("%s/net-700steps", dir);
        struct error err;
        assert_ok(save(dir, from, 7, NULL, &err), &err);
        assert_int_equal(support_count_entries(dir), 1);
        for (int to = 1; to <= MAX_RANKS; to++)
            assert_int_equal(load_and_check(path, to), 7);
    }
}

static void test_find_latest(void **state)
{
    auto_arena struct arena *arena = arena_open();
    const char *dir = *state;
    auto_free char *missing = xasprintf("%s/none", dir);
    struct checkpoint_found found;
    struct error err;
    assert_fails(checkpoint_find_latest(missing, INT64_MAX, NULL, &found, &err), &err,
                 ERR_NOT_FOUND, "none");
    assert_fails(checkpoint_find_latest(dir, INT64_MAX, NULL, &found, &err), &err, ERR_NOT_FOUND,
                 "no complete checkpoint in it");
    for (int generation = 9; generation <= 11; generation++) /* "900" > "1000" as text */
        assert_ok(save(dir, 1, generation, NULL, &err), &err);
    assert_int_equal(check_latest(dir), 11);

    auto_free char *newest = xasprintf("%s/net-1100steps", dir);
    auto_free char *manifest = xasprintf("%s/COMPLETE", newest);
    auto_free char *temp = xasprintf("%s/net-1200steps.tmp-0123456789abcdef", dir);
    unlink(manifest);
    assert_ok(durable_make_dir(&file_ops_system, temp, &err), &err);
    struct checkpoint_skipped skipped;
    lines_init(&skipped.paths, arena);
    lines_init(&skipped.reasons, arena);
    assert_ok(checkpoint_find_latest(dir, INT64_MAX, &skipped, &found, &err), &err);
    assert_non_null(strstr(found.path, "net-1000steps"));
    assert_int_equal(found.step, 1000);
    free(found.path);
    assert_ok(checkpoint_find_latest(dir, 1000, NULL, &found, &err), &err);
    assert_int_equal(found.step, 900);
    free(found.path);
    assert_fails(checkpoint_find_latest(dir, 900, NULL, &found, &err), &err, ERR_NOT_FOUND, dir);
    assert_int_equal(skipped.paths.count, 2);
    assert_string_equal(skipped.paths.items[0], newest);
    assert_non_null(strstr(skipped.reasons.items[0], "net-1100steps: not a complete checkpoint"));
    assert_non_null(strstr(skipped.reasons.items[1], "left over from a save"));

    struct checkpoint *c;
    assert_fails(checkpoint_open(newest, &c, &err), &err, ERR_NOT_FOUND,
                 "net-1100steps: not a complete checkpoint: it has no COMPLETE");
    assert_fails(checkpoint_open(missing, &c, &err), &err, ERR_NOT_FOUND,
                 "none: there is no such checkpoint");
}

static void test_prune(void **state)
{
    const char *dir = *state;
    struct error err;
    for (int generation = 1; generation <= 4; generation++)
        assert_ok(save(dir, 1, generation, NULL, &err), &err);
    assert_ok(checkpoint_prune(&file_ops_system, dir, 400, 5, &err), &err);
    assert_int_equal(support_count_entries(dir), 4);
    assert_ok(checkpoint_prune(&file_ops_system, dir, 150, 1, &err), &err); /* only one so old */
    assert_int_equal(support_count_entries(dir), 4);
    assert_ok(checkpoint_prune(&file_ops_system, dir, 400, 2, &err), &err);
    assert_int_equal(support_count_entries(dir), 2);
    assert_ok(checkpoint_prune(&file_ops_system, dir, 400, 1, &err), &err);
    assert_int_equal(support_count_entries(dir), 1);
    assert_int_equal(check_latest(dir), 4);
}

static void put(const char *dir, const char *below)
{
    auto_free char *path = xasprintf("%s/%s", dir, below);
    auto_free char *copy = xstrdup(path);
    struct durable_result result;
    struct error err;
    assert_ok(durable_make_dirs(&file_ops_system, dirname(copy), &err), &err);
    assert_ok(durable_write_file(&file_ops_system, path, "mine", 4, &result, &err), &err);
}

static bool is_there(const char *dir, const char *below)
{
    auto_free char *path = xasprintf("%s/%s", dir, below);
    return access(path, F_OK) == 0;
}

/* Only what certainly is a checkpoint's own debris is removed, and nothing else is replaced. */
static void test_others_stay(void **state)
{
    const char *dir = *state;
    struct error err;
    static const char *const others[] = {
        "notes.tmp-old/file",
        "net-100steps.tmp-mine/file",
        "net-100steps.tmp-0123456789abcdef/file",
        "net-100steps.tmp-0123456789abcde0/model/notes",
        "net-100steps.tmp-0123456789abcde1",
        "net-200steps/notes",
        "net-300steps/model/shard-1.safetensors",
    };
    for (size_t i = 0; i < array_length(others); i++)
        put(dir, others[i]);
    put(dir, "net-100steps.tmp-0123456789abcde2/model/shard-1.safetensors"); /* debris */
    assert_ok(save(dir, 1, 1, NULL, &err), &err);
    assert_false(is_there(dir, "net-100steps.tmp-0123456789abcde2"));
    assert_fails(save(dir, 1, 2, NULL, &err), &err, ERR_EXISTS, "net-200steps is in the way");
    assert_fails(save(dir, 1, 3, NULL, &err), &err, ERR_EXISTS, "net-300steps is in the way");
    put(dir, "net-100steps/notes");
    assert_fails(save(dir, 1, 1, NULL, &err), &err, ERR_EXISTS, "holds other files too");
    assert_ok(save(dir, 1, 4, NULL, &err), &err);
    assert_ok(checkpoint_prune(&file_ops_system, dir, 400, 1, &err), &err);
    assert_true(is_there(dir, "net-100steps/COMPLETE"));
    for (size_t i = 0; i < array_length(others); i++)
        assert_true(is_there(dir, others[i]));
}

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
            assert_ok(save(dir, 1, 1, NULL, &err), &err);
            auto_free struct faulty_files *f = xmalloc(sizeof *f);
            faulty_init(f, n, 0);
            bool saved = save(dir, 1, 2, f, &err) == 0;
            saved = saved && save(dir, 1, 2, f, &err) == 0; /* again: replaces */
            bool second = saved;
            saved = saved && checkpoint_prune(&f->ops, dir, 200, 1, &err) == 0;
            finished = !f->crashed;
            faulty_lose(f, (enum faulty_loss)loss);
            int latest = check_latest(dir);
            assert_in_range(latest, second ? 2 : 1, 2);
            crashes += f->crashed;
            faulty_free(f);
            /* The next save cleans up. */
            assert_ok(save(dir, 1, 3, NULL, &err), &err);
            assert_int_equal(check_latest(dir), 3);
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
    assert_ok(save(dir, RANKS, 1, NULL, &err), &err);
    auto_free struct faulty_files *f = xcalloc(RANKS, sizeof *f);
    for (int rank = 0; rank < RANKS; rank++) {
        bool failed = true;
        for (int n = 0; failed; n++) {
            for (int r = 0; r < RANKS; r++)
                faulty_init(&f[r], r == rank ? n : -1, ENOSPC);
            failed = save(dir, RANKS, 2, f, &err) < 0;
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
            assert_int_equal(check_latest(dir), in_place ? 2 : 1);
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
    auto_free struct holding *h = xcalloc(1, sizeof *h);
    auto_free char *file = xasprintf("%s/%s", path, below);
    auto_free char *aside = xasprintf("%s.aside", file);
    auto_free char *content = NULL;
    size_t size;
    int generation;
    struct error err;
    assert_ok(file_read(file, 1 << 20, &content, &size, &err), &err);
    auto_close int fd = open(file, O_WRONLY);
    for (size_t at = 0; at < size; at += 7) {
        char flipped = content[at] ^ 4;
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        assert_fails(load(path, 1, h, &generation, &err), &err, ERR_INPUT, below);
        assert_int_equal(pwrite(fd, &content[at], 1, (off_t)at), 1);
    }
    assert_int_equal(ftruncate(fd, (off_t)size - 1), 0);
    assert_fails(load(path, 1, h, &generation, &err), &err, ERR_INPUT, below);
    assert_int_equal(pwrite(fd, &content[size - 1], 1, (off_t)size - 1), 1);
    rename(file, aside);
    assert_fails(load(path, 1, h, &generation, &err), &err, ERR_NOT_FOUND, below);
    rename(aside, file);
    assert_ok(load(path, 1, h, &generation, &err), &err);
}

static void test_damage(void **state)
{
    static const char *const below[] = {".", "model", "optimizer"};
    auto_free char *path = xasprintf("%s/net-100steps", (char *)*state);
    struct error err;
    assert_ok(save(*state, 3, 1, NULL, &err), &err);
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

/* Tensors that the checkpoint does not have as asked for. */
static void test_other_model(void **state)
{
    const char *dir = *state;
    auto_free char *path = xasprintf("%s/net-100steps", dir);
    struct error err;
    assert_ok(save(dir, 2, 1, NULL, &err), &err);
    struct checkpoint *c;
    assert_ok(checkpoint_open(path, &c, &err), &err);
    float data[128];
    static const struct {
        struct checkpoint_piece piece;
        enum error_code code;
        const char *fails;
    } rows[] = {
        {{"fc.bias", 1, {7}, 0, 7, NULL}, ERR_INPUT, "there is no tensor fc.bias in it"},
        {{"fc.weight", 2, {7, 12}, 0, 84, NULL},
         ERR_SHAPE,
         "fc.weight was saved with shape [7, 11], the model has [7, 12]"},
        {{"fc.weight", 1, {77}, 0, 77, NULL}, ERR_SHAPE, "[7, 11], the model has [77]"},
        {{"scale", 1, {1}, 0, 1, NULL}, ERR_SHAPE, "saved with shape [], the model has [1]"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct checkpoint_piece piece = rows[i].piece;
        piece.data = data;
        const struct checkpoint_pieces pieces = {&piece, 1};
        assert_fails(checkpoint_load(c, CHECKPOINT_MODEL, &pieces, &err), &err, rows[i].code,
                     rows[i].fails);
        assert_non_null(strstr(err.msg, path));
    }
    checkpoint_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_world_to_any_world, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(test_find_latest, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_others_stay, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_prune, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_crash_anywhere, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_failure_anywhere, support_enter_dir,
                                        support_leave_dir),
        cmocka_unit_test_setup_teardown(test_damage, support_enter_dir, support_leave_dir),
        cmocka_unit_test_setup_teardown(test_other_model, support_enter_dir, support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
