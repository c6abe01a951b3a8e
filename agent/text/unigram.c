/* The pieces are a trie: node 0 is the empty text, a pair (node, byte) leads to the node one byte
 * further, and its rank is the id of the piece that ends there. */
#include "agent/text/unigram.h"

#include "agent/text/bpe_pairs.h"
#include "agent/text/spec.h"
#include "agent/text/utf8.h"
#include "agent/text/vocab.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SentencePiece begins to count anew where a sum is beyond it: single precision has few digits. */
static const double most_in_single = 100000;

struct unigram {
    const struct vocab *vocab;
    int32_t pieces; /* ids below are the model's own */
    struct bpe_pairs trie;
    const double *scores; /* by id */
    double unknown_score;
    size_t longest; /* bytes of a piece, or of a character */
    int32_t unk;
    int32_t byte_ids[256]; /* of the pieces <0x00> .. <0xFF>; -1: none */
    bool byte_fallback, is_sentencepiece;
};

/* The best way to spell the word up to here: its sum, and its last piece. */
struct best_path {
    double score;
    int32_t id;     /* -1: there is none yet */
    uint32_t begin; /* where that piece begins */
};

struct unigram_workspace {
    struct best_path *paths; /* [word's bytes + 1] */
    size_t capacity;
};

/* ---- building ---- */

static void add_piece(struct unigram *u, const struct spec_piece *piece, int32_t *nodes)
{
    int32_t node = 0;
    for (const char *at = piece->text; *at; at++) {
        struct bpe_pair next = {.left = node, .right = (uint8_t)*at, .rank = -1};
        const struct bpe_pair *known = bpe_pairs_find(&u->trie, next.left, next.right);
        if (known)
            next = *known;
        else
            next.merged = ++*nodes;
        if (!at[1])
            next.rank = piece->id;
        bpe_pairs_set(&u->trie, &next);
        node = next.merged;
    }
}

static void find_byte_pieces(struct unigram *u)
{
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        u->byte_ids[byte] = vocab_find(u->vocab, name, strlen(name));
    }
}

int unigram_open_parts(const struct unigram_parts *parts, const struct vocab *vocab,
                       struct unigram **ret_unigram, struct error *err)
{
    size_t bytes = 0, longest = UTF8_MAX_BYTES;
    for (size_t i = 0; i < parts->piece_count; i++) {
        size_t length = strlen(parts->pieces[i].text);
        bytes += length;
        longest = length > longest ? length : longest;
    }
    if (bytes > UNIGRAM_MAX_PIECES_BYTES)
        return error_set(err, ERR_INPUT, "model.vocab: pieces of %zu bytes together; at most %d",
                         bytes, UNIGRAM_MAX_PIECES_BYTES);
    struct unigram *u = arena_new(vocab->arena, struct unigram);
    double *scores = arena_array(vocab->arena, double, vocab->size);
    *u = (struct unigram){.vocab = vocab,
                          .scores = scores,
                          .longest = longest,
                          .unknown_score = parts->unknown_score,
                          .unk = parts->unk,
                          .byte_fallback = parts->byte_fallback,
                          .is_sentencepiece = parts->is_sentencepiece};
    bpe_pairs_init(&u->trie, vocab->arena, bytes);
    int32_t nodes = 0;
    for (size_t i = 0; i < parts->piece_count; i++) {
        add_piece(u, &parts->pieces[i], &nodes);
        scores[parts->pieces[i].id] = parts->pieces[i].score;
        if (parts->pieces[i].id >= u->pieces)
            u->pieces = parts->pieces[i].id + 1;
    }
    find_byte_pieces(u);
    *ret_unigram = u;
    return 0;
}

int unigram_open(const struct spec *spec, const struct vocab *vocab, struct unigram **ret_unigram,
                 struct error *err)
{
    double worst = 0;
    for (size_t i = 0; i < spec->piece_count; i++)
        if (i == 0 || spec->pieces[i].score < worst)
            worst = spec->pieces[i].score;
    if (spec->unk_id < 0 || spec->unk_id >= (int64_t)spec->piece_count)
        return error_set(
            err, ERR_INPUT,
            "model.unk_id: must be there, and within 0 and %zu, the ids of model.vocab",
            spec->piece_count - 1);
    const struct unigram_parts parts = {
        .pieces = spec->pieces,
        .piece_count = spec->piece_count,
        .unknown_score = worst - UNIGRAM_UNKNOWN_PENALTY,
        .unk = (int32_t)spec->unk_id,
        .byte_fallback = spec->byte_fallback,
    };
    return unigram_open_parts(&parts, vocab, ret_unigram, err);
}

struct unigram_workspace *unigram_workspace_open(void)
{
    return xcalloc(1, sizeof(struct unigram_workspace));
}

void unigram_workspace_close(struct unigram_workspace *work)
{
    if (!work)
        return;
    free(work->paths);
    free(work);
}

