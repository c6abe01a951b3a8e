/* The facts are those of sentencepiece 0.2.3: model_interface.cc, unigram_model.cc,
 * sentencepiece_processor.cc. */
#include "agent/text/spm.h"

#include "agent/text/bpe.h"
#include "agent/text/spec.h"
#include "agent/text/spm_normalizer.h"
#include "agent/text/spm_pairs.h"
#include "agent/text/spm_proto.h"
#include "agent/text/unigram.h"
#include "agent/text/utf8.h"
#include "agent/text/vocab.h"
#include "base/mem.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE "\xe2\x96\x81"

struct spm {
    struct arena *arena;
    struct spm_proto proto;
    struct vocab vocab;
    struct added user_pieces; /* kept whole */
    struct spm_normalizer normalizer;
    struct unigram *unigram; /* or bpe */
    struct bpe *bpe;
    int32_t unk;
    int16_t *bytes; /* [piece_count]: the byte that a piece <0xNN> is; -1: none */
};

/* ---- building ---- */

static bool has_text(const struct spm_piece *piece)
{
    return *piece->text.text != '\0'; /* an unused id may have a zero byte */
}

static int add_byte_piece(struct spm *m, int32_t id, bool *has_byte, struct error *err)
{
    const struct spm_piece *piece = &m->proto.pieces[id];
    char name[8], *end = NULL;
    long byte = piece->text.bytes == 6 ? strtol(piece->text.text + 3, &end, 16) : -1;
    snprintf(name, sizeof name, "<0x%02lX>", byte & 0xff);
    if (!m->proto.byte_fallback || strcmp(name, piece->text.text) != 0)
        return error_set(err, ERR_INPUT, "piece %d, \"%.40s\": %s", id, piece->text.text,
                         m->proto.byte_fallback ? "a byte is <0x00> .. <0xFF>"
                                                : "a byte, but the model falls back on none");
    m->bytes[id] = (int16_t)byte;
    has_byte[byte] = true;
    return 0;
}

static int add_piece(struct spm *m, int32_t id, bool *has_byte, struct error *err)
{
    const struct spm_piece *piece = &m->proto.pieces[id];
    m->bytes[id] = -1;
    if (!has_text(piece))
        return 0;
    if (vocab_add(&m->vocab, piece->text.text, piece->text.bytes, id, err) < 0)
        return -1;
    if (piece->type == SPM_UNKNOWN && m->unk >= 0)
        return error_set(err, ERR_INPUT, "pieces %d and %d are both the unknown one", m->unk, id);
    if (piece->type == SPM_UNKNOWN)
        m->unk = id;
    return piece->type == SPM_BYTE ? add_byte_piece(m, id, has_byte, err) : 0;
}

static int add_pieces(struct spm *m, struct error *err)
{
    const struct spm_proto *p = &m->proto;
    bool has_byte[256] = {false};
    int count = 0;
    m->unk = -1;
    m->bytes = arena_array(m->arena, int16_t, p->piece_count);
    vocab_init(&m->vocab, m->arena, p->piece_count, (size_t)p->piece_count);
    for (int32_t id = 0; id < p->piece_count; id++)
        if (add_piece(m, id, has_byte, err) < 0)
            return -1;
    for (int byte = 0; byte < 256; byte++)
        count += has_byte[byte];
    if (m->unk < 0)
        return error_set(err, ERR_INPUT, "no piece is the unknown one");
    if (p->byte_fallback && count < 256)
        return error_set(err, ERR_INPUT, "it falls back on bytes, but has %d of the 256", count);
    return 0;
}

static void add_user_pieces(struct spm *m)
{
    size_t count = 0;
    struct added_token *tokens = arena_array(m->arena, struct added_token, m->proto.piece_count);
    for (int32_t id = 0; id < m->proto.piece_count; id++) {
        const struct spm_piece *piece = &m->proto.pieces[id];
        if (piece->type == SPM_USER_DEFINED)
            tokens[count++] = (struct added_token){
                .text = piece->text.text, .bytes = piece->text.bytes, .id = id};
    }
    added_init(&m->user_pieces, tokens, count);
}

