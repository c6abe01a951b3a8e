#include "agent/trainer/memory_recut.h"

#include "agent/comm/agree.h"
#include "agent/launch/rank_memory.h"
#include "agent/trainer/host_state.h"
#include "agent/trainer/memory_group.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Of one cut, and behind it of the next, which was not complete on all ranks. */
enum { SNAPSHOTS_MOST = 2 * MEMORY_GROUP_MOST * MEMORY_SNAPSHOT_SLOTS };

/* A snapshot that a rank has. */
struct row {
    int64_t step, bytes;
    int32_t world_size, parts, slices, slice, holder;
    int32_t ignored;
};

/* What a rank sends the others. */
struct inventory {
    int64_t last_step;
    int32_t count;
    int32_t is_moved; /* its memory is of another rank, or of another number of ranks */
    struct row rows[SNAPSHOTS_MOST];
};

static struct module *root_of(struct shard *shard)
{
    return shard_get_unit(shard, 0)->module;
}

uint64_t memory_recut_recipe(struct shard *shard, struct optim *optim, const char *optimizer,
                             const char *model)
{
    auto_arena struct arena *arena = arena_open();
    struct shard_layout layout;
    int count;
    uint64_t at = XXH3_64bits(optimizer, strlen(optimizer) + 1);
    at = XXH3_64bits_withSeed(model, strlen(model) + 1, at);
    shard_layout_make(arena, root_of(shard), 1, 1, &layout);
    const struct param_range *ranges = shard_layout_ranges(arena, &layout, 0, &count);
    for (int i = 0; i < count; i++) {
        const int64_t numbers[] = {ranges[i].unit, ranges[i].count, shard_dtype(shard),
                                   optim_state_count(optim)};
        at = XXH3_64bits_withSeed(ranges[i].param->name, strlen(ranges[i].param->name) + 1, at);
        at = XXH3_64bits_withSeed(numbers, sizeof numbers, at);
    }
    return at;
}

/* ---- what there is ---- */

static bool is_of_run(const struct memory_snapshot_id *its, const struct memory_snapshot_id *mine)
{
    return strcmp(its->run, mine->run) == 0 && strcmp(its->program, mine->program) == 0 &&
           its->recipe == mine->recipe && its->slices >= 1 && its->slice >= 0 &&
           its->slice < its->slices && its->parts >= its->slices && its->parts % its->slices == 0;
}

/* Keeps those of this run in `entries`. */
static void take_stock(const struct memory_recut *r, bool checks,
                       const struct memory_snapshot_id *mine, struct inventory *ret,
                       struct memory_snapshot_entry entries[SNAPSHOTS_MOST],
                       struct memory_snapshot_seen *ret_seen)
{
    int found = memory_snapshot_scan(r->memory, r->memory ? r->memory_bytes : 0, checks, entries,
                                     SNAPSHOTS_MOST, ret_seen);
    *ret = (struct inventory){.last_step = ret_seen->last_step};
    for (int i = 0; i < found; i++) {
        const struct memory_snapshot_id *id = &entries[i].id;
        if (!is_of_run(id, mine))
            continue;
        ret->is_moved |=
            entries[i].owner == 0 && (id->world_size != mine->world_size || id->rank != mine->rank);
        entries[ret->count] = entries[i];
        ret->rows[ret->count++] = (struct row){.step = entries[i].snapshot.step,
                                               .bytes = entries[i].snapshot.bytes,
                                               .world_size = id->world_size,
                                               .parts = id->parts,
                                               .slices = id->slices,
                                               .slice = id->slice,
                                               .holder = mine->rank};
    }
}

/* ---- which is taken ---- */

