#include "agent/text/tokenizer.h"

#include "agent/text/tokenizer_internal.h"
#include "agent/text/utf8.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

/* Texts may grow while they are normalized. */
enum { MAX_NORMALIZED_BYTES = 1 << 30 };

static void close_workspace(struct tokenizer_workspace *work)
{
    splitter_workspace_free(&work->splitter);
    pattern_workspace_close(work->pattern);
    bpe_workspace_close(work->bpe);
    unigram_workspace_close(work->unigram);
    str_free(&work->repaired);
    str_free(&work->one);
    str_free(&work->two);
    str_free(&work->word);
    free(work);
}

/* The tokenizer is constant for its callers; the idle works are its memory behind a mutex. */
struct tokenizer_workspace *tokenizer_acquire_workspace(const struct tokenizer *tokenizer)
{
    struct tokenizer *t = (struct tokenizer *)tokenizer;
    pthread_mutex_lock(&t->mutex);
    struct tokenizer_workspace *work = t->idle;
    if (work) {
        t->idle = work->next;
        t->idle_count--;
    }
    pthread_mutex_unlock(&t->mutex);
    if (work)
        return work;
    work = xcalloc(1, sizeof *work);
    work->pattern = pattern_workspace_open();
    work->bpe = bpe_workspace_open();
    work->unigram = unigram_workspace_open();
    splitter_workspace_init(&work->splitter, work->pattern, MAX_NORMALIZED_BYTES);
    str_init(&work->repaired, MAX_NORMALIZED_BYTES);
    str_init(&work->one, MAX_NORMALIZED_BYTES);
    str_init(&work->two, MAX_NORMALIZED_BYTES);
    str_init(&work->word, MAX_NORMALIZED_BYTES);
    return work;
}

void tokenizer_release_workspace(const struct tokenizer *tokenizer,
                                 struct tokenizer_workspace *work)
{
    struct tokenizer *t = (struct tokenizer *)tokenizer;
    pthread_mutex_lock(&t->mutex);
    bool keep = t->idle_count < TOKENIZER_MAX_IDLE;
    if (keep) {
        work->next = t->idle;
        t->idle = work;
        t->idle_count++;
    }
    pthread_mutex_unlock(&t->mutex);
    if (!keep)
        close_workspace(work);
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t)
        return;
    while (t->idle) {
        struct tokenizer_workspace *work = t->idle;
        t->idle = work->next;
        close_workspace(work);
    }
    pthread_mutex_destroy(&t->mutex);
    normalizer_close(&t->normalizer);
    splitter_close(&t->splitter);
    decoder_close(&t->decoder);
    spm_close(t->spm);
    arena_close(t->arena);
    free(t->name);
    free(t);
}

int32_t tokenizer_vocabulary(const struct tokenizer *tokenizer)
{
    return tokenizer->vocab.size;
}

int tokenizer_check_fits(const struct tokenizer *tokenizer, int64_t vocabulary, struct error *err)
{
    int32_t highest = tokenizer->vocab.size - 1;
    if (highest < vocabulary)
        return 0;
    return error_set(err, ERR_INPUT,
                     "%s: its highest id is %d (\"%.40s\"), but the model has ids 0 .. %lld only: "
                     "give the tokenizer that belongs to the model, or a vocab_size of at least %d",
                     tokenizer->name, highest, tokenizer->vocab.pieces[highest].text,
                     (long long)vocabulary - 1, highest + 1);
}

struct tokenizer_special tokenizer_special(const struct tokenizer *tokenizer)
{
    return tokenizer->special;
}

const char *tokenizer_piece(const struct tokenizer *tokenizer, int32_t id, size_t *ret_bytes)
{
    if (id < 0 || id >= tokenizer->vocab.size || !tokenizer->vocab.pieces[id].text)
        return NULL;
    *ret_bytes = tokenizer->vocab.pieces[id].bytes;
    return tokenizer->vocab.pieces[id].text;
}

/* ---- encoding ---- */

struct encoding {
    const struct tokenizer *tokenizer;
    struct tokenizer_workspace *work;
    struct tokens *out;
    struct error *err;
};

static int take_word(void *ctx, const char *word, size_t bytes, struct error *err)
{
    const struct encoding *e = ctx;
    const struct tokenizer *t = e->tokenizer;
    if (t->unigram)
        return unigram_encode(t->unigram, e->work->unigram, word, bytes, e->out, err);
    if (t->bpe)
        return bpe_encode(t->bpe, e->work->bpe, word, bytes, e->out, err);
    wordpiece_encode(t->wordpiece, &e->work->word, word, bytes, e->out);
    return 0;
}

