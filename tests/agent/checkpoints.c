#include "tests/agent/checkpoints.h"

#include "agent/checkpoint/checkpoint.h"
#include "agent/checkpoint/checkpoint_files.h"
#include "agent/checkpoint/inspect.h"
#include "base/mem.h"
#include "tests/agent/comm_local.h"
#include "tests/support.h"

#include <limits.h>
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
enum { TENSORS = 4, ELEMENTS = 90 + 3 + 77 + 1, JOIN_TIMEOUT_MS = SUPPORT_PATIENCE_MS };

/* The model is saved in fp32, its state in bf16. */
static enum dtype dtype_of(enum checkpoint_part part)
{
    return part == CHECKPOINT_MODEL ? DTYPE_F32 : DTYPE_BF16;
}

/* What element i of all tensors in a row is; the generation tells checkpoints apart. */
static float value(int generation, enum checkpoint_part part, int64_t i)
{
    if (part == CHECKPOINT_MODEL)
        return (float)generation * 1000.0F + 0.25F + (float)i;
    return bf16_to_float((bf16)(0x3f80 + generation * ELEMENTS + (int)i)); /* from 1 upwards */
}

/* What one rank of `ranks` has: all tensors one after the other, cut into equal slices. */
struct holding {
    float data[CHECKPOINT_PARTS][ELEMENTS]; /* bf16: its first half */
    enum dtype dtypes[CHECKPOINT_PARTS];
    struct tensor_range ranges[CHECKPOINT_PARTS][TENSORS];
    struct tensor_ranges parts[CHECKPOINT_PARTS];
    int64_t begin, end; /* the slice */
};

/* Where element i is. */
static char *place(struct holding *h, int part, int64_t i)
{
    return (char *)h->data[part] + i * (int64_t)dtype_bytes(h->dtypes[part]);
}

/* others: each part in the dtype that it is not saved in. */
static void hold(struct holding *h, int rank, int ranks, bool others)
{
    *h = (struct holding){0};
    int64_t slice = (ELEMENTS + ranks - 1) / ranks;
    h->begin = rank * slice < ELEMENTS ? rank * slice : ELEMENTS;
    h->end = h->begin + slice < ELEMENTS ? h->begin + slice : ELEMENTS;
    for (int part = 0; part < CHECKPOINT_PARTS; part++) {
        int count = 0;
        int64_t base = 0;
        bool is_bf16 = dtype_of((enum checkpoint_part)part) == DTYPE_BF16;
        h->dtypes[part] = is_bf16 != others ? DTYPE_BF16 : DTYPE_F32;
        for (int t = 0; t < TENSORS; base += tensors[t++].count) {
            int64_t first = h->begin > base ? h->begin - base : 0;
            int64_t end = h->end < base + tensors[t].count ? h->end - base : tensors[t].count;
            if (first >= end)
                continue;
            struct tensor_range *p = &h->ranges[part][count++];
            *p = (struct tensor_range){
                .name = part == CHECKPOINT_MODEL ? tensors[t].name : tensors[t].state_name,
                .dims = tensors[t].dims,
                .first = first,
                .count = end - first,
                .dtype = h->dtypes[part],
                .data = place(h, part, base + first),
            };
            memcpy(p->shape, tensors[t].shape, sizeof p->shape);
        }
        h->parts[part] = (struct tensor_ranges){h->ranges[part], count};
    }
}

/* Element i as it is held: rounded to nearest, if need be. */
static void put(struct holding *h, int part, int64_t i, float x)
{
    dtype_narrow(h->dtypes[part], &x, 1);
    memcpy(place(h, part, i), &x, dtype_bytes(h->dtypes[part]));
}

static void fill(struct holding *h, int generation)
{
    for (int part = 0; part < CHECKPOINT_PARTS; part++)
        for (int64_t i = h->begin; i < h->end; i++)
            put(h, part, i, value(generation, (enum checkpoint_part)part, i));
}