static int open_unigram(struct spm *m, struct error *err)
{
    const struct spm_proto *p = &m->proto;
    struct spec_piece *pieces = arena_array(m->arena, struct spec_piece, p->piece_count);
    size_t count = 0;
    /* The unknown piece's score is the worst one's less a penalty (10): it is taken only where
     * nothing else spells the text. */
    float worst = FLT_MAX;
    for (int32_t id = 0; id < p->piece_count; id++) {
        const struct spm_piece *piece = &p->pieces[id];
        bool is_user = piece->type == SPM_USER_DEFINED;
        if (piece->type == SPM_NORMAL && piece->score < worst)
            worst = piece->score;
        if (is_user || piece->type == SPM_NORMAL)
            pieces[count++] = (struct spec_piece){
                .text = piece->text.text,
                .id = id,
                /* sentencepiece's unigram_model.cc: a user-defined piece must win over any way to
                 * spell it by other pieces. */
                .score = is_user ? (double)(float)(0.1 * (double)(piece->text.bytes - 1))
                                 : (double)piece->score};
    }
    if (count == 0)
        return error_set(err, ERR_INPUT, "no piece is a normal one");
    const struct unigram_parts parts = {
        .pieces = pieces,
        .piece_count = count,
        .unknown_score = (double)(worst - (float)UNIGRAM_UNKNOWN_PENALTY),
        .unk = m->unk,
        .byte_fallback = p->byte_fallback,
        .is_sentencepiece = true,
    };
    return unigram_open_parts(&parts, &m->vocab, &m->unigram, err);
}

static int open_model(struct spm *m, const void *content, size_t bytes, struct error *err)
{
    const struct spm_proto *p = &m->proto;
    if (spm_proto_read(m->arena, content, bytes, &m->proto, err) < 0)
        return -1;
    if (p->model_type != SPM_UNIGRAM && p->model_type != SPM_BPE)
        return error_set(err, ERR_UNSUPPORTED,
                         "a SentencePiece model of words or characters (type %lld): Unigram and "
                         "BPE work",
                         (long long)p->model_type);
    if (p->has_denormalizer)
        return error_set(err, ERR_UNSUPPORTED, "denormalizer_spec: no replacements work there");
    if (add_pieces(m, err) < 0)
        return -1;
    add_user_pieces(m);
    if (spm_normalizer_open(p, &m->user_pieces, &m->normalizer, err) < 0)
        return -1;
    return p->model_type == SPM_BPE ? spm_pairs_open(m->arena, p, m->unk, &m->bpe, err)
                                    : open_unigram(m, err);
}

int spm_open(const void *content, size_t bytes, struct spm **ret_model, struct error *err)
{
    struct arena *arena = arena_open();
    struct spm *m = arena_new(arena, struct spm);
    m->arena = arena;
    if (open_model(m, content, bytes, err) < 0) {
        spm_close(m);
        return -1;
    }
    *ret_model = m;
    return 0;
}

void spm_close(struct spm *model)
{
    if (!model)
        return;
    spm_normalizer_close(&model->normalizer);
    arena_close(model->arena);
}

/* ---- what there is ---- */

int32_t spm_size(const struct spm *model)
{
    return model->proto.piece_count;
}

const char *spm_piece(const struct spm *model, int32_t id, size_t *ret_bytes)
{
    const struct spm_piece *piece = &model->proto.pieces[id];
    *ret_bytes = piece->text.bytes;
    return has_text(piece) ? piece->text.text : NULL;
}

static int32_t find_control(const struct spm *m, const struct spm_text *name, const char *usual)
{
    int32_t id = name->bytes > 0 ? vocab_find(&m->vocab, name->text, name->bytes)
                                 : vocab_find(&m->vocab, usual, strlen(usual));
    return id >= 0 && m->proto.pieces[id].type == SPM_CONTROL ? id : -1;
}

