#include "agent/text/spec.h"

#include "agent/text/spec_components.h"
#include "agent/text/vocab.h"
#include "base/json.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

/* ---- pieces ---- */

static void read_vocab(struct json_reader *reader, const struct json *value, void *out)
{
    struct spec *spec = out;
    if (!json_is_object_here(reader, value))
        return;
    size_t count = json_object_count(value);
    if (count > VOCAB_MAX_IDS) {
        json_problem(reader, "%zu pieces; at most %d", count, VOCAB_MAX_IDS);
        return;
    }
    spec->pieces = arena_array(reader->arena, struct spec_piece, count);
    struct json *id;
    json_each_member(id, value) {
        const char *text = json_key(id);
        int64_t number = json_is_integer(id) ? json_as_integer(id) : -1;
        if (number < 0 || number >= VOCAB_MAX_IDS) { /* the path only if it is needed */
            size_t depth = json_enter(reader, "[\"%.40s\"]", text);
            json_read_integer(reader, id, 0, VOCAB_MAX_IDS - 1, &number);
            json_leave(reader, depth);
            continue;
        }
        spec->pieces[spec->piece_count++] =
            (struct spec_piece){.text = arena_strdup(reader->arena, text), .id = (int32_t)number};
    }
}

static bool read_scored(struct json_reader *reader, const struct json *value,
                        struct spec_piece *piece)
{
    const struct json *text = json_at(value, 0), *score = json_at(value, 1);
    if (json_array_count(value) != 2 || !json_is_string(text) || !json_is_number(score))
        return false;
    piece->text = arena_strdup(reader->arena, json_as_text(text));
    piece->score = json_as_number(score);
    return true;
}

/* Unigram's: [["the", -3.5], ...]; a piece's place is its id. */
static void read_scored_vocab(struct json_reader *reader, const struct json *value, void *out)
{
    struct spec *spec = out;
    if (!json_is_array_here(reader, value))
        return;
    size_t count = json_array_count(value);
    if (count > VOCAB_MAX_IDS) {
        json_problem(reader, "%zu pieces; at most %d", count, VOCAB_MAX_IDS);
        return;
    }
    spec->pieces = arena_array(reader->arena, struct spec_piece, count);
    for (size_t i = 0; i < count; i++) {
        struct spec_piece *piece = &spec->pieces[spec->piece_count++];
        piece->id = (int32_t)i;
        if (!read_scored(reader, json_at(value, i), piece)) {
            size_t depth = json_enter(reader, "[%zu]", i);
            json_problem(reader, "must be [PIECE, SCORE]");
            json_leave(reader, depth);
            return;
        }
    }
}

/* ---- merges ---- */

/* "left right" */
static bool split_merge(struct arena *arena, const char *text, size_t bytes,
                        struct spec_merge *ret_merge)
{
    const char *space = memchr(text, ' ', bytes);
    if (!space || memchr(space + 1, ' ', (size_t)(text + bytes - space - 1)))
        return false;
    ret_merge->left = arena_strndup(arena, text, (size_t)(space - text));
    ret_merge->right = arena_strndup(arena, space + 1, (size_t)(text + bytes - space - 1));
    return true;
}

/* Newer versions of tokenizers write pairs, as pieces may have blanks in them; older ones write
 * "LEFT RIGHT". */
static bool read_merge(struct arena *arena, const struct json *value, struct spec_merge *ret_merge)
{
    if (json_is_string(value))
        return split_merge(arena, json_as_text(value), strlen(json_as_text(value)), ret_merge);
    const char *left = json_as_text(json_at(value, 0));
    const char *right = json_as_text(json_at(value, 1));
    if (!left || !right || json_array_count(value) != 2)
        return false;
    *ret_merge = (struct spec_merge){arena_strdup(arena, left), arena_strdup(arena, right)};
    return true;
}

static void read_merges(struct json_reader *reader, const struct json *value, void *out)
{
    struct spec *spec = out;
    if (!json_is_array_here(reader, value))
        return;
    spec->merges = arena_array(reader->arena, struct spec_merge, json_array_count(value));
    for (size_t i = 0; i < json_array_count(value); i++) {
        const struct json *merge = json_at(value, i);
        /* The first line of GPT-2's merges.txt, which converters have carried along. */
        if (json_is_string(merge) && strncmp(json_as_text(merge), "#version", 8) == 0)
            continue;
        if (!read_merge(reader->arena, merge, &spec->merges[spec->merge_count++])) {
            size_t depth = json_enter(reader, "[%zu]", i);
            json_problem(reader, "must be \"LEFT RIGHT\" or [\"LEFT\", \"RIGHT\"]");
            json_leave(reader, depth);
            return;
        }
    }
}