/* Where the run of a generation is; how states are stored is test_checkpoint_state's. */
static struct checkpoint_state state_of(int generation)
{
    return (struct checkpoint_state){.step = 100 * generation,
                                     .world_size = 3,
                                     .strategy = "FULL_SHARD",
                                     .optimizer = "sgd",
                                     .run = generation % 2 ? "odd" : "even",
                                     .data = ""};
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
    hold(h, s->rank, s->ranks, false);
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

int checkpoints_save(const char *dir, int ranks, int generation, struct faulty_files *faulty,
                     struct error *ret_err)
{
    const struct file_ops quick = quick_ops();
    struct saver savers[CHECKPOINTS_MAX_RANKS];
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

static int load(const char *path, int ranks, bool others, struct holding *h, int *ret_generation,
                struct error *err)
{
    struct checkpoint *c;
    if (checkpoint_open(path, &c, err) < 0)
        return -1;
    int result = 0;
    *ret_generation = (int)checkpoint_get_state(c)->step / 100;
    for (int r = 0; r < ranks && result == 0; r++) {
        hold(&h[r], r, ranks, others);
        for (int part = 0; part < CHECKPOINT_PARTS && result == 0; part++)
            result = checkpoint_load(c, (enum checkpoint_part)part, &h[r].parts[part], false, err);
    }
    checkpoint_close(c);
    return result;
}

int checkpoints_load(const char *path, int ranks, struct error *err)
{
    auto_free struct holding *h = xcalloc((size_t)ranks, sizeof *h);
    int generation;
    return load(path, ranks, false, h, &generation, err);
}

static int check(const char *path, int ranks, bool others)
{
    auto_free struct holding *h = xcalloc((size_t)ranks, sizeof *h);
    auto_free struct holding *right = xmalloc(sizeof *right);
    struct error err;
    int generation = 0;
    assert_ok(load(path, ranks, others, h, &generation, &err), &err);
    for (int r = 0; r < ranks; r++) {
        hold(right, r, ranks, others);
        fill(right, generation);
        assert_memory_equal(h[r].data, right->data, sizeof right->data);
    }
    return generation;
}

int checkpoints_check(const char *path, int ranks)
{
    int generation = check(path, ranks, false);
    assert_int_equal(check(path, ranks, true), generation);
    return generation;
}

int checkpoints_check_latest(const char *dir)
{
    struct checkpoint_found found;
    struct error err;
    assert_ok(checkpoint_find_latest(dir, NULL, NULL, NULL, &found, &err), &err);
    int generation = checkpoints_check(found.path, 2);
    free(found.path);
    return generation;
}

/* ---- in another dtype ---- */

struct copy {
    struct checkpoint *checkpoint;
    struct tensor_ranges parts[CHECKPOINT_PARTS];
    const char *texts[CHECKPOINT_TEXTS];
};

/* Whole tensors. */
static void read_copy(struct arena *arena, const char *path, enum dtype dtype, struct copy *copy)
{
    struct inspection in;
    struct error err;
    assert_ok(inspect_read(arena, path, true, &in, &err), &err);
    assert_int_equal(in.problems.count, 0);
    assert_ok(checkpoint_open(path, &copy->checkpoint, &err), &err);
    for (int part = 0; part < CHECKPOINT_PARTS; part++) {
        const char *name = checkpoint_part_name((enum checkpoint_part)part);
        struct tensor_range *items = arena_array(arena, struct tensor_range, in.tensor_count);
        struct tensor_ranges *ranges = &copy->parts[part];
        *ranges = (struct tensor_ranges){.items = items};
        for (int i = 0; i < in.tensor_count; i++) {
            const struct inspect_tensor *t = &in.tensors[i];
            if (strcmp(t->part, name) != 0)
                continue;
            struct tensor_range *p = &items[ranges->count++];
            *p = (struct tensor_range){
                .name = t->name, .dims = t->dims, .count = t->count, .dtype = dtype};
            memcpy(p->shape, t->shape, sizeof p->shape);
            p->data = arena_alloc(arena, (size_t)t->count * dtype_bytes(dtype));
        }
        assert_ok(
            checkpoint_load(copy->checkpoint, (enum checkpoint_part)part, ranges, false, &err),
            &err);
    }
    for (int i = 0; i < CHECKPOINT_TEXTS; i++)
        assert_ok(
            checkpoint_read_text(copy->checkpoint, (enum checkpoint_text)i, &copy->texts[i], &err),
            &err);
}

void checkpoints_assert_same(const char *a, const char *b)
{
    auto_arena struct arena *arena = arena_open();
    struct copy copies[2] = {0};
    read_copy(arena, a, DTYPE_F32, &copies[0]);
    read_copy(arena, b, DTYPE_F32, &copies[1]);
    for (int part = 0; part < CHECKPOINT_PARTS; part++) {
        const struct tensor_ranges *x = &copies[0].parts[part], *y = &copies[1].parts[part];
        assert_in_range(x->count, 1, INT_MAX);
        assert_int_equal(x->count, y->count);
        for (int i = 0; i < x->count; i++) {
            assert_string_equal(x->items[i].name, y->items[i].name);
            assert_int_equal(x->items[i].count, y->items[i].count);
            assert_memory_equal(x->items[i].data, y->items[i].data,
                                (size_t)x->items[i].count * sizeof(float));
        }
    }
    checkpoint_close(copies[0].checkpoint);
    checkpoint_close(copies[1].checkpoint);
}

void checkpoints_copy(const char *path, const char *dir, const char *name, enum dtype dtype)
{
    auto_arena struct arena *arena = arena_open();
    const struct file_ops quick = quick_ops();
    struct copy copy = {0};
    struct device *device;
    struct stream *stream;
    struct comm *comm;
    struct error err;
    int64_t bytes;
    read_copy(arena, path, dtype, &copy);
    assert_ok(device_open("cpu", 1, &device, &err), &err);
    assert_ok(stream_open(device, "copy", &stream, &err), &err);
    assert_ok(comm_self_open(&comm, &err), &err);
    struct checkpoint_save save = {.files = &quick,
                                   .dir = dir,
                                   .name = name,
                                   .state = checkpoint_get_state(copy.checkpoint),
                                   .comm = comm,
                                   .stream = stream};
    memcpy(save.parts, copy.parts, sizeof save.parts);
    memcpy(save.texts, copy.texts, sizeof save.texts);
    assert_ok(checkpoint_save(&save, &bytes, &err), &err);
    checkpoint_close(copy.checkpoint);
    stream_close(stream);
    comm_close(comm);
    device_close(device);
}
