/* What a tokenizer file says, as plain structs: tokenizer.json of the tokenizers library
 * (https://huggingface.co/docs/tokenizers), GPT-2's vocab.json with merges.txt, or BERT's
 * vocab.txt. Only form is checked here: types, ranges, what must be there. What it means, and what
 * of it is supported, is for those who build from it. */
#ifndef SHOAL_AGENT_TEXT_SPEC_H
#define SHOAL_AGENT_TEXT_SPEC_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum {
    SPEC_MAX_NESTING = 4,       /* lists within lists of components */
    SPEC_MAX_TEMPLATE_IDS = 64, /* on each side of a text */
    SPEC_MAX_ADDED = 1 << 16,
    SPEC_WORD_CHARACTERS = 100,         /* WordPiece: of a word, where a file does not say */
    SPEC_MAX_WORD_CHARACTERS = 1 << 16, /* that a file may say */
};

/* A choice that a file may leave to others. */
struct spec_option {
    bool set, value;
};
bool spec_option_or(struct spec_option option, bool otherwise);

struct spec_component;
struct spec_components {
    struct spec_component *items;
    size_t count;
};

/* Ids that a template puts around a text. */
struct spec_template {
    int32_t before[SPEC_MAX_TEMPLATE_IDS], after[SPEC_MAX_TEMPLATE_IDS];
    size_t before_count, after_count;
};

/* A normalizer, pre-tokenizer, post-processor or decoder: a component of a tokenizer. Which fields
 * matter is for its type to say; absent texts are NULL. */
struct spec_component {
    const char *where; /* its place in the file, for errors: "pre_tokenizer.pretokenizers[1]" */
    const char *type;  /* NULL: there is no such component */
    struct spec_components components; /* of a Sequence */
    struct {
        const char *text, *expression; /* one of them, or none */
    } pattern;
    const char *content, *behavior, *replacement, *prepend, *prepend_scheme, *prefix;
    const char *precompiled_charsmap; /* base64 */
    bool invert, add_prefix_space, use_regex, split, individual_digits;
    bool clean_text, handle_chinese_chars, lowercase, strip_left, strip_right, cleanup;
    struct spec_option strip_accents; /* not set: as lowercase */
    int64_t start, stop;
    struct spec_template *around; /* NULL: it puts nothing around a text */
};

struct spec_added {
    const char *where, *content;
    int64_t id; /* -1: the file does not say */
    bool special, single_word, lstrip, rstrip, normalized;
};

struct spec_piece {
    const char *text;
    int32_t id;
    double score; /* Unigram */
};

struct spec_merge {
    const char *left, *right;
};

struct spec {
    const char *model; /* its type: "BPE", "Unigram", "WordPiece" */
    struct spec_piece *pieces;
    size_t piece_count;
    struct spec_merge *merges; /* the first has the lowest rank */
    size_t merge_count;
    const char *unk_token, *continuing_subword_prefix, *end_of_word_suffix;
    bool fuse_unk, byte_fallback, ignore_merges;
    int64_t unk_id;                   /* Unigram; -1: not there */
    int64_t max_input_chars_per_word; /* WordPiece */
    struct spec_component normalizer, pre_tokenizer, post_processor, decoder;
    struct spec_added *added;
    size_t added_count;
};

/* Reads a tokenizer.json; memory from `arena`. ERR_INPUT names the fields that are wrong,
 * ERR_UNSUPPORTED a model that is none of ours. */
int spec_read(struct arena *arena, const char *text, size_t bytes, struct spec *ret_spec,
              struct error *err);

/* Reads GPT-2's two files, with the components that go with them: byte level, GPT-2's expression.
 * The names are for errors. */
int spec_read_gpt2(struct arena *arena, const char *vocab_name, const char *vocab,
                   size_t vocab_bytes, const char *merges_name, const char *merges,
                   bool add_prefix_space, struct spec *ret_spec, struct error *err);

struct spec_bert {
    bool lowercase, handle_chinese_chars;
    struct spec_option strip_accents;         /* not set: as lowercase */
    const char *unk, *cls, *sep, *pad, *mask; /* NULL: [UNK], [CLS], ... */
};
/* Reads BERT's list of pieces, one a line, with the components that go with it. The name
 * is for errors. */
int spec_read_bert(struct arena *arena, const char *name, const char *text, size_t bytes,
                   const struct spec_bert *how, struct spec *ret_spec, struct error *err);
#endif
