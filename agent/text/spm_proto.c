#include "agent/text/spm_proto.h"

#include "agent/text/utf8.h"
#include "agent/text/vocab.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

/* ---- the wire format: protobuf.dev/programming-guides/encoding ---- */

struct wire {
    const uint8_t *at, *end;
    bool is_broken;
};

struct field {
    uint64_t number;
    uint64_t value;     /* of a number: varint, fixed64 or fixed32 */
    struct wire inside; /* of bytes, texts and messages */
};

static uint64_t read_varint(struct wire *w)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t byte = *w->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    w->is_broken = true;
    return 0;
}

static const uint8_t *read_bytes(struct wire *w, uint64_t count)
{
    const uint8_t *bytes = w->at;
    if (count > (uint64_t)(w->end - w->at)) {
        w->is_broken = true;
        return NULL;
    }
    w->at += count;
    return bytes;
}

static uint64_t read_fixed(struct wire *w, int bytes)
{
    const uint8_t *from = read_bytes(w, (uint64_t)bytes);
    uint64_t value = 0;
    for (int i = 0; from && i < bytes; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

/* The next field; false at the end, or if it is broken. */
static bool next_field(struct wire *w, struct field *ret_field)
{
    enum { VARINT, FIXED64, LENGTH, FIXED32 = 5 };
    if (w->is_broken || w->at == w->end)
        return false;
    uint64_t tag = read_varint(w);
    *ret_field = (struct field){.number = tag >> 3};
    switch (tag & 7) {
    case VARINT:
        ret_field->value = read_varint(w);
        break;
    case FIXED64:
        ret_field->value = read_fixed(w, 8);
        break;
    case FIXED32:
        ret_field->value = read_fixed(w, 4);
        break;
    case LENGTH:
        ret_field->value = read_varint(w);
        ret_field->inside.at = read_bytes(w, ret_field->value);
        ret_field->inside.end = w->at;
        break;
    default: /* groups, which nobody writes any more */
        w->is_broken = true;
    }
    return !w->is_broken;
}

/* ---- messages ---- */

struct reading {
    struct arena *arena;
    struct spm_proto *proto;
    struct error *err;
};

static struct spm_text text_of(const struct reading *r, const struct field *field)
{
    size_t bytes = (size_t)(field->inside.end - field->inside.at);
    char *text = arena_alloc(r->arena, bytes + 1);
    if (bytes > 0)
        memcpy(text, field->inside.at, bytes);
    text[bytes] = '\0';
    return (struct spm_text){text, bytes};
}

static int cut_off(const struct reading *r)
{
    return error_set(r->err, ERR_INPUT,
                     "not a SentencePiece model: another file, or a part of one");
}

static int check_piece(const struct reading *r, const struct spm_piece *piece)
{
    const struct spm_text *text = &piece->text;
    int32_t id = r->proto->piece_count;
    if (text->bytes == 0 || text->bytes >= SPM_MAX_PIECE_BYTES)
        return error_set(r->err, ERR_INPUT, "piece %d has %zu bytes; 1 to %d work", id, text->bytes,
                         SPM_MAX_PIECE_BYTES - 1);
    if (utf8_well_formed(text->text, text->bytes) < text->bytes)
        return error_set(r->err, ERR_INPUT, "piece %d is no UTF-8", id);
    if (strlen(text->text) < text->bytes && !(piece->type == SPM_UNUSED && text->bytes == 1))
        return error_set(r->err, ERR_INPUT, "piece %d has a zero byte", id);
    if (!isfinite(piece->score))
        return error_set(r->err, ERR_INPUT, "piece %d, \"%.40s\": its score is no number", id,
                         text->text);
    if (piece->type < SPM_NORMAL || piece->type > SPM_BYTE)
        return error_set(r->err, ERR_INPUT, "piece %d, \"%.40s\": unknown type %d", id, text->text,
                         (int)piece->type);
    return 0;
}

static int read_piece(const struct reading *r, struct wire *w)
{
    struct spm_piece *piece = &r->proto->pieces[r->proto->piece_count];
    struct field field;
    *piece = (struct spm_piece){.type = SPM_NORMAL};
    while (next_field(w, &field)) {
        uint32_t bits = (uint32_t)field.value;
        if (field.number == 1 && field.inside.at)
            piece->text = text_of(r, &field);
        else if (field.number == 2)
            memcpy(&piece->score, &bits, sizeof bits);
        else if (field.number == 3)
            piece->type = field.value <= SPM_BYTE ? (enum spm_type)field.value : (enum spm_type)0;
    }
    if (w->is_broken)
        return cut_off(r);
    if (check_piece(r, piece) < 0)
        return -1;
    r->proto->piece_count++;
    return 0;
}

static int read_trainer(const struct reading *r, struct wire *w)
{
    struct spm_proto *p = r->proto;
    const struct {
        uint64_t number;
        struct spm_text *text;
    } texts[] = {
        {44, &p->unk_surface}, {46, &p->bos_piece}, {47, &p->eos_piece}, {48, &p->pad_piece}};
    struct field field;
    while (next_field(w, &field)) {
        if (field.number == 3)
            p->model_type = (int64_t)field.value;
        else if (field.number == 24)
            p->treat_whitespace_as_suffix = field.value;
        else if (field.number == 35)
            p->byte_fallback = field.value;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            if (field.number == texts[i].number && field.inside.at)
                *texts[i].text = text_of(r, &field);
    }
    return w->is_broken ? cut_off(r) : 0;
}

static int read_normalizer(const struct reading *r, struct wire *w)
{
    struct spm_proto *p = r->proto;
    struct field field;
    while (next_field(w, &field)) {
        if (field.number == 2 && field.inside.at)
            p->charsmap = text_of(r, &field);
        else if (field.number == 3)
            p->add_dummy_prefix = field.value;
        else if (field.number == 4)
            p->remove_extra_whitespaces = field.value;
        else if (field.number == 5)
            p->escape_whitespaces = field.value;
    }
    return w->is_broken ? cut_off(r) : 0;
}

static int read_denormalizer(const struct reading *r, struct wire *w)
{
    struct field field;
    while (next_field(w, &field))
        r->proto->has_denormalizer |= field.number == 2 && field.inside.end > field.inside.at;
    return w->is_broken ? cut_off(r) : 0;
}

static int read_message(const struct reading *r, struct field *field)
{
    if (!field->inside.at)
        return 0;
    switch (field->number) {
    case 1:
        return read_piece(r, &field->inside);
    case 2:
        return read_trainer(r, &field->inside);
    case 3:
        return read_normalizer(r, &field->inside);
    case 5:
        return read_denormalizer(r, &field->inside);
    default:
        return 0;
    }
}

/* sentencepiece_model.proto; the numbers below are its fields'. */
static size_t count_pieces(struct wire w)
{
    struct field field;
    size_t count = 0;
    while (next_field(&w, &field))
        count += field.number == 1;
    return count;
}

int spm_proto_read(struct arena *arena, const void *content, size_t bytes,
                   struct spm_proto *ret_proto, struct error *err)
{
    struct wire w = {.at = content, .end = (const uint8_t *)content + bytes};
    const struct reading r = {arena, ret_proto, err};
    size_t count = count_pieces(w);
    if (count > VOCAB_MAX_IDS)
        return error_set(err, ERR_INPUT, "%zu pieces; at most %d", count, VOCAB_MAX_IDS);
    *ret_proto = (struct spm_proto){
        .pieces = arena_array(arena, struct spm_piece, count),
        .model_type = SPM_UNIGRAM,
        .add_dummy_prefix = true,
        .remove_extra_whitespaces = true,
        .escape_whitespaces = true,
        /* Defaults of the .proto: a writer leaves out fields that have them. */
        .unk_surface = {" \xe2\x81\x87 ", 5},
    };
    struct field field;
    while (next_field(&w, &field))
        if (read_message(&r, &field) < 0)
            return -1;
    return w.is_broken || ret_proto->piece_count == 0 ? cut_off(&r) : 0;
}