/* ---- encoding ---- */

/* Viterbi's step: of all spellings that end here only the best can begin a best one. */
static void offer(struct best_path *path, double score, int32_t id, size_t begin)
{
    if (path->id < 0 || score > path->score)
        *path = (struct best_path){score, id, (uint32_t)begin};
}

/* SentencePiece adds in single precision, the tokenizers library in double: near ties come out
 * differently. */
static double sum(const struct unigram *u, double till_here, double score)
{
    double sum = till_here + score;
    return u->is_sentencepiece ? (double)(float)sum : sum;
}

/* Places from `at` on count from there. */
static void count_anew(const struct unigram *u, struct best_path *paths, size_t bytes, size_t at)
{
    double offset = paths[at].score;
    size_t last = bytes - at < u->longest ? bytes : at + u->longest;
    if (offset >= -most_in_single && offset <= most_in_single)
        return;
    for (size_t i = at; i <= last; i++)
        if (i == at || paths[i].id >= 0)
            paths[i].score = (double)(float)(paths[i].score - offset);
}

/* Offers the pieces that begin at `at` to the paths where they end. */
static void spell_from(const struct unigram *u, struct best_path *paths, const char *word,
                       size_t bytes, size_t at, size_t character)
{
    if (u->is_sentencepiece)
        count_anew(u, paths, bytes, at);
    double till_here = paths[at].score;
    bool has_character = false;
    int32_t node = 0;
    for (size_t end = at; end < bytes; end++) {
        const struct bpe_pair *next = bpe_pairs_find(&u->trie, node, (uint8_t)word[end]);
        if (!next)
            break;
        node = next->merged;
        if (next->rank < 0)
            continue;
        offer(&paths[end + 1], sum(u, till_here, u->scores[next->rank]), next->rank, at);
        has_character |= end + 1 == at + character;
    }
    /* Every character can be spelled, by the unknown piece if need be: each offset is reached. */
    if (!has_character)
        offer(&paths[at + character], sum(u, till_here, u->unknown_score), u->unk, at);
}

static bool bytes_have_pieces(const struct unigram *u, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (u->byte_ids[(uint8_t)text[i]] < 0)
            return false;
    return true;
}

/* The text may be a piece after all: the unknown piece spelled out, or several characters that have
 * none but together do. */
static void add_unknown(const struct unigram *u, const char *text, size_t bytes, struct tokens *out)
{
    int32_t id = u->is_sentencepiece ? -1 : vocab_find(u->vocab, text, bytes);
    bool is_piece = id >= 0 && id < u->pieces;
    if (is_piece || !u->byte_fallback || !bytes_have_pieces(u, text, bytes)) {
        tokens_add(out, is_piece ? id : u->unk);
        return;
    }
    for (size_t i = 0; i < bytes; i++)
        tokens_add(out, u->byte_ids[(uint8_t)text[i]]);
}

/* Turns the way back round: paths[begin].begin becomes the end of the piece that begins there. */
static void reverse(struct best_path *paths, size_t bytes)
{
    size_t end = bytes;
    struct best_path last = paths[end];
    while (end > 0) {
        size_t begin = last.begin;
        struct best_path before = paths[begin];
        paths[begin] = (struct best_path){.id = last.id, .begin = (uint32_t)end};
        last = before;
        end = begin;
    }
}

static void add_pieces(const struct unigram *u, const struct best_path *paths, const char *word,
                       size_t bytes, struct tokens *out)
{
    for (size_t at = 0, end; at < bytes; at = end) {
        end = paths[at].begin;
        if (paths[at].id != u->unk) {
            tokens_add(out, paths[at].id);
            continue;
        }
        while (end < bytes && paths[end].id == u->unk)
            end = paths[end].begin;
        add_unknown(u, word + at, end - at, out);
    }
}

int unigram_encode(const struct unigram *unigram, struct unigram_workspace *work, const char *word,
                   size_t bytes, struct tokens *out, struct error *err)
{
    if (bytes > UNIGRAM_MAX_WORD_BYTES)
        return error_set(err, ERR_LIMIT, "a word of %zu bytes; at most %d", bytes,
                         UNIGRAM_MAX_WORD_BYTES);
    if (work->capacity < bytes + 1) {
        work->capacity = 2 * (bytes + 1);
        free(work->paths);
        work->paths = xmalloc(work->capacity * sizeof *work->paths);
    }
    for (size_t i = 0; i <= bytes; i++)
        work->paths[i] = (struct best_path){.id = -1};
    uint32_t ignored;
    size_t character;
    for (size_t at = 0; at < bytes; at += character) {
        character = utf8_decode(word + at, bytes - at, &ignored);
        assert(character > 0);
        spell_from(unigram, work->paths, word, bytes, at, character);
    }
    reverse(work->paths, bytes);
    add_pieces(unigram, work->paths, word, bytes, out);
    return 0;
}
