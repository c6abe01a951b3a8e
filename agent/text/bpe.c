/* A word becomes a chain of symbols, one per character; the pairs that can merge wait in a heap
 * ordered by (rank, slot). A pair in the heap whose symbols have changed since is skipped when it
 * comes up, so merging costs n log n. Words that were spelled lately are remembered. */
#include "agent/text/bpe.h"

#include "agent/text/bpe_pairs.h"
#include "agent/text/byte_alphabet.h"
#include "agent/text/spec.h"
#include "agent/text/utf8.h"
#include "agent/text/vocab.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    CACHE_WORDS = 1 << 14, /* a word's hash tells its only slot */
    CACHE_WORD_BYTES = 31,
    CACHE_WORD_IDS = 8,
};

struct bpe {
    const struct vocab *vocab;
    struct bpe_pairs pairs;
    bool byte_level, byte_fallback, fuse_unk, ignore_merges;
    int32_t unk;           /* -1: what has no piece is dropped */
    int32_t own;           /* of SentencePiece: what bpe_parts says; else 0 */
    int32_t byte_ids[256]; /* of the pieces <0x00> .. <0xFF>; -1: none */
    const char *prefix;    /* of all characters but a word's first; NULL: none */
    const char *suffix;    /* of a word's last character; NULL: none */
};

struct symbol {
    int32_t id;             /* -1: it went into the one before */
    int32_t previous, next; /* -1: none */
};

/* A pair that can merge. */
struct candidate {
    uint64_t order; /* rank, then slot of its left symbol */
    int32_t merged;
};

struct cached {
    uint8_t bytes, ids; /* bytes 0: empty */
    char word[CACHE_WORD_BYTES];
    int32_t id[CACHE_WORD_IDS];
};

struct bpe_workspace {
    struct str spelled; /* the word in the byte alphabet */
    struct str piece;   /* a character with prefix or suffix */
    struct symbol *symbols;
    struct candidate *heap;
    size_t symbol_count, symbol_capacity, heap_count, heap_capacity;
    struct cached *cache; /* [CACHE_WORDS] */
};

/* ---- building ---- */

static int32_t find_text(const struct vocab *vocab, const char *text)
{
    return vocab_find(vocab, text, strlen(text));
}

static int add_merge(struct bpe *bpe, const struct spec_merge *merge, size_t rank,
                     struct str *merged, struct error *err)
{
    size_t skip = bpe->prefix ? strlen(bpe->prefix) : 0;
    if (skip > strlen(merge->right))
        return error_set(err, ERR_INPUT, "model.merges[%zu]: %.40s is shorter than the prefix %s",
                         rank, merge->right, bpe->prefix);
    str_clear(merged);
    str_printf(merged, "%s%s", merge->left, merge->right + skip);
    struct bpe_pair pair = {
        .left = find_text(bpe->vocab, merge->left),
        .right = find_text(bpe->vocab, merge->right),
        .rank = (int32_t)rank,
        .merged = vocab_find(bpe->vocab, str_text(merged), merged->length),
    };
    if (pair.left < 0 || pair.right < 0 || pair.merged < 0)
        return error_set(err, ERR_INPUT, "model.merges[%zu]: piece %.80s is not in model.vocab",
                         rank,
                         pair.left < 0    ? merge->left
                         : pair.right < 0 ? merge->right
                                          : str_text(merged));
    bpe_pairs_set(&bpe->pairs, &pair);
    return 0;
}

static void find_bytes(struct bpe *bpe)
{
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        bpe->byte_ids[byte] = find_text(bpe->vocab, name);
    }
}

int bpe_open(const struct spec *spec, const struct vocab *vocab, bool byte_level,
             struct bpe **ret_bpe, struct error *err)
{
    struct bpe *bpe = arena_new(vocab->arena, struct bpe);
    *bpe = (struct bpe){
        .vocab = vocab,
        .byte_level = byte_level,
        .byte_fallback = spec->byte_fallback,
        .fuse_unk = spec->fuse_unk,
        .ignore_merges = spec->ignore_merges,
        .unk = spec->unk_token ? find_text(vocab, spec->unk_token) : -1,
        .prefix = spec->continuing_subword_prefix && *spec->continuing_subword_prefix
                      ? spec->continuing_subword_prefix
                      : NULL,
        .suffix =
            spec->end_of_word_suffix && *spec->end_of_word_suffix ? spec->end_of_word_suffix : NULL,
    };
    if (spec->unk_token && *spec->unk_token && bpe->unk < 0)
        return error_set(err, ERR_INPUT, "model.unk_token: %.80s is not in model.vocab",
                         spec->unk_token);
    find_bytes(bpe);
    if (spec->merge_count > INT32_MAX / 2)
        return error_set(err, ERR_INPUT, "model.merges: too many");
    bpe_pairs_init(&bpe->pairs, vocab->arena, spec->merge_count);
    auto_str struct str merged;
    str_init(&merged, 4 * VOCAB_MAX_PIECE_BYTES);
    for (size_t i = 0; i < spec->merge_count; i++)
        if (add_merge(bpe, &spec->merges[i], i, &merged, err) < 0)
            return -1;
    *ret_bpe = bpe;
    return 0;
}

