#include "agent/text/spm_pairs.h"

#include "agent/text/bpe.h"
#include "agent/text/bpe_pairs.h"
#include "agent/text/spm.h"
#include "agent/text/spm_proto.h"
#include "agent/text/utf8.h"
#include "agent/text/vocab.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { CHARACTERS = 0x110000 };

struct building {
    struct arena *arena;
    const struct spm_proto *proto;
    struct vocab symbols; /* pieces that may merge, bytes, and characters that are no piece */
    uint32_t *scores;     /* [score_count], as numbers that grow with them; descending */
    int32_t score_count;
    struct bpe_pair *pairs; /* owned */
    size_t pair_count, pair_capacity;
};

/* ---- ranks ---- */

/* A number that grows as the score does; -0.0 and 0.0 are one score, with other bits. */
static uint32_t score_key(float score)
{
    uint32_t bits;
    score += 0.0F;
    memcpy(&bits, &score, sizeof bits);
    /* The order of floats as integers: the sign bit turned, and of negative numbers all bits, as
     * they grow downwards. */
    return bits >> 31 ? ~bits : bits | 1U << 31;
}

static int descending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static void sort_scores(struct building *b)
{
    b->scores = arena_array(b->arena, uint32_t, b->proto->piece_count);
    for (int32_t id = 0; id < b->proto->piece_count; id++)
        b->scores[id] = score_key(b->proto->pieces[id].score);
    qsort(b->scores, (size_t)b->proto->piece_count, sizeof *b->scores, descending);
    for (int32_t i = 0; i < b->proto->piece_count; i++)
        if (i == 0 || b->scores[i] != b->scores[b->score_count - 1])
            b->scores[b->score_count++] = b->scores[i];
}

static int32_t rank_of(const struct building *b, float score)
{
    uint32_t key = score_key(score);
    int32_t low = 0, high = b->score_count;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (b->scores[middle] > key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- symbols ---- */

/* Marks the characters of pieces that merge, less those that are a piece; returns how many. */
static int32_t mark_characters(const struct building *b, uint8_t *marks)
{
    int32_t count = 0;
    uint32_t character;
    for (int32_t id = 0; id < b->proto->piece_count; id++) {
        const struct spm_text *text = &b->proto->pieces[id].text;
        for (size_t at = 0; b->proto->pieces[id].type == SPM_NORMAL && at < text->bytes;) {
            at += utf8_decode(text->text + at, text->bytes - at, &character);
            marks[character] = 1;
        }
    }
    for (int32_t id = 0; id < b->proto->piece_count; id++) {
        const struct spm_text *text = &b->proto->pieces[id].text;
        bool is_one = utf8_decode(text->text, text->bytes, &character) == text->bytes;
        if (b->proto->pieces[id].type == SPM_NORMAL && is_one)
            marks[character] = 0;
    }
    for (size_t i = 0; i < CHARACTERS; i++)
        count += marks[i];
    return count;
}

static int add_symbols(struct building *b, struct error *err)
{
    auto_free uint8_t *marks = xcalloc(CHARACTERS, 1);
    int32_t own = b->proto->piece_count, more = mark_characters(b, marks);
    if (own > VOCAB_MAX_IDS - more)
        return error_set(err, ERR_LIMIT, "%d pieces and %d characters that are none", own, more);
    vocab_init(&b->symbols, b->arena, own + more, (size_t)(own + more));
    for (int32_t id = 0; id < own; id++) {
        const struct spm_piece *piece = &b->proto->pieces[id];
        if (piece->type != SPM_NORMAL && piece->type != SPM_BYTE)
            continue;
        if (vocab_add(&b->symbols, piece->text.text, piece->text.bytes, id, err) < 0)
            return -1;
    }
    for (uint32_t character = 0; character < CHARACTERS; character++)
        if (marks[character]) {
            char text[UTF8_MAX_BYTES];
            size_t bytes = utf8_encode(character, text);
            if (vocab_add(&b->symbols, arena_strndup(b->arena, text, bytes), bytes, own++, err) < 0)
                return -1;
        }
    return 0;
}

/* ---- pairs ---- */

static int add_pair(struct building *b, const struct bpe_pair *pair, struct error *err)
{
    if (b->pair_count == SPM_MAX_BPE_PAIRS)
        return error_set(err, ERR_LIMIT, "more than %d merges", SPM_MAX_BPE_PAIRS);
    if (b->pair_count == b->pair_capacity) {
        b->pair_capacity = b->pair_capacity ? 2 * b->pair_capacity : 1024;
        b->pairs = xrealloc(b->pairs, b->pair_capacity * sizeof *b->pairs);
    }
    b->pairs[b->pair_count++] = *pair;
    return 0;
}

/* SentencePiece's BPE has no list of merges: any two neighbours whose texts together are a piece
 * may merge, the best score first. So each cut of a piece into two symbols is a pair. */
static int add_pairs_of(struct building *b, int32_t id, struct error *err)
{
    const struct spm_piece *piece = &b->proto->pieces[id];
    const char *text = piece->text.text;
    size_t bytes = piece->text.bytes;
    uint32_t ignored;
    if (piece->type == SPM_UNUSED && *text)
        return error_set(err, ERR_UNSUPPORTED, "piece %d, \"%.40s\": unused ones of BPE", id, text);
    if (piece->type != SPM_NORMAL)
        return 0;
    if (bytes > SPM_MAX_BPE_PIECE_BYTES)
        return error_set(err, ERR_LIMIT, "piece %d has %zu bytes; of BPE at most %d work", id,
                         bytes, SPM_MAX_BPE_PIECE_BYTES);
    struct bpe_pair pair = {.rank = rank_of(b, piece->score), .merged = id};
    for (size_t at = utf8_decode(text, bytes, &ignored); at < bytes;
         at += utf8_decode(text + at, bytes - at, &ignored)) {
        pair.left = vocab_find(&b->symbols, text, at);
        pair.right = vocab_find(&b->symbols, text + at, bytes - at);
        bool works = pair.left >= 0 && pair.right >= 0;
        if (works && add_pair(b, &pair, err) < 0)
            return -1;
    }
    return 0;
}

static int build(struct building *b, int unk, struct bpe **ret_bpe, struct error *err)
{
    sort_scores(b);
    if (add_symbols(b, err) < 0)
        return -1;
    for (int32_t id = 0; id < b->proto->piece_count; id++)
        if (add_pairs_of(b, id, err) < 0)
            return -1;
    struct vocab *symbols = arena_new(b->arena, struct vocab);
    *symbols = b->symbols;
    const struct bpe_parts parts = {
        .symbols = symbols,
        .own = b->proto->piece_count,
        .pairs = b->pairs,
        .pair_count = b->pair_count,
        .unk = unk,
        .byte_fallback = b->proto->byte_fallback,
    };
    *ret_bpe = bpe_open_parts(&parts);
    return 0;
}

int spm_pairs_open(struct arena *arena, const struct spm_proto *proto, int unk,
                   struct bpe **ret_bpe, struct error *err)
{
    struct building b = {.arena = arena, .proto = proto};
    int result = build(&b, unk, ret_bpe, err);
    free(b.pairs);
    return result;
}
