#include "agent/dataset/token_source.h"

#include "agent/dataset/arrow_folder.h"
#include "agent/dataset/llmc_bin.h"
#include "agent/dataset/megatron.h"
#include "agent/dataset/token_files.h"
#include "agent/dataset/token_index.h"
#include "agent/dataset/token_reader.h"
#include "agent/dataset/token_stream.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

struct token_source {
    struct arena *arena; /* paths and name */
    struct token_files files;
    struct token_reader *reader;
    struct token_split split;
    struct token_options options;
    const char *name;
    uint64_t fingerprint;
};

static const char *make_name(struct arena *arena, const struct token_files *files)
{
    if (files->count == 1)
        return files->paths[0];
    return arena_printf(arena, "%s and %d more", files->paths[0], files->count - 1);
}

/* What a position depends on: names (without directories: data may be moved) and sizes of the
 * files, and the options that change the sequence. */
static uint64_t take_fingerprint(const struct token_files *files, const struct token_options *o,
                                 const struct token_split *split)
{
    const struct token_dataset *d = &o->source;
    const int64_t numbers[] = {
        files->format,   o->window,          d->packing,           d->add_bos,
        d->add_eos,      o->shuffle,         d->shuffle_buffer,    (int64_t)o->seed,
        split->max_rows, split->begin.set,   split->begin.percent, split->begin.value,
        split->end.set,  split->end.percent, split->end.value,
    };
    uint64_t hash = XXH64(numbers, sizeof numbers, 0);
    hash = XXH64(d->text_column, strlen(d->text_column), hash);
    for (int i = 0; i < files->count; i++) {
        const char *file = str_after_last(files->paths[i], '/');
        struct stat st;
        int64_t bytes = stat(files->paths[i], &st) == 0 ? st.st_size : -1;
        hash = XXH64(file, strlen(file), hash);
        hash = XXH64(&bytes, sizeof bytes, hash);
    }
    return hash;
}

static int open_reader(struct token_source *s, struct error *err)
{
    const char *const *paths = s->files.paths;
    const struct token_options *o = &s->options;
    struct id_documents documents;
    int result = 0;
    switch (s->files.format) {
    case TOKENS_AUTO: /* never the format of files */
    case TOKENS_JSONL:
    case TOKENS_TEXT:
        return token_stream_open(paths, s->files.count, s->files.format, o, &s->split, s->name,
                                 &s->reader, err);
    case TOKENS_LLMC:
        result = llmc_bin_open(paths, s->files.count, &documents, err);
        break;
    case TOKENS_MEGATRON:
        result = megatron_open(paths, s->files.count, &documents, err);
        break;
    case TOKENS_ARROW:
        result = arrow_folder_open(paths, s->files.count, &documents, err);
        break;
    case TOKENS_TSV:
    case TOKENS_CSV:
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: columns are read for sequence-to-sequence models and classification, "
                         "not for language models: write JSON lines with a text each",
                         s->name);
    }
    /* Any id will do: padding is no target, and causal attention does not look ahead at it. */
    int32_t pad = o->encoder.encode && o->encoder.eos >= 0 ? o->encoder.eos : 0;
    return result < 0 ? -1
                      : token_index_open(&documents, o, &s->split, s->name, pad, &s->reader, err);
}

static int open_source(struct token_source *s, struct error *err)
{
    const struct token_options *o = &s->options;
    if (token_split_parse(o->split, o->max_rows, &s->split, err) < 0 ||
        token_files_find(&o->source, &s->split, s->arena, &s->files, err) < 0)
        return -1;
    s->name = make_name(s->arena, &s->files);
    s->fingerprint = take_fingerprint(&s->files, o, &s->split);
    return open_reader(s, err);
}

static int check_options(const struct token_options *o, struct error *err)
{
    const struct {
        const char *key;
        int64_t value, low, high;
    } rows[] = {
        {"data.max_seq_length", o->window, 2, TOKENS_MAX_WINDOW},
        {"data.shuffle_buffer", o->source.shuffle_buffer, 0, TOKENS_MAX_BUFFER},
        {"data.num_workers", o->threads, 0, TOKENS_MAX_THREADS},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        if (rows[i].value < rows[i].low || rows[i].value > rows[i].high)
            return error_set(err, ERR_CONFIG, "%s: %lld; allowed are %lld to %lld", rows[i].key,
                             (long long)rows[i].value, (long long)rows[i].low,
                             (long long)rows[i].high);
    if (!token_format_name(o->source.format))
        return error_set(err, ERR_CONFIG, "data.format: idx has images, not text or token ids");
    return 0;
}

int token_source_open(const struct token_options *options, struct token_source **ret_source,
                      struct error *err)
{
    const struct token_dataset *source = &options->source;
    assert(source->dataset && source->root && source->text_column && options->split);
    if (check_options(options, err) < 0)
        return -1;
    struct token_source *s = xcalloc(1, sizeof *s);
    s->arena = arena_open();
    s->options = *options;
    if (open_source(s, err) < 0) {
        token_source_close(s);
        return -1;
    }
    *ret_source = s;
    return 0;
}

void token_source_close(struct token_source *source)
{
    if (!source)
        return;
    if (source->reader)
        source->reader->close(source->reader);
    arena_close(source->arena);
    free(source);
}

enum token_format token_source_format(const struct token_source *source)
{
    return source->files.format;
}

int64_t token_source_samples(const struct token_source *source)
{
    return source->reader->samples;
}

const char *token_source_name(const struct token_source *source)
{
    return source->name;
}

int token_source_set_epoch(struct token_source *source, int64_t epoch, struct error *err)
{
    return source->reader->set_epoch(source->reader, epoch, err);
}

int token_source_next(struct token_source *source, int32_t *ids, int32_t *targets, bool *ret_end,
                      struct error *err)
{
    assert(!ids == !targets);
    return source->reader->next(source->reader, ids, targets, ret_end, err);
}

int token_source_skip(struct token_source *source, int64_t count, int64_t *ret_skipped,
                      struct error *err)
{
    return source->reader->skip(source->reader, count, ret_skipped, err);
}

void token_source_tell(const struct token_source *source, struct token_position *ret_position)
{
    source->reader->tell(source->reader, ret_position);
    ret_position->fingerprint = source->fingerprint;
}

int token_source_seek(struct token_source *source, const struct token_position *position,
                      struct error *err)
{
    if (position->fingerprint != source->fingerprint)
        return error_set(err, ERR_INPUT,
                         "%s: the saved position in the data is of other files or options (data.*, "
                         "runtime.seed): bring them back, or begin a new run",
                         source->name);
    return source->reader->seek(source->reader, position, err);
}

void token_source_bad_lines(struct token_source *source, struct token_bad_lines *ret_lines)
{
    source->reader->bad_lines(source->reader, ret_lines);
}

void token_source_activity(struct token_source *source, char *out, size_t out_bytes)
{
    source->reader->activity(source->reader, out, out_bytes);
}