/* The newest first; those of one cut side by side, in the order of their slices. */
static int compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    const int64_t keys[][2] = {{y->step, x->step},     {x->world_size, y->world_size},
                               {x->slices, y->slices}, {x->parts, y->parts},
                               {x->bytes, y->bytes},   {x->slice, y->slice},
                               {x->holder, y->holder}};
    for (size_t i = 0; i < array_length(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static bool is_of_cut(const struct row *a, const struct row *b)
{
    return a->step == b->step && a->world_size == b->world_size && a->slices == b->slices &&
           a->parts == b->parts && a->bytes == b->bytes;
}

static void choose(struct row *rows, int count, struct memory_recut *ret)
{
    qsort(rows, (size_t)count, sizeof *rows, compare);
    for (int first = 0, next; first < count; first = next) {
        int have = 0;
        for (next = first; next < count && is_of_cut(&rows[first], &rows[next]); next++)
            have += rows[next].slice == have; /* else it is there again, or one is missing */
        if (have < rows[first].slices)
            continue;
        ret->step = rows[first].step;
        ret->bytes = rows[first].bytes;
        ret->world_size = rows[first].world_size;
        ret->parts = rows[first].parts;
        ret->count = have;
        ret->slices = xcalloc((size_t)have, sizeof *ret->slices);
        for (int i = next - 1; i >= first; i--)
            ret->slices[rows[i].slice].holder = rows[i].holder;
        return;
    }
}

/* Whoever has a slice keeps it, also where another rank sends it. */
static void keep(struct memory_recut *r, int rank, const struct inventory *mine,
                 const struct memory_snapshot_entry *entries)
{
    const struct row cut = {.step = r->step,
                            .bytes = r->bytes,
                            .world_size = r->world_size,
                            .parts = r->parts,
                            .slices = r->count};
    for (int i = 0; i < mine->count; i++) {
        const struct memory_snapshot_entry *entry = &entries[i];
        if (!is_of_cut(&cut, &mine->rows[i]))
            continue;
        struct memory_recut_slice *slice = &r->slices[mine->rows[i].slice];
        if (slice->holder == rank)
            slice->payload = entry->snapshot.payload;
        if (r->end == 0 || entry->begin < r->begin)
            r->begin = entry->begin;
        if (entry->end > r->end)
            r->end = entry->end;
    }
}

/* *ret_moved: any rank's memory is. rows: those of all ranks. */
static int gather(struct comm *world, struct stream *stream, const struct inventory *mine,
                  struct row *rows, int *ret_count, bool *ret_moved, int64_t *ret_last_step,
                  struct error *err)
{
    auto_free struct inventory *all = xcalloc((size_t)world->size, sizeof *all);
    if (agree_gather(world, stream, mine, all, sizeof *mine, err))
        return -1;
    *ret_count = 0;
    for (int r = 0; r < world->size; r++) {
        *ret_moved |= all[r].is_moved != 0;
        if (all[r].last_step > *ret_last_step)
            *ret_last_step = all[r].last_step;
        memcpy(rows + *ret_count, all[r].rows, (size_t)all[r].count * sizeof *rows);
        *ret_count += all[r].count;
    }
    return 0;
}

static int find(struct comm *world, struct stream *stream, const struct memory_snapshot_id *mine,
                struct memory_recut *r, struct error *err)
{
    struct memory_snapshot_entry entries[SNAPSHOTS_MOST];
    struct memory_snapshot_seen seen;
    struct inventory stock;
    int count;
    bool is_moved = false;
    auto_free struct row *rows = xcalloc((size_t)world->size * SNAPSHOTS_MOST, sizeof *rows);
    /* Checksums are only computed where they are needed: it takes as long as copying. */
    take_stock(r, false, mine, &stock, entries, &seen);
    r->begin = seen.begin;
    r->neighbours = seen.neighbours;
    int result = gather(world, stream, &stock, rows, &count, &is_moved, &r->last_step, err);
    if (result || !is_moved)
        return result;
    take_stock(r, true, mine, &stock, entries, &seen);
    r->begin = seen.begin;
    if (gather(world, stream, &stock, rows, &count, &is_moved, &r->last_step, err))
        return -1;
    choose(rows, count, r);
    if (r->step >= 0)
        keep(r, world->rank, &stock, entries);
    return 0;
}

int memory_recut_find(struct comm *world, struct stream *stream, int fd,
                      const struct memory_snapshot_id *mine, struct memory_recut *ret,
                      struct error *err)
{
    struct error ignored; /* what cannot be mapped is not there */
    int64_t first = rank_memory_begin(fd), bytes = rank_memory_size(fd) - first;
    *ret = (struct memory_recut){.step = -1, .last_step = -1, .memory_bytes = bytes};
    if (bytes > 0 && rank_memory_map(fd, first, bytes, &ret->memory, &ignored))
        ret->memory = NULL;
    int result = find(world, stream, mine, ret, err);
    ret->begin += ret->memory ? first : 0;
    if (ret->end > 0) {
        ret->end += first;
        rank_memory_keep(fd, ret->begin, ret->end);
    } else {
        rank_memory_unmap(ret->memory, bytes);
        ret->memory = NULL;
    }
    return result;
}

void memory_recut_close(struct memory_recut *r)
{
    rank_memory_unmap(r->memory, r->memory_bytes);
    free(r->slices);
    *r = (struct memory_recut){.step = -1, .last_step = r->last_step};
}

/* ---- cutting ---- */

/* A unit of a slice, as it was saved. */
struct cut {
    const struct shard_layout *layout;
    const struct param_range *ranges; /* of the whole slice */
    int count;
    int unit;
    const char *tensors;
};

/* Copies what both have of a parameter, of its values and of the optimizer's states. */
static void copy_range(const struct cut *cut, const struct param_range *from,
                       const struct host_state *host, const struct param_range *to)
{
    int64_t size = (int64_t)dtype_bytes(shard_dtype(host->shard));
    int64_t begin = from->param_offset, end = from->param_offset + from->count;
    begin = to->param_offset > begin ? to->param_offset : begin;
    end = to->param_offset + to->count < end ? to->param_offset + to->count : end;
    for (int i = 0; i < host->tensors && begin < end; i++) {
        int64_t old = from->shard_offset + begin - from->param_offset +
                      i * cut->layout->units[cut->unit].shard_count;
        int64_t new = to->shard_offset + begin - to->param_offset;
        memcpy(host->units[to->unit].tensor[i] + new *size, cut->tensors + old * size,
               (size_t)((end - begin) * size));
    }
}

/* Both lists have each parameter at most once, in the order of declaration. */
static void copy_unit(const struct cut *cut, const struct host_state *host)
{
    int count, n = 0;
    const struct param_range *mine = shard_ranges(host->shard, &count);
    for (int o = 0; o < cut->count; o++) {
        if (cut->ranges[o].unit != cut->unit)
            continue;
        while (n < count && mine[n].param->index < cut->ranges[o].param->index)
            n++;
        if (n < count && mine[n].param == cut->ranges[o].param)
            copy_range(cut, &cut->ranges[o], host, &mine[n]);
    }
}

/* Sends the part of its payload to all, who get it at *ret_data: there, or in `arriving`. */
static int send_part(const struct memory_recut_slice *slice, struct comm *comm,
                     struct stream *stream, int64_t offset, int64_t bytes, char *arriving,
                     const char **ret_data, struct error *err)
{
    char *data = slice->payload ? (char *)slice->payload + offset : arriving;
    comm->fn->broadcast(comm, stream, data, bytes, slice->holder);
    *ret_data = data;
    return stream_sync(stream, err);
}

static int load_slice(const struct memory_recut *r, int i, struct comm *comm, struct stream *stream,
                      const struct host_state *host, const struct shard_layout *layout,
                      int64_t offset, char *arriving, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct cut cut = {.layout = layout};
    const int64_t size = (int64_t)dtype_bytes(shard_dtype(host->shard));
    cut.ranges = shard_layout_ranges(arena, layout, i, &cut.count);
    for (; cut.unit < layout->unit_count; cut.unit++) {
        int64_t bytes = host->tensors * layout->units[cut.unit].shard_count * size;
        if (send_part(&r->slices[i], comm, stream, offset, bytes, arriving, &cut.tensors, err))
            return -1;
        copy_unit(&cut, host);
        offset += bytes;
    }
    return 0;
}

/* Beside its own state a rank has one unit of one slice at a time. */
static int load_slices(const struct memory_recut *r, struct comm *comm, struct stream *stream,
                       const struct host_state *host, int64_t offset, void *head, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct shard_layout layout;
    const char *first;
    int64_t whole = offset, largest = 0;
    shard_layout_make(arena, root_of(host->shard), r->count, r->parts, &layout);
    for (int u = 0; u < layout.unit_count; u++) {
        int64_t bytes = host->tensors * layout.units[u].shard_count *
                        (int64_t)dtype_bytes(shard_dtype(host->shard));
        whole += bytes;
        largest = bytes > largest ? bytes : largest;
    }
    if (r->bytes != whole)
        return error_set(err, ERR_INPUT,
                         "checkpoints in memory of %d ranks have %lld bytes each, not %lld",
                         r->world_size, (long long)r->bytes, (long long)whole);
    if (send_part(&r->slices[0], comm, stream, 0, offset, head, &first, err))
        return -1;
    if (first != head)
        memcpy(head, first, (size_t)offset);
    auto_free char *arriving = xmalloc((size_t)largest);
    for (int i = 0; i < r->count; i++)
        if (load_slice(r, i, comm, stream, host, &layout, offset, arriving, err))
            return -1;
    return 0;
}

int memory_recut_load(const struct memory_recut *r, struct comm *comm, struct shard *shard,
                      struct optim *optim, int64_t offset, void **ret_head, struct error *err)
{
    struct device *device = NULL;
    struct stream *stream = NULL;
    struct host_state host;
    host_state_open(shard, optim, NULL, &host);
    *ret_head = xmalloc((size_t)offset);
    int result = device_open("cpu", 1, &device, err);
    if (result == 0)
        result = stream_open(device, "memory recut", &stream, err);
    if (result == 0)
        result = load_slices(r, comm, stream, &host, offset, *ret_head, err);
    if (result == 0)
        result = host_state_copy(&host, TO_DEVICE, err);
    if (result == 0)
        shard_values_changed(shard);
    stream_close(stream);
    device_close(device);
    host_state_close(&host);
    return result;
}
