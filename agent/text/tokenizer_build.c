/* Builds a tokenizer from what was read. */
#include "agent/text/tokenizer_internal.h"
#include "base/mem.h"

#include <string.h>

/* ---- ids: the pieces of the model, then the added tokens ---- */

static int32_t highest_id(const struct tokenizer *t, const struct tokenizer_sources *s)
{
    int64_t highest = t->spm ? spm_size(t->spm) - 1 : -1;
    for (size_t i = 0; s->spec && i < s->spec->piece_count; i++)
        if (s->spec->pieces[i].id > highest)
            highest = s->spec->pieces[i].id;
    for (size_t i = 0; i < s->added_count; i++)
        if (s->added[i].id > highest)
            highest = s->added[i].id;
    return (int32_t)highest;
}

static int add_model_pieces(struct tokenizer *t, const struct tokenizer_sources *s,
                            struct error *err)
{
    for (size_t i = 0; s->spec && i < s->spec->piece_count; i++) {
        const struct spec_piece *piece = &s->spec->pieces[i];
        if (vocab_add(&t->vocab, piece->text, strlen(piece->text), piece->id, err) < 0)
            return error_wrap(err, "model.vocab");
    }
    int32_t size = t->spm ? spm_size(t->spm) : 0;
    for (int32_t id = 0; id < size; id++) {
        size_t bytes;
        const char *piece = spm_piece(t->spm, id, &bytes);
        if (piece && vocab_add(&t->vocab, piece, bytes, id, err) < 0)
            return error_wrap(err, "pieces");
    }
    return 0;
}

static int add_added_pieces(struct tokenizer *t, const struct tokenizer_sources *s,
                            struct error *err)
{
    for (size_t i = 0; i < s->added_count; i++) {
        const struct spec_added *added = &s->added[i];
        int32_t known = vocab_find(&t->vocab, added->content, strlen(added->content));
        if (!*added->content) /* the library passes over these */
            continue;
        if (known >= 0 && known != added->id)
            return error_set(err, ERR_INPUT, "%s: \"%.40s\" has id %d here, but %d before",
                             added->where, added->content, (int)added->id, known);
        if (known < 0 && vocab_add(&t->vocab, added->content, strlen(added->content),
                                   (int32_t)added->id, err) < 0)
            return error_wrap(err, "%s", added->where);
        t->is_special[added->id] |= added->special;
    }
    return 0;
}

static int build_vocab(struct tokenizer *t, const struct tokenizer_sources *s, struct error *err)
{
    int32_t size = highest_id(t, s) + 1;
    size_t pieces = (s->spec ? s->spec->piece_count : (size_t)size) + s->added_count;
    if (size == 0)
        return error_set(err, ERR_INPUT, "there are no pieces in it");
    if (size > VOCAB_MAX_IDS || pieces > VOCAB_MAX_IDS)
        return error_set(err, ERR_INPUT, "%zu pieces up to id %d; at most %d", pieces, size - 1,
                         VOCAB_MAX_IDS);
    vocab_init(&t->vocab, t->arena, size, pieces);
    t->is_special = arena_array(t->arena, bool, size);
    if (add_model_pieces(t, s, err) < 0)
        return -1;
    return add_added_pieces(t, s, err);
}

/* ---- added tokens as what is looked for ---- */

/* The text that is looked for: as it is, or normalized. */
static int find_text(struct tokenizer *t, struct tokenizer_workspace *work,
                     const struct spec_added *added, struct added_token *ret_token,
                     struct error *err)
{
    const char *text = added->content;
    size_t bytes = strlen(text);
    if (added->normalized && normalizer_run(&t->normalizer, work->pattern, &work->one, &work->two,
                                            &text, &bytes, err) < 0)
        return error_wrap(err, "%s", added->where);
    *ret_token = (struct added_token){
        .text = arena_strndup(t->arena, text, bytes),
        .bytes = bytes,
        .id = (int32_t)added->id,
        .single_word = added->single_word,
        .lstrip = added->lstrip,
        .rstrip = added->rstrip,
    };
    return 0;
}

/* Two searches, as in tokenizers: tokens with "normalized" are looked for in the text as the
 * normalizer left it, and all others in the text as it came. */
static int build_added(struct tokenizer *t, const struct tokenizer_sources *s, bool normalized,
                       struct added *added, struct error *err)
{
    struct added_token *tokens = arena_array(t->arena, struct added_token, s->added_count);
    struct tokenizer_workspace *work = tokenizer_acquire_workspace(t);
    size_t count = 0;
    int result = 0;
    for (size_t i = 0; i < s->added_count && result == 0; i++) {
        if (s->added[i].normalized != normalized)
            continue;
        result = find_text(t, work, &s->added[i], &tokens[count], err);
        count += result == 0 && tokens[count].bytes > 0;
    }
    tokenizer_release_workspace(t, work);
    if (result == 0)
        added_init(added, tokens, count);
    return result;
}

/* ---- what is put around a text ---- */