struct bpe *bpe_open_parts(const struct bpe_parts *parts)
{
    struct bpe *bpe = arena_new(parts->symbols->arena, struct bpe);
    *bpe = (struct bpe){.vocab = parts->symbols,
                        .byte_fallback = parts->byte_fallback,
                        .unk = parts->unk,
                        .own = parts->own};
    find_bytes(bpe);
    bpe_pairs_init(&bpe->pairs, parts->symbols->arena, parts->pair_count);
    for (size_t i = 0; i < parts->pair_count; i++)
        bpe_pairs_set(&bpe->pairs, &parts->pairs[i]);
    return bpe;
}

struct bpe_workspace *bpe_workspace_open(void)
{
    struct bpe_workspace *work = xcalloc(1, sizeof *work);
    str_init(&work->spelled, 2 * (size_t)BPE_MAX_WORD_BYTES);
    str_init(&work->piece, 4 * VOCAB_MAX_PIECE_BYTES);
    work->cache = xcalloc(CACHE_WORDS, sizeof *work->cache);
    return work;
}

void bpe_workspace_close(struct bpe_workspace *work)
{
    if (!work)
        return;
    str_free(&work->spelled);
    str_free(&work->piece);
    free(work->symbols);
    free(work->heap);
    free(work->cache);
    free(work);
}

/* ---- a word as symbols ---- */

static void add_symbol(struct bpe_workspace *work, int32_t id)
{
    if (work->symbol_count == work->symbol_capacity) {
        work->symbol_capacity = work->symbol_capacity ? 2 * work->symbol_capacity : 64;
        work->symbols = xrealloc(work->symbols, work->symbol_capacity * sizeof *work->symbols);
    }
    int32_t at = (int32_t)work->symbol_count++;
    work->symbols[at] = (struct symbol){.id = id, .previous = at - 1, .next = at + 1};
}

/* The id of a character that has these places in its word. */
static int32_t find_character(const struct bpe *bpe, struct bpe_workspace *work, const char *text,
                              size_t bytes, bool first, bool last)
{
    bool prefix = bpe->prefix && !first, suffix = bpe->suffix && last;
    if (!prefix && !suffix)
        return vocab_find(bpe->vocab, text, bytes);
    str_clear(&work->piece);
    if (prefix)
        str_add(&work->piece, bpe->prefix);
    str_add_bytes(&work->piece, text, bytes);
    if (suffix)
        str_add(&work->piece, bpe->suffix);
    return vocab_find(bpe->vocab, work->piece.text, work->piece.length);
}

/* Whether each byte of the text has a piece of its own; adds them then. The library that wrote the
 * file falls back on prefix and suffix too; no model has both these and bytes. */
static bool add_bytes(const struct bpe *bpe, struct bpe_workspace *work, const char *text,
                      size_t bytes)
{
    if (!bpe->byte_fallback)
        return false;
    for (size_t i = 0; i < bytes; i++)
        if (bpe->byte_ids[(uint8_t)text[i]] < 0)
            return false;
    for (size_t i = 0; i < bytes; i++)
        add_symbol(work, bpe->byte_ids[(uint8_t)text[i]]);
    return true;
}

static void make_symbols(const struct bpe *bpe, struct bpe_workspace *work, const char *word,
                         size_t bytes)
{
    bool unknown = false; /* an unknown one waits for what comes next: it may be joined to it */
    work->symbol_count = 0;
    for (size_t at = 0, length; at < bytes; at += length) {
        uint32_t character;
        length = utf8_decode(word + at, bytes - at, &character);
        assert(length > 0);
        int32_t id = find_character(bpe, work, word + at, length, at == 0, at + length == bytes);
        if (id < 0 && add_bytes(bpe, work, word + at, length))
            continue;
        if (id < 0 && bpe->unk < 0)
            continue;
        if (unknown && (id >= 0 || !bpe->fuse_unk))
            add_symbol(work, bpe->unk);
        unknown = id < 0;
        if (id >= 0)
            add_symbol(work, id);
    }
    if (unknown)
        add_symbol(work, bpe->unk);
    if (work->symbol_count > 0)
        work->symbols[work->symbol_count - 1].next = -1;
}

/* ---- merging ---- */

static void sift_up(struct candidate *heap, size_t at, struct candidate candidate)
{
    while (at > 0 && heap[(at - 1) / 2].order > candidate.order) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = candidate;
}

static struct candidate take_first(struct bpe_workspace *work)
{
    struct candidate *heap = work->heap, first = heap[0], last = heap[--work->heap_count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < work->heap_count) {
        child += child + 1 < work->heap_count && heap[child + 1].order < heap[child].order;
        if (heap[child].order >= last.order)
            break;
        heap[at] = heap[child];
        at = child;
    }
    if (work->heap_count > 0)
        heap[at] = last;
    return first;
}

