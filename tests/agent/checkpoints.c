#include "tests/agent/checkpoints.h"

#include "agent/checkpoint/checkpoint.h"
#include "agent/comm/comm_local.h"
#include "base/mem.h"
#include "tests/support.h"

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

int checkpoints_load(const char *path, int ranks, struct error *err)
{
    auto_free struct holding *h = xcalloc((size_t)ranks, sizeof *h);
    int generation;
    return load(path, ranks, h, &generation, err);
}

int checkpoints_check(const char *path, int ranks)
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

int checkpoints_check_latest(const char *dir)
{
    struct checkpoint_found found;
    struct error err;
    assert_ok(checkpoint_find_latest(dir, NULL, NULL, NULL, &found, &err), &err);
    int generation = checkpoints_check(found.path, 2);
    free(found.path);
    return generation;
}
