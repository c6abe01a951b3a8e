#include "agent/dataset/token_stream.h"

#include "agent/dataset/encode_ring.h"
#include "agent/dataset/row_encoder.h"
#include "agent/dataset/token_rows.h"
#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the reading thread is at, for messages from others. */
struct activity {
    pthread_mutex_t lock;
    const char *doing, *path;
    int64_t line;
    struct token_bad_lines bad;
};

struct token_stream {
    struct token_reader reader;
    struct token_options o;
    const char *name;
    struct row_encoder encoder;
    int32_t pad;
    struct token_rows *rows;
    struct encode_ring *ring;
    bool rows_ended;
    bool rows_failed; /* err says why; reported when what was read before is used up */
    struct error err;
    struct encode_job *current;       /* the document whose ids are being used; NULL: none */
    struct token_position position;   /* of the next window's first id */
    int64_t bad_before, lines_before; /* the epoch, or where reading began in it */
    bool is_whole;                    /* it began at the epoch's beginning */
    struct activity activity;
};

static struct token_stream *stream_of(struct token_reader *reader)
{
    return (struct token_stream *)reader;
}

static void set_activity(struct token_stream *s, const char *doing, const char *path, int64_t line)
{
    pthread_mutex_lock(&s->activity.lock);
    s->activity.doing = doing;
    s->activity.path = path;
    s->activity.line = line;
    pthread_mutex_unlock(&s->activity.lock);
}

/* ---- the documents in order ---- */

/* Keeps the ring full. */
static void read_ahead(struct token_stream *s)
{
    struct encode_job *job;
    while (!s->rows_ended && (job = encode_ring_free(s->ring))) {
        struct token_row row;
        if (token_rows_next(s->rows, &row, &s->rows_ended, &s->err) < 0)
            s->rows_ended = s->rows_failed = true;
        if (s->rows_ended)
            return;
        set_activity(s, "reading behind", row.path, row.line);
        job->path = row.path;
        job->line = row.line;
        job->too_long = row.too_long;
        job->position = row.position;
        encode_job_set_text(job, row.text, row.bytes);
        encode_ring_submit(s->ring);
    }
}

/* Tells others what was counted. why: of a bad line; NULL: it is the end. */
static void note_lines(struct token_stream *s, const char *why)
{
    struct token_bad_lines *bad = &s->activity.bad;
    pthread_mutex_lock(&s->activity.lock);
    bad->bad = s->position.bad_lines;
    bad->lines = s->position.lines;
    bool is_new = why && bad->kept < TOKENS_BAD_LINES_KEPT;
    for (int i = 0; is_new && i < bad->kept; i++) /* it was, in an epoch before */
        is_new = strcmp(bad->why[i], why) != 0;
    if (is_new)
        snprintf(bad->why[bad->kept++], sizeof bad->why[0], "%s", why);
    pthread_mutex_unlock(&s->activity.lock);
}

/* An epoch's share of bad lines decides: those of the next one are the same. least: of so many
 * lines at least, as bad ones may lie together and more come that are good. */
static int judge_bad(const struct token_stream *s, int64_t least, struct error *err)
{
    int64_t bad = s->position.bad_lines - s->bad_before,
            lines = s->position.lines - s->lines_before;
    int64_t of = lines > least ? lines : least;
    if (bad <= TOKENS_BAD_LINES_FREE || bad * 100 <= of * TOKENS_BAD_LINES_PERCENT)
        return 0;
    return error_set(err, ERR_INPUT,
                     "%lld of %lld lines are bad, more than %d in a hundred; one of them: %.300s",
                     (long long)bad, (long long)lines, TOKENS_BAD_LINES_PERCENT,
                     s->activity.bad.why[0]);
}

static int count_bad(struct token_stream *s, const struct error *why, struct error *err)
{
    s->position.bad_lines++;
    if (s->o.strict) { /* it is not left out: it ends the run */
        *err = *why;
        return -1;
    }
    note_lines(s, why->msg);
    return judge_bad(s, TOKENS_BAD_LINES_SAMPLE, err);
}

static void release_current(struct token_stream *s)
{
    if (!s->current)
        return;
    encode_ring_release(s->ring);
    s->current = NULL;
}