/* ---- the file ---- */

/* Random merges are for training a model on many spellings; they would not be repeatable. */
static void read_dropout(struct json_reader *reader, const struct json *value, void *out)
{
    (void)out;
    if (!json_is_number(value) || json_as_number(value) != 0)
        json_problem(reader, "is not supported: set it to null");
}

static const struct json_field bpe_fields[] = {
    JSON_KNOWN("type"),
    JSON_TEXT("unk_token", struct spec, unk_token),
    JSON_TEXT("continuing_subword_prefix", struct spec, continuing_subword_prefix),
    JSON_TEXT("end_of_word_suffix", struct spec, end_of_word_suffix),
    JSON_BOOL("fuse_unk", struct spec, fuse_unk),
    JSON_BOOL("byte_fallback", struct spec, byte_fallback),
    JSON_BOOL("ignore_merges", struct spec, ignore_merges),
    JSON_CUSTOM_SAME("dropout", read_dropout),
    JSON_CUSTOM_SAME("vocab", read_vocab),
    JSON_CUSTOM_SAME("merges", read_merges),
    JSON_END,
};

static const struct json_field wordpiece_fields[] = {
    JSON_KNOWN("type"),
    JSON_TEXT("unk_token", struct spec, unk_token),
    JSON_TEXT("continuing_subword_prefix", struct spec, continuing_subword_prefix),
    {.name = "max_input_chars_per_word",
     .kind = JSON_KIND_INTEGER,
     .offset = offsetof(struct spec, max_input_chars_per_word),
     .second = JSON_NO_OFFSET,
     .high = SPEC_MAX_WORD_CHARACTERS},
    JSON_CUSTOM_SAME("vocab", read_vocab),
    JSON_END,
};

static const struct json_field unigram_fields[] = {
    JSON_KNOWN("type"),
    {.name = "unk_id",
     .kind = JSON_KIND_INTEGER,
     .offset = offsetof(struct spec, unk_id),
     .second = JSON_NO_OFFSET,
     .high = VOCAB_MAX_IDS - 1},
    JSON_BOOL("byte_fallback", struct spec, byte_fallback),
    JSON_CUSTOM_SAME("vocab", read_scored_vocab),
    JSON_END,
};

/* Models have different fields under the same names: their type is looked at first. */
static const struct {
    const char *type;
    const struct json_field *fields;
} models[] = {
    {"BPE", bpe_fields},
    {"Unigram", unigram_fields},
    {"WordPiece", wordpiece_fields},
};

/* Files of 2020 do not say it: then the first that its fields fit, as for the library. */
static const char *type_of(const struct json *model)
{
    const char *type = json_as_text(json_get(model, "type"));
    return type                                          ? type
           : json_is_array(json_get(model, "vocab"))     ? "Unigram"
           : json_get(model, "merges")                   ? "BPE"
           : json_get(model, "max_input_chars_per_word") ? "WordPiece"
                                                         : "BPE";
}

static void read_model(struct json_reader *reader, const struct json *value, void *out)
{
    struct spec *spec = out;
    if (!json_is_object_here(reader, value))
        return;
    const char *type = type_of(value);
    size_t model = 0;
    while (model < array_length(models) && strcmp(type, models[model].type) != 0)
        model++;
    spec->model =
        model < array_length(models) ? models[model].type : arena_strdup(reader->arena, type);
    if (model == array_length(models))
        return;
    json_read(reader, value, models[model].fields, spec);
    if (!spec->pieces)
        spec_report_missing(reader, "vocab");
    if (model == 0 && !spec->merges)
        spec_report_missing(reader, "merges");
}

