#include "agent/dataset/llmc_bin.h"

#include "agent/dataset/id_type.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { MAGIC_EVAL = 20240522 };

struct shard {
    const char *path;
    const uint8_t *bytes;
    size_t size;
    enum id_type type;
    int64_t count; /* ids */
};

struct llmc_bin {
    int count;
    struct shard shards[];
};

static int32_t word(const uint8_t *bytes, int i)
{
    int32_t value;
    memcpy(&value, bytes + 4 * (size_t)i, 4);
    return value;
}

bool llmc_bin_is(const uint8_t *bytes, size_t size)
{
    if (size < 8)
        return false;
    int32_t magic = word(bytes, 0);
    return magic == LLMC_MAGIC_GPT2 || magic == LLMC_MAGIC_LLAMA3 || magic == MAGIC_EVAL;
}

static int check_header(struct shard *s, struct error *err)
{
    if (s->size < LLMC_HEADER_BYTES)
        return error_set(err, ERR_INPUT, "%s: cut off in its header (%zu of %d bytes)", s->path,
                         s->size, LLMC_HEADER_BYTES);
    int32_t magic = word(s->bytes, 0), version = word(s->bytes, 1), count = word(s->bytes, 2);
    if (magic == MAGIC_EVAL)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: llm.c's file of evaluation questions, not a file of ids", s->path);
    bool gpt2 = magic == LLMC_MAGIC_GPT2 && version == LLMC_VERSION_GPT2;
    if (!gpt2 && !(magic == LLMC_MAGIC_LLAMA3 && version == LLMC_VERSION_LLAMA3))
        return error_set(err, ERR_INPUT,
                         "%s: magic number %d, version %d; llm.c's files of ids have %d, %d (16 "
                         "bits) or %d, %d (32 bits)",
                         s->path, magic, version, LLMC_MAGIC_GPT2, LLMC_VERSION_GPT2,
                         LLMC_MAGIC_LLAMA3, LLMC_VERSION_LLAMA3);
    s->type = gpt2 ? ID_U16 : ID_U32;
    s->count = count;
    int64_t expected = LLMC_HEADER_BYTES + (int64_t)count * id_type_bytes(s->type);
    if (count < 0 || expected != (int64_t)s->size)
        return error_set(err, ERR_INPUT,
                         "%s: its header announces %d ids, which is %lld bytes; the file has %zu: "
                         "cut off or damaged",
                         s->path, count, (long long)expected, s->size);
    return 0;
}

/* A shard counts as one document: only separators among the ids say where the texts in it begin. */
static int64_t length(const void *ctx, int64_t document)
{
    const struct llmc_bin *b = ctx;
    return b->shards[document].count;
}

static int read_ids(const void *ctx, int64_t document, int64_t first, int64_t count, int32_t *ids,
                    int32_t *labels, struct error *err)
{
    (void)labels, (void)err;
    const struct shard *s = &((const struct llmc_bin *)ctx)->shards[document];
    id_type_copy(s->type, s->bytes + LLMC_HEADER_BYTES + first * id_type_bytes(s->type), count,
                 ids);
    return 0;
}

static const char *locate(const void *ctx, int64_t document, int64_t *ret_number)
{
    const struct llmc_bin *b = ctx;
    *ret_number = document;
    return b->shards[document].path;
}

static void close_shards(void *ctx)
{
    struct llmc_bin *b = ctx;
    for (int i = 0; i < b->count; i++)
        file_unmap(b->shards[i].bytes, b->shards[i].size);
    free(b);
}

int llmc_bin_open(const char *const *paths, int count, struct id_documents *ret_documents,
                  struct error *err)
{
    struct llmc_bin *b = xcalloc(1, sizeof *b + (size_t)count * sizeof *b->shards);
    for (b->count = 0; b->count < count;) {
        struct shard *s = &b->shards[b->count];
        s->path = paths[b->count];
        if (file_map(s->path, &s->bytes, &s->size, err) < 0) {
            close_shards(b);
            return -1;
        }
        b->count++;
        if (check_header(s, err) < 0) {
            close_shards(b);
            return -1;
        }
    }
    *ret_documents = (struct id_documents){.ctx = b,
                                           .count = count,
                                           .unit = "shard",
                                           .rows_are_windows = true,
                                           .length = length,
                                           .read = read_ids,
                                           .locate = locate,
                                           .close = close_shards};
    return 0;
}