/* Puts the pair that begins at a symbol into the heap, if it merges. */
static void consider(const struct bpe *bpe, struct bpe_workspace *work, int32_t left)
{
    const struct symbol *symbol = &work->symbols[left];
    if (symbol->next < 0)
        return;
    const struct bpe_pair *pair =
        bpe_pairs_find(&bpe->pairs, symbol->id, work->symbols[symbol->next].id);
    if (!pair)
        return;
    if (work->heap_count == work->heap_capacity) {
        work->heap_capacity = work->heap_capacity ? 2 * work->heap_capacity : 64;
        work->heap = xrealloc(work->heap, work->heap_capacity * sizeof *work->heap);
    }
    uint64_t order = (uint64_t)(uint32_t)pair->rank << 32 | (uint32_t)left;
    sift_up(work->heap, work->heap_count++, (struct candidate){order, pair->merged});
}

static void merge(const struct bpe *bpe, struct bpe_workspace *work)
{
    struct symbol *symbols = work->symbols;
    work->heap_count = 0;
    for (size_t i = 0; i < work->symbol_count; i++)
        consider(bpe, work, (int32_t)i);
    while (work->heap_count > 0) {
        struct candidate best = take_first(work);
        int32_t at = (int32_t)(uint32_t)best.order;
        struct symbol *left = &symbols[at];
        if (left->id < 0 || left->next < 0)
            continue;
        struct symbol *right = &symbols[left->next];
        const struct bpe_pair *pair = bpe_pairs_find(&bpe->pairs, left->id, right->id);
        if (!pair || pair->merged != best.merged)
            continue; /* one of the two has grown since */
        left->id = best.merged;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0)
            symbols[left->next].previous = at;
        if (left->previous >= 0)
            consider(bpe, work, left->previous);
        consider(bpe, work, at);
    }
}

/* ---- words ---- */

static struct cached *cache_slot(const struct bpe_workspace *work, const char *word, size_t bytes)
{
    return bytes <= CACHE_WORD_BYTES ? &work->cache[XXH3_64bits(word, bytes) % CACHE_WORDS] : NULL;
}

/* SentencePiece's: a character that no merge took is unknown only now. */
static void add_known(const struct bpe *bpe, const struct bpe_workspace *work, struct tokens *out)
{
    bool after_unknown = false;
    for (size_t i = 0; i < work->symbol_count; i++) {
        int32_t id = work->symbols[i].id;
        if (id < 0)
            continue;
        bool is_unknown = id == bpe->unk || id >= bpe->own;
        const struct vocab_piece *piece = &bpe->vocab->pieces[id];
        if (is_unknown && bpe->byte_fallback)
            for (size_t k = 0; k < piece->bytes; k++)
                tokens_add(out, bpe->byte_ids[(uint8_t)piece->text[k]]);
        else if (!is_unknown || !after_unknown)
            tokens_add(out, is_unknown ? bpe->unk : id);
        after_unknown = is_unknown;
    }
}

static void spell(const struct bpe *bpe, struct bpe_workspace *work, const char *word, size_t bytes,
                  struct tokens *out)
{
    if (bpe->byte_level) {
        str_clear(&work->spelled);
        byte_alphabet_spell(word, bytes, &work->spelled);
        assert(!work->spelled.truncated);
        word = work->spelled.text;
        bytes = work->spelled.length;
    }
    int32_t whole = bpe->ignore_merges ? vocab_find(bpe->vocab, word, bytes) : -1;
    if (whole >= 0) {
        tokens_add(out, whole);
        return;
    }
    make_symbols(bpe, work, word, bytes);
    merge(bpe, work);
    if (bpe->own > 0) {
        add_known(bpe, work, out);
        return;
    }
    for (size_t i = 0; i < work->symbol_count; i++)
        if (work->symbols[i].id >= 0)
            tokens_add(out, work->symbols[i].id);
}

int bpe_encode(const struct bpe *bpe, struct bpe_workspace *work, const char *word, size_t bytes,
               struct tokens *out, struct error *err)
{
    assert(bytes > 0);
    if (bytes > BPE_MAX_WORD_BYTES)
        return error_set(err, ERR_LIMIT,
                         "a word of %zu bytes; at most %d: the tokenizer does not cut at spaces, "
                         "so give it shorter texts",
                         bytes, BPE_MAX_WORD_BYTES);
    struct cached *slot = cache_slot(work, word, bytes);
    if (slot && slot->bytes == bytes && memcmp(slot->word, word, bytes) == 0) {
        tokens_add_many(out, slot->id, slot->ids);
        return 0;
    }
    size_t before = out->count;
    spell(bpe, work, word, bytes, out);
    size_t ids = out->count - before;
    if (slot && ids <= CACHE_WORD_IDS) {
        slot->bytes = (uint8_t)bytes;
        slot->ids = (uint8_t)ids;
        memcpy(slot->word, word, bytes);
        for (size_t i = 0; i < ids; i++)
            slot->id[i] = out->ids[before + i];
    }
    return 0;
}
