#include "agent/dataset/megatron.h"

#include "agent/dataset/offset_search.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Where things are in an .idx. */
enum {
    MAGIC_BYTES = 9,
    AT_VERSION = 9,
    AT_TYPE = 17,
    AT_SEQUENCES = 18,
    AT_DOCUMENTS = 26,
    HEADER_BYTES = 34,
    VERSION = 1,
};
static const char magic[MAGIC_BYTES] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};

struct pair {
    const char *path; /* of the .idx */
    char *bin_path;
    const uint8_t *idx, *bin;
    size_t idx_size, bin_size;
    struct megatron_index index;
    int64_t first; /* sequences of the pairs before it */
};

struct megatron {
    int count;
    struct pair pairs[];
};

static uint64_t u64_at(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, 8);
    return value;
}

bool megatron_is(const uint8_t *bytes, size_t size)
{
    return size >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0;
}

static int decode_type(const char *name, int code, enum id_type *ret_type, struct error *err)
{
    /* Megatron's enum DType; its 6 and 7 are float64 and float32. */
    static const struct {
        int code;
        enum id_type type;
    } rows[] = {{1, ID_U8}, {2, ID_I8}, {3, ID_I16}, {4, ID_I32}, {5, ID_I64}, {8, ID_U16}};
    for (size_t i = 0; i < array_length(rows); i++) {
        if (rows[i].code == code) {
            *ret_type = rows[i].type;
            return 0;
        }
    }
    if (code == 6 || code == 7)
        return error_set(err, ERR_UNSUPPORTED, "%s: offset %d: floating-point numbers, not ids",
                         name, AT_TYPE);
    return error_set(err, ERR_INPUT, "%s: offset %d: unknown type of ids %d", name, AT_TYPE, code);
}

static int64_t length_of(const struct megatron_index *index, int64_t i)
{
    int32_t length;
    memcpy(&length, index->lengths + 4 * i, 4);
    return length;
}

static int64_t offset_of(const struct megatron_index *index, int64_t i)
{
    return (int64_t)u64_at(index->offsets + 8 * i);
}

static int check_sequences(const char *name, const struct megatron_index *index, int64_t bin_bytes,
                           struct error *err)
{
    for (int64_t i = 0; i < index->count; i++) {
        int64_t length = length_of(index, i), offset = offset_of(index, i);
        int64_t bytes = length * id_type_bytes(index->type);
        if (length < 0 || offset < 0 || offset > bin_bytes || bytes > bin_bytes - offset)
            return error_set(
                err, ERR_INPUT,
                "%s: sequence %lld: %lld ids from byte %lld on are not within the %lld "
                "bytes of the .bin: not its .idx, or cut off",
                name, (long long)i, (long long)length, (long long)offset, (long long)bin_bytes);
    }
    return 0;
}

int megatron_parse(const char *name, const uint8_t *bytes, size_t size, int64_t bin_bytes,
                   struct megatron_index *ret_index, struct error *err)
{
    if (size < HEADER_BYTES || !megatron_is(bytes, size))
        return error_set(err, ERR_INPUT, "%s: offset 0: no header of a Megatron .idx", name);
    uint64_t version = u64_at(bytes + AT_VERSION);
    if (version != VERSION)
        return error_set(err, ERR_INPUT, "%s: offset %d: version %llu; only %d is read", name,
                         AT_VERSION, (unsigned long long)version, VERSION);
    struct megatron_index index;
    if (decode_type(name, bytes[AT_TYPE], &index.type, err) < 0)
        return -1;
    uint64_t sequences = u64_at(bytes + AT_SEQUENCES), documents = u64_at(bytes + AT_DOCUMENTS);
    uint64_t left = size - HEADER_BYTES;
    if (sequences > left / 12 || documents > (left - sequences * 12) / 8)
        return error_set(
            err, ERR_INPUT,
            "%s: offset %d: announces %llu sequences and %llu documents, which the %zu "
            "bytes of the file cannot hold: cut off or damaged",
            name, AT_SEQUENCES, (unsigned long long)sequences, (unsigned long long)documents, size);
    /* Behind lengths and offsets lies each document's first sequence: windows are cut from
     * sequences, so it is not read. */
    index.count = (int64_t)sequences;
    index.lengths = bytes + HEADER_BYTES;
    index.offsets = index.lengths + 4 * sequences;
    if (check_sequences(name, &index, bin_bytes, err) < 0)
        return -1;
    *ret_index = index;
    return 0;
}

static const struct pair *find_pair(const struct megatron *m, int64_t document)
{
    const struct pair *all = m->pairs;
    return &all[offset_search(&all->first, sizeof *all, m->count, document)];
}

static int64_t length(const void *ctx, int64_t document)
{
    const struct pair *p = find_pair(ctx, document);
    return length_of(&p->index, document - p->first);
}

static int read_ids(const void *ctx, int64_t document, int64_t first, int64_t count, int32_t *ids,
                    int32_t *labels, struct error *err)
{
    (void)labels, (void)err;
    const struct pair *p = find_pair(ctx, document);
    const uint8_t *begin = p->bin + offset_of(&p->index, document - p->first);
    id_type_copy(p->index.type, begin + first * id_type_bytes(p->index.type), count, ids);
    return 0;
}

static const char *locate(const void *ctx, int64_t document, int64_t *ret_number)
{
    const struct pair *p = find_pair(ctx, document);
    *ret_number = document - p->first;
    return p->bin_path;
}

static void close_pairs(void *ctx)
{
    struct megatron *m = ctx;
    for (int i = 0; i < m->count; i++) {
        file_unmap(m->pairs[i].idx, m->pairs[i].idx_size);
        file_unmap(m->pairs[i].bin, m->pairs[i].bin_size);
        free(m->pairs[i].bin_path);
    }
    free(m);
}

static int open_pair(struct pair *p, struct error *err)
{
    size_t stem = strlen(p->path) - strlen(".idx");
    if (strlen(p->path) <= strlen(".idx") || strcmp(p->path + stem, ".idx") != 0)
        return error_set(err, ERR_CONFIG, "%s: name a Megatron data set by its .idx file", p->path);
    p->bin_path = xasprintf("%.*s.bin", (int)stem, p->path);
    return file_map(p->path, &p->idx, &p->idx_size, err) < 0 ||
                   file_map(p->bin_path, &p->bin, &p->bin_size, err) < 0 ||
                   megatron_parse(p->path, p->idx, p->idx_size, (int64_t)p->bin_size, &p->index,
                                  err) < 0
               ? -1
               : 0;
}

int megatron_open(const char *const *paths, int count, struct id_documents *ret_documents,
                  struct error *err)
{
    struct megatron *m = xcalloc(1, sizeof *m + (size_t)count * sizeof *m->pairs);
    int64_t sequences = 0;
    m->count = count;
    for (int i = 0; i < count; i++) {
        m->pairs[i].path = paths[i];
        m->pairs[i].first = sequences;
        if (open_pair(&m->pairs[i], err) < 0) {
            close_pairs(m);
            return -1;
        }
        sequences += m->pairs[i].index.count;
    }
    *ret_documents = (struct id_documents){.ctx = m,
                                           .count = sequences,
                                           .unit = "sequence",
                                           .length = length,
                                           .read = read_ids,
                                           .locate = locate,
                                           .close = close_pairs};
    return 0;
}