static void read_added(struct json_reader *reader, const struct json *value, void *out)
{
    struct spec *spec = out;
    if (!json_is_array_here(reader, value))
        return;
    size_t count = json_array_count(value);
    if (count > SPEC_MAX_ADDED) {
        json_problem(reader, "%zu tokens; at most %d", count, SPEC_MAX_ADDED);
        return;
    }
    spec->added = arena_array(reader->arena, struct spec_added, count);
    for (size_t i = 0; i < count; i++) {
        size_t depth = json_enter(reader, "[%zu]", i);
        struct spec_added *added = &spec->added[spec->added_count++];
        spec_read_added(reader, json_at(value, i), added);
        if (added->content && added->id < 0)
            spec_report_missing(reader, "id");
        json_leave(reader, depth);
    }
}

static const struct json_field file_fields[] = {
    JSON_CUSTOM_SAME("model", read_model),
    JSON_CUSTOM_SAME("added_tokens", read_added),
    JSON_CUSTOM("normalizer", struct spec, normalizer, spec_read_component),
    JSON_CUSTOM("pre_tokenizer", struct spec, pre_tokenizer, spec_read_component),
    JSON_CUSTOM("post_processor", struct spec, post_processor, spec_read_component),
    JSON_CUSTOM("decoder", struct spec, decoder, spec_read_component),
    JSON_END,
};

/* Reads `root`, which it drops, with a reader for the whole. */
static int read_root(struct arena *arena, struct json *root,
                     void (*read)(struct json_reader *, const struct json *, void *),
                     struct spec *spec, struct error *err)
{
    struct lines problems;
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems};
    read(&reader, root, spec);
    json_free(root);
    if (problems.count > 0)
        return error_set(err, ERR_INPUT, "%s", lines_join(&problems));
    return 0;
}

static void read_file(struct json_reader *reader, const struct json *root, void *out)
{
    struct spec *spec = out;
    if (!json_is_object_here(reader, root))
        return;
    json_read(reader, root, file_fields, spec);
    if (!spec->model)
        spec_report_missing(reader, "model");
}

bool spec_option_or(struct spec_option option, bool otherwise)
{
    return option.set ? option.value : otherwise;
}

int spec_read(struct arena *arena, const char *text, size_t bytes, struct spec *ret_spec,
              struct error *err)
{
    struct spec spec = {.unk_id = -1, .max_input_chars_per_word = SPEC_WORD_CHARACTERS};
    struct json *root = json_parse(text, bytes, JSON_STRICT, err);
    if (!root || read_root(arena, root, read_file, &spec, err) < 0)
        return -1;
    size_t model = 0;
    while (model < array_length(models) && strcmp(spec.model, models[model].type) != 0)
        model++;
    if (model == array_length(models))
        return error_set(err, ERR_UNSUPPORTED,
                         "model.type is %.40s: only BPE, Unigram and WordPiece are supported",
                         spec.model);
    *ret_spec = spec;
    return 0;
}

/* ---- GPT-2's two files ---- */

static int read_merge_lines(struct arena *arena, const char *name, const char *text,
                            struct spec *spec, struct error *err)
{
    size_t lines = 1;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    spec->merges = arena_array(arena, struct spec_merge, lines);
    for (size_t number = 1; *text; number++) {
        size_t bytes = strcspn(text, "\r\n");
        if (bytes > 0 && strncmp(text, "#version", 8) != 0 &&
            !split_merge(arena, text, bytes, &spec->merges[spec->merge_count++]))
            return error_set(err, ERR_INPUT, "%s:%zu: must be \"LEFT RIGHT\", not %.40s", name,
                             number, text);
        text += bytes;
        text += *text == '\r';
        text += *text == '\n';
    }
    return 0;
}

int spec_read_gpt2(struct arena *arena, const char *vocab_name, const char *vocab,
                   size_t vocab_bytes, const char *merges_name, const char *merges,
                   bool add_prefix_space, struct spec *ret_spec, struct error *err)
{
    struct spec spec = {
        .model = "BPE",
        .pre_tokenizer = {.where = "pre_tokenizer",
                          .type = "ByteLevel",
                          .add_prefix_space = add_prefix_space,
                          .use_regex = true},
        .decoder = {.where = "decoder", .type = "ByteLevel"},
    };
    struct json *root = json_parse(vocab, vocab_bytes, JSON_STRICT, err);
    if (!root || read_root(arena, root, read_vocab, &spec, err) < 0)
        return error_wrap(err, "%s", vocab_name);
    if (read_merge_lines(arena, merges_name, merges, &spec, err) < 0)
        return -1;
    *ret_spec = spec;
    return 0;
}