struct spm_special spm_get_special(const struct spm *model)
{
    const struct spm_proto *p = &model->proto;
    return (struct spm_special){
        .bos = find_control(model, &p->bos_piece, "<s>"),
        .eos = find_control(model, &p->eos_piece, "</s>"),
        .pad = find_control(model, &p->pad_piece, "<pad>"),
        .unk = model->unk,
    };
}

/* ---- encoding ---- */

/* BPE never merges user-defined pieces with what is beside them. */
static int encode_bpe(const struct spm *m, struct bpe_workspace *work, const struct str *text,
                      struct tokens *out, struct error *err)
{
    struct added_walk walk;
    struct added_piece piece;
    added_walk_init(&walk, &m->user_pieces, str_text(text), text->length);
    while (added_walk_next(&walk, &piece)) {
        if (piece.id >= 0)
            tokens_add(out, piece.id);
        else if (bpe_encode(m->bpe, work, text->text + piece.begin, piece.end - piece.begin, out,
                            err) < 0)
            return -1;
    }
    return 0;
}

int spm_encode(const struct spm *model, const struct spm_workspace *work, const char *text,
               size_t bytes, struct tokens *out, struct error *err)
{
    str_clear(work->text);
    spm_normalize(&model->normalizer, text, bytes, work->text);
    if (work->text->truncated)
        return error_set(err, ERR_LIMIT, "a text of %zu bytes becomes longer than %zu", bytes,
                         work->text->cap);
    if (work->text->length == 0)
        return 0;
    if (model->bpe)
        return encode_bpe(model, work->bpe, work->text, out, err);
    return unigram_encode(model->unigram, work->unigram, work->text->text, work->text->length, out,
                          err);
}

/* ---- decoding ---- */

/* Bytes that are no character are U+FFFD, each. */
static size_t add_bytes(const struct spm *m, const int32_t *ids, size_t count, struct str *out)
{
    char bytes[UTF8_MAX_BYTES];
    size_t have = 0;
    uint32_t ignored;
    while (have < count && have < UTF8_MAX_BYTES && m->bytes[ids[have]] >= 0) {
        bytes[have] = (char)m->bytes[ids[have]];
        have++;
    }
    size_t length = utf8_decode(bytes, have, &ignored);
    if (length > 0)
        str_add_bytes(out, bytes, length);
    else
        str_add(out, UTF8_REPLACEMENT);
    return length > 0 ? length : 1;
}

static void add_text(const struct spm_text *piece, bool drops_space, struct str *out)
{
    const char *at = piece->text, *end = at + piece->bytes, *space;
    if (drops_space && str_starts_with(at, SPACE))
        at += strlen(SPACE);
    for (; (space = memmem(at, (size_t)(end - at), SPACE, strlen(SPACE)));
         at = space + strlen(SPACE)) {
        str_add_bytes(out, at, (size_t)(space - at));
        str_add(out, " ");
    }
    str_add_bytes(out, at, (size_t)(end - at));
}

void spm_decode(const struct spm *model, const int32_t *ids, size_t count, struct str *out)
{
    const struct spm_proto *p = &model->proto;
    size_t before = out->length;
    /* Encoding has put a blank in front of the text: decoding takes it away again. */
    bool drops_space = p->add_dummy_prefix || p->remove_extra_whitespaces;
    for (size_t i = 0; i < count;) {
        const struct spm_piece *piece = &p->pieces[ids[i]];
        if (piece->type == SPM_BYTE) {
            i += add_bytes(model, ids + i, count - i, out);
            continue;
        }
        i++;
        drops_space &= out->length == before;
        if (piece->type == SPM_CONTROL)
            continue;
        if (piece->type == SPM_UNKNOWN)
            str_add_bytes(out, p->unk_surface.text, p->unk_surface.bytes);
        else
            add_text(&piece->text, drops_space, out);
        /* where white space is not removed, only one is dropped */
        drops_space &= p->remove_extra_whitespaces || !str_starts_with(piece->text.text, SPACE);
    }
}