/* Makes the next good document the current one; *ret_end: there is none. */
static int next_document(struct token_stream *s, bool *ret_end, struct error *err)
{
    release_current(s);
    for (;;) {
        read_ahead(s);
        struct encode_job *job = encode_ring_oldest(s->ring);
        *ret_end = !job;
        if (!job && s->rows_failed) {
            *err = s->err;
            return -1;
        }
        if (!job) {
            note_lines(s, NULL);
            return judge_bad(s, s->is_whole ? 0 : TOKENS_BAD_LINES_SAMPLE, err);
        }
        set_activity(s, "tokenizing", job->path, job->line);
        encode_ring_wait(s->ring);
        set_activity(s, "reading behind", job->path, job->line); /* if there is to be more */
        if (job->failed) {
            *err = job->err;
            return -1;
        }
        s->position.lines++;
        if (!job->bad) {
            s->current = job;
            break;
        }
        if (count_bad(s, &job->err, err) < 0)
            return -1;
        encode_ring_release(s->ring);
    }
    struct token_position *p = &s->position;
    const struct token_position *at = &s->current->position;
    p->block = at->block;
    p->file = at->file;
    p->offset = at->offset;
    p->line = at->line;
    p->row = at->row;
    p->document = at->document;
    p->token = 0;
    p->documents++;
    return 0;
}

/* ---- packing ---- */

static int64_t left(const struct token_stream *s)
{
    return s->current ? (int64_t)s->current->ids.count - s->position.token : 0;
}

/* Documents behind one another. Targets are within the window, as ADT shifts them. */
static int fill_flowing(struct token_stream *s, int32_t *ids, int32_t *targets, bool *ret_end,
                        struct error *err)
{
    int64_t T = s->o.window;
    *ret_end = false;
    for (int64_t have = 0; have < T;) {
        if (left(s) == 0) {
            if (next_document(s, ret_end, err) < 0)
                return -1;
            if (*ret_end)
                return 0;
            continue;
        }
        int64_t count = left(s) < T - have ? left(s) : T - have;
        if (ids)
            memcpy(ids + have, s->current->ids.ids + s->position.token,
                   (size_t)count * sizeof *ids);
        s->position.token += count;
        have += count;
    }
    for (int64_t t = 0; targets && t < T; t++)
        targets[t] = t + 1 < T ? ids[t + 1] : TOKENS_IGNORED;
    return 0;
}

/* A window of one document: its next part, or its first and only one. */
static int fill_apart(struct token_stream *s, int32_t *ids, int32_t *targets, bool *ret_end,
                      struct error *err)
{
    int64_t T = s->o.window;
    bool only_first = s->o.source.packing == TOKENS_NONE;
    *ret_end = false;
    while (left(s) < 2 || (only_first && s->position.token > 0)) {
        if (next_document(s, ret_end, err) < 0)
            return -1;
        if (*ret_end)
            return 0;
    }
    const int32_t *from = s->current->ids.ids + s->position.token;
    int64_t count = left(s);
    for (int64_t t = 0; ids && t < T; t++) {
        ids[t] = t < count ? from[t] : s->pad;
        targets[t] = t + 1 < count ? from[t + 1] : TOKENS_IGNORED;
    }
    s->position.token += count < T ? count : T;
    return 0;
}

static int next(struct token_reader *reader, int32_t *ids, int32_t *targets, bool *ret_end,
                struct error *err)
{
    struct token_stream *s = stream_of(reader);
    int result = s->o.source.packing == TOKENS_CONCAT ? fill_flowing(s, ids, targets, ret_end, err)
                                                      : fill_apart(s, ids, targets, ret_end, err);
    if (result < 0)
        return -1;
    if (*ret_end && s->position.sample == 0)
        return error_set(err, ERR_NOT_FOUND,
                         "%s: split %s has no window of %lld ids: %lld texts in %lld rows, %lld of "
                         "them bad; bring more text, or take a smaller data.max_seq_length",
                         s->name, s->o.split, (long long)s->o.window,
                         (long long)s->position.documents, (long long)s->position.lines,
                         (long long)s->position.bad_lines);
    s->position.sample += !*ret_end;
    s->position.tokens += *ret_end ? 0 : s->o.window;
    return 0;
}

static int skip(struct token_reader *reader, int64_t count, int64_t *ret_skipped, struct error *err)
{
    bool end = false;
    for (*ret_skipped = 0; *ret_skipped < count; ++*ret_skipped) {
        if (next(reader, NULL, NULL, &end, err) < 0)
            return -1;
        if (end)
            break;
    }
    return 0;
}

