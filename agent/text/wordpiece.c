#include "agent/text/wordpiece.h"

#include "agent/text/spec.h"
#include "agent/text/utf8.h"
#include "agent/text/vocab.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

struct wordpiece {
    const struct vocab *vocab;
    const char *prefix; /* of all pieces but a word's first */
    size_t prefix_bytes;
    size_t max_characters; /* of a word; longer ones are unknown */
    int32_t unk;
};

int wordpiece_open(const struct spec *spec, const struct vocab *vocab,
                   struct wordpiece **ret_wordpiece, struct error *err)
{
    const char *prefix = spec->continuing_subword_prefix ? spec->continuing_subword_prefix : "##";
    const char *unk = spec->unk_token ? spec->unk_token : "[UNK]";
    struct wordpiece *w = arena_new(vocab->arena, struct wordpiece);
    *w = (struct wordpiece){
        .vocab = vocab,
        .prefix = prefix,
        .prefix_bytes = strlen(prefix),
        .max_characters = (size_t)spec->max_input_chars_per_word,
        .unk = vocab_find(vocab, unk, strlen(unk)),
    };
    if (w->unk < 0)
        return error_set(err, ERR_INPUT, "model.unk_token: %.80s is not in model.vocab", unk);
    *ret_wordpiece = w;
    return 0;
}

static bool is_too_long(const struct wordpiece *w, const char *word, size_t bytes)
{
    size_t characters = 0;
    for (size_t i = 0; i < bytes; i++)
        characters += ((unsigned char)word[i] & 0xc0) != 0x80;
    return characters > w->max_characters;
}

/* The longest piece at the beginning of text[0..bytes), of which the first `skip` bytes are the
 * prefix: its id, or -1. */
static int32_t find_longest(const struct wordpiece *w, const char *text, size_t bytes, size_t skip,
                            size_t *ret_bytes)
{
    uint32_t ignored;
    for (size_t end = bytes; end > skip; end -= utf8_decode_last(text, end, &ignored)) {
        int32_t id = vocab_find(w->vocab, text, end);
        if (id >= 0) {
            *ret_bytes = end - skip;
            return id;
        }
    }
    return -1;
}

void wordpiece_encode(const struct wordpiece *wordpiece, struct str *work, const char *word,
                      size_t bytes, struct tokens *out)
{
    const struct wordpiece *w = wordpiece;
    size_t before = out->count, length = 0;
    /* The greedy search takes at least the square of the word's length, hence
     * max_input_chars_per_word. */
    if (is_too_long(w, word, bytes)) {
        tokens_add(out, w->unk);
        return;
    }
    for (size_t at = 0; at < bytes; at += length) {
        size_t skip = at > 0 ? w->prefix_bytes : 0;
        str_clear(work);
        str_add_bytes(work, w->prefix, skip);
        str_add_bytes(work, word + at, bytes - at);
        int32_t id = find_longest(w, str_text(work), work->length, skip, &length);
        /* As in BERT's own WordpieceTokenizer, one part without a piece makes the whole word
         * unknown. */
        if (id < 0) {
            out->count = before;
            tokens_add(out, w->unk);
            return;
        }
        tokens_add(out, id);
    }
}