static int put_around(struct spec_template *around, const struct spec_template *more,
                      const char *where, struct error *err)
{
    if (around->before_count + more->before_count > SPEC_MAX_TEMPLATE_IDS ||
        around->after_count + more->after_count > SPEC_MAX_TEMPLATE_IDS)
        return error_set(err, ERR_INPUT, "%s: more than %d ids on one side of a text", where,
                         SPEC_MAX_TEMPLATE_IDS);
    /* A later processor of a sequence works on what the one before made: its tokens go outside. */
    memmove(around->before + more->before_count, around->before,
            around->before_count * sizeof *around->before);
    memcpy(around->before, more->before, more->before_count * sizeof *more->before);
    memcpy(around->after + around->after_count, more->after,
           more->after_count * sizeof *more->after);
    around->before_count += more->before_count;
    around->after_count += more->after_count;
    return 0;
}

static int build_around(const struct spec_component *component, struct spec_template *around,
                        struct error *err)
{
    if (!component->type || strcmp(component->type, "ByteLevel") == 0) /* it is about offsets */
        return 0;
    if (component->around)
        return put_around(around, component->around, component->where, err);
    if (strcmp(component->type, "Sequence") != 0)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s.type: %.40s is not supported; there are TemplateProcessing, "
                         "ByteLevel, RobertaProcessing, BertProcessing, Sequence",
                         component->where, component->type);
    for (size_t i = 0; i < component->components.count; i++)
        if (build_around(&component->components.items[i], around, err) < 0)
            return -1;
    return 0;
}

static int check_around(const struct tokenizer *t, const int32_t *ids, size_t count,
                        struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] >= t->vocab.size || !t->vocab.pieces[ids[i]].text)
            return error_set(err, ERR_INPUT, "post_processor: no piece has id %d", ids[i]);
    return 0;
}

/* ---- special tokens ---- */

static int32_t find_name(const struct tokenizer *t, const char *name)
{
    return name ? vocab_find(&t->vocab, name, strlen(name)) : -1;
}

static int32_t find_known(const struct tokenizer *t, const char *const *names)
{
    int32_t id = -1;
    for (; *names && id < 0; names++)
        id = find_name(t, *names);
    return id;
}

static void build_special(struct tokenizer *t, const struct tokenizer_sources *s)
{
    static const char *const starts[] = {"<|begin_of_text|>", "<s>", "<|endoftext|>", NULL};
    static const char *const ends[] = {"<|end_of_text|>", "</s>", "<|endoftext|>", NULL};
    static const char *const pads[] = {"[PAD]", "<pad>", NULL};
    static const char *const masks[] = {"[MASK]", "<mask>", NULL};
    struct tokenizer_special *special = &t->special;
    special->bos = find_name(t, s->config.bos);
    special->eos = find_name(t, s->config.eos);
    special->pad = find_name(t, s->config.pad);
    special->unk = find_name(t, s->config.unk);
    special->mask = find_name(t, s->config.mask);
    struct spm_special of_model = {-1, -1, -1, -1};
    if (t->spm)
        of_model = spm_get_special(t->spm);
    if (t->around.before_count > 0)
        of_model.bos = t->around.before[0];
    if (t->around.after_count > 0)
        of_model.eos = t->around.after[t->around.after_count - 1];
    if (s->spec)
        of_model.unk = t->unigram ? (int32_t)s->spec->unk_id : find_name(t, s->spec->unk_token);
    /* By a name it is guessed only without a SentencePiece model, which itself says what it
     * lacks. */
    if (special->bos < 0)
        special->bos = of_model.bos >= 0 || t->spm ? of_model.bos : find_known(t, starts);
    if (special->eos < 0)
        special->eos = of_model.eos >= 0 || t->spm ? of_model.eos : find_known(t, ends);
    if (special->pad < 0)
        special->pad = of_model.pad >= 0 || t->spm ? of_model.pad : find_known(t, pads);
    if (special->mask < 0)
        special->mask = find_known(t, masks);
    if (special->unk < 0)
        special->unk = of_model.unk;
}

/* ---- whole tokenizers ---- */

static int open_model(struct tokenizer *t, const struct spec *spec, struct error *err)
{
    if (strcmp(spec->model, "Unigram") == 0)
        return unigram_open(spec, &t->vocab, &t->unigram, err);
    if (strcmp(spec->model, "WordPiece") == 0)
        return wordpiece_open(spec, &t->vocab, &t->wordpiece, err);
    return bpe_open(spec, &t->vocab, t->splitter.byte_level, &t->bpe, err);
}

int tokenizer_build_spec(struct tokenizer *t, const struct tokenizer_sources *s, struct error *err)
{
    const struct spec *spec = s->spec;
    if (normalizer_open(&spec->normalizer, &t->normalizer, err) < 0 ||
        splitter_open(&spec->pre_tokenizer, &t->splitter, err) < 0 ||
        decoder_open(&spec->decoder, &t->decoder, err) < 0 || build_vocab(t, s, err) < 0 ||
        open_model(t, spec, err) < 0 || build_added(t, s, false, &t->added, err) < 0 ||
        build_added(t, s, true, &t->added_normalized, err) < 0 ||
        build_around(&spec->post_processor, &t->around, err) < 0 ||
        check_around(t, t->around.before, t->around.before_count, err) < 0 ||
        check_around(t, t->around.after, t->around.after_count, err) < 0)
        return -1;
    build_special(t, s);
    return 0;
}

int tokenizer_build_spm(struct tokenizer *t, const struct tokenizer_sources *s, struct error *err)
{
    if (build_vocab(t, s, err) < 0 || build_added(t, s, false, &t->added, err) < 0 ||
        build_added(t, s, true, &t->added_normalized, err) < 0)
        return -1;
    build_special(t, s);
    return 0;
}