/* ---- positions ---- */

static int go(struct token_stream *s, const struct token_position *position, struct error *err)
{
    if (s->current)
        release_current(s);
    encode_ring_clear(s->ring);
    s->rows_ended = s->rows_failed = false;
    s->position = *position;
    s->bad_before = position->bad_lines;
    s->lines_before = position->lines;
    s->is_whole = position->sample == 0;
    return token_rows_seek(s->rows, position, err);
}

static int set_epoch(struct token_reader *reader, int64_t epoch, struct error *err)
{
    struct token_stream *s = stream_of(reader);
    const struct token_position *p = &s->position;
    const struct token_position begin = {.epoch = epoch,
                                         .documents = p->documents,
                                         .tokens = p->tokens,
                                         .bad_lines = p->bad_lines,
                                         .lines = p->lines};
    return go(s, &begin, err);
}

static int seek(struct token_reader *reader, const struct token_position *position,
                struct error *err)
{
    struct token_stream *s = stream_of(reader);
    bool end;
    if (go(s, position, err) < 0)
        return -1;
    if (position->token == 0) /* of no document any id was used */
        return 0;
    if (next_document(s, &end, err) < 0)
        return -1;
    if (end || (int64_t)s->current->ids.count < position->token ||
        s->position.block != position->block || s->position.document != position->document)
        return error_set(err, ERR_INPUT,
                         "%s: at the saved position there is another text: the files or the "
                         "tokenizer have changed",
                         s->name);
    s->position = *position; /* it was counted before */
    return 0;
}

static void tell(const struct token_reader *reader, struct token_position *ret_position)
{
    *ret_position = ((const struct token_stream *)reader)->position;
}

static void bad_lines(struct token_reader *reader, struct token_bad_lines *ret_lines)
{
    struct activity *a = &stream_of(reader)->activity;
    pthread_mutex_lock(&a->lock);
    *ret_lines = a->bad;
    pthread_mutex_unlock(&a->lock);
}

static void activity(struct token_reader *reader, char *out, size_t out_bytes)
{
    struct activity *a = &stream_of(reader)->activity;
    pthread_mutex_lock(&a->lock);
    snprintf(out, out_bytes, "%s %s:%lld", a->doing, a->path, (long long)a->line);
    pthread_mutex_unlock(&a->lock);
}

/* ---- opening ---- */

static void close_stream(struct token_reader *reader)
{
    struct token_stream *s = stream_of(reader);
    encode_ring_close(s->ring);
    token_rows_close(s->rows);
    pthread_mutex_destroy(&s->activity.lock);
    free(s);
}

int token_stream_open(const char *const *paths, int count, enum token_format format,
                      const struct token_options *options, const struct token_split *split,
                      const char *name, struct token_reader **ret_reader, struct error *err)
{
    struct token_stream *s = xcalloc(1, sizeof *s);
    s->reader = (struct token_reader){.samples = -1,
                                      .set_epoch = set_epoch,
                                      .next = next,
                                      .skip = skip,
                                      .tell = tell,
                                      .seek = seek,
                                      .bad_lines = bad_lines,
                                      .activity = activity,
                                      .close = close_stream};
    s->o = *options;
    s->name = name;
    s->pad = options->encoder.eos >= 0 ? options->encoder.eos : 0;
    pthread_mutex_init(&s->activity.lock, NULL);
    set_activity(s, "opening", paths[0], 0);
    int64_t buffer =
        options->source.shuffle_buffer ? options->source.shuffle_buffer : TOKENS_DEFAULT_BUFFER;
    const struct token_rows_options rows = {.paths = paths,
                                            .count = count,
                                            .paragraphs = format == TOKENS_TEXT,
                                            .shuffle = options->shuffle,
                                            .block_rows = buffer,
                                            .seed = options->seed,
                                            .split = split};
    if (row_encoder_init(&s->encoder, format, &s->o, name, err) < 0 ||
        token_rows_open(&rows, &s->rows, err) < 0 ||
        encode_ring_open(options->threads, row_encode, &s->encoder, &s->ring, err) < 0 ||
        set_epoch(&s->reader, 0, err) < 0) {
        close_stream(&s->reader);
        return -1;
    }
    *ret_reader = &s->reader;
    return 0;
}