static int encode_plain(struct encoding *e, const char *text, size_t bytes, bool first)
{
    const struct tokenizer *t = e->tokenizer;
    if (t->spm)
        return spm_encode(t->spm,
                          &(struct spm_workspace){e->work->unigram, e->work->bpe, &e->work->word},
                          text, bytes, e->out, e->err);
    return splitter_run(&t->splitter, &e->work->splitter, text, bytes, first, take_word, e, e->err);
}

/* A stretch of text between added tokens: normalizes it, looks for those that are in there then. */
static int encode_normalized(struct encoding *e, const char *text, size_t bytes, bool first)
{
    const struct tokenizer *t = e->tokenizer;
    if (normalizer_run(&t->normalizer, e->work->pattern, &e->work->one, &e->work->two, &text,
                       &bytes, e->err) < 0)
        return -1;
    struct added_walk walk;
    struct added_piece piece;
    added_walk_init(&walk, &t->added_normalized, text, bytes);
    while (added_walk_next(&walk, &piece)) {
        if (piece.id >= 0)
            tokens_add(e->out, piece.id);
        else if (encode_plain(e, text + piece.begin, piece.end - piece.begin,
                              first && piece.begin == 0) < 0)
            return -1;
    }
    return 0;
}

static int encode(struct encoding *e, const char *text, size_t bytes)
{
    /* As Python's errors="replace": what reaches the model was text there. */
    if (utf8_well_formed(text, bytes) < bytes) {
        str_clear(&e->work->repaired);
        utf8_repair(text, bytes, &e->work->repaired);
        text = str_text(&e->work->repaired);
        bytes = e->work->repaired.length;
    }
    struct added_walk walk;
    struct added_piece piece;
    added_walk_init(&walk, &e->tokenizer->added, text, bytes);
    while (added_walk_next(&walk, &piece)) {
        if (piece.id >= 0)
            tokens_add(e->out, piece.id);
        else if (encode_normalized(e, text + piece.begin, piece.end - piece.begin,
                                   piece.begin == 0) < 0)
            return -1;
    }
    return 0;
}

int tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t bytes,
                     bool add_special, struct tokens *out, struct error *err)
{
    if (bytes > TOKENIZER_MAX_TEXT_BYTES)
        return error_set(err, ERR_LIMIT, "a text of %zu bytes; at most %d: give it in parts", bytes,
                         TOKENIZER_MAX_TEXT_BYTES);
    const struct spec_template *around = &tokenizer->around;
    struct encoding e = {tokenizer, tokenizer_acquire_workspace(tokenizer), out, err};
    if (add_special)
        tokens_add_many(out, around->before, around->before_count);
    int result = encode(&e, text, bytes);
    if (result == 0 && add_special)
        tokens_add_many(out, around->after, around->after_count);
    tokenizer_release_workspace(tokenizer, e.work);
    return result;
}

/* ---- decoding ---- */

static int decode_pieces(const struct tokenizer *t, const int32_t *ids, size_t count,
                         bool skip_special, struct str *out, struct error *err)
{
    auto_free struct decoder_piece *pieces = xmalloc(count * sizeof *pieces);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!skip_special || !t->is_special[ids[i]])
            pieces[kept++] =
                (struct decoder_piece){t->vocab.pieces[ids[i]].text, t->vocab.pieces[ids[i]].bytes};
    struct tokenizer_workspace *work = tokenizer_acquire_workspace(t);
    int result = decoder_run(&t->decoder, work->pattern, pieces, kept, out, err);
    tokenizer_release_workspace(t, work);
    return result;
}

/* The model decodes what lies between added tokens, which it does not know. */
static void decode_sentencepiece(const struct tokenizer *t, const int32_t *ids, size_t count,
                                 bool skip_special, struct str *out)
{
    int32_t size = spm_size(t->spm);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin; end < count && ids[end] < size; end++) {
        }
        if (end > begin)
            spm_decode(t->spm, ids + begin, end - begin, out);
        if (end == begin) {
            const struct vocab_piece *piece = &t->vocab.pieces[ids[end++]];
            if (!skip_special || !t->is_special[ids[begin]])
                str_add_bytes(out, piece->text, piece->bytes);
        }
    }
}

int tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                     bool skip_special, struct str *out, struct error *err)
{
    size_t bytes;
    for (size_t i = 0; i < count; i++)
        if (!tokenizer_piece(tokenizer, ids[i], &bytes))
            return error_set(err, ERR_INPUT, "id %d, the one at place %zu: no piece of %s has it",
                             ids[i], i, tokenizer->name);
    if (!tokenizer->spm)
        return decode_pieces(tokenizer, ids, count, skip_special, out, err);
    decode_sentencepiece(tokenizer, ids, count, skip_special, out);
    return out->truncated
               ? error_set(err, ERR_LIMIT, "the text of %zu ids is longer than %zu bytes", count,
                           out->cap)
               : 0;
}
