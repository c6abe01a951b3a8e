#include "agent/text/tokenizer_config.h"

#include "agent/text/spec_components.h"
#include "agent/text/vocab.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAX_CONFIG_BYTES = 16 << 20 }; /* Llama 3's has 50 KB, a chat template is in it */

static void read_token(struct json_reader *reader, const struct json *value, void *out)
{
    struct spec_added token;
    spec_read_added(reader, value, &token);
    *(const char **)out = token.content;
}

/* Room for the tokens of one file, which replace those of the one before: they repeat them. */
static struct spec_added *start_added(struct json_reader *reader, struct tokenizer_config *config,
                                      size_t count)
{
    if (count > SPEC_MAX_ADDED) {
        json_problem(reader, "%zu tokens; at most %d", count, SPEC_MAX_ADDED);
        return NULL;
    }
    config->added_count = 0;
    return config->added = arena_array(reader->arena, struct spec_added, count);
}

/* {"32000": {"content": ..., "lstrip": ...}} */
static void read_added_decoder(struct json_reader *reader, const struct json *value, void *out)
{
    struct tokenizer_config *config = out;
    struct json *entry;
    if (!json_is_object_here(reader, value))
        return;
    struct spec_added *added = start_added(reader, config, json_object_count(value));
    if (!added)
        return;
    json_each_member(entry, value) {
        const char *id = json_key(entry);
        size_t depth = json_enter(reader, ".%s", id);
        spec_read_added(reader, entry, added);
        if (!str_to_i64(id, 0, VOCAB_MAX_IDS - 1, &added->id))
            json_problem(reader, "must be an id within 0 and %d", VOCAB_MAX_IDS - 1);
        added++;
        config->added_count++;
        json_leave(reader, depth);
    }
}

static const struct json_field config_fields[] = {
    JSON_CUSTOM("bos_token", struct tokenizer_config, bos, read_token),
    JSON_CUSTOM("eos_token", struct tokenizer_config, eos, read_token),
    JSON_CUSTOM("pad_token", struct tokenizer_config, pad, read_token),
    JSON_CUSTOM("unk_token", struct tokenizer_config, unk, read_token),
    JSON_CUSTOM("mask_token", struct tokenizer_config, mask, read_token),
    JSON_CUSTOM("cls_token", struct tokenizer_config, cls, read_token),
    JSON_CUSTOM("sep_token", struct tokenizer_config, sep, read_token),
    JSON_TEXT("tokenizer_class", struct tokenizer_config, tokenizer_class),
    JSON_CUSTOM("do_lower_case", struct tokenizer_config, do_lower_case, spec_read_option),
    JSON_CUSTOM("tokenize_chinese_chars", struct tokenizer_config, tokenize_chinese_chars,
                spec_read_option),
    JSON_CUSTOM("strip_accents", struct tokenizer_config, strip_accents, spec_read_option),
    JSON_CUSTOM("add_bos_token", struct tokenizer_config, add_bos_token, spec_read_option),
    JSON_CUSTOM("add_eos_token", struct tokenizer_config, add_eos_token, spec_read_option),
    JSON_CUSTOM("add_prefix_space", struct tokenizer_config, add_prefix_space, spec_read_option),
    JSON_OPTIONAL("extra_ids", struct tokenizer_config, extra_ids, 0, SPEC_MAX_ADDED - 3),
    JSON_CUSTOM_SAME("added_tokens_decoder", read_added_decoder),
    JSON_END,
};

static void read_config(struct json_reader *reader, const struct json *root, void *out)
{
    json_read(reader, root, config_fields, out);
}

/* {"<pad>": 32000} */
static void read_added_tokens(struct json_reader *reader, const struct json *root, void *out)
{
    struct tokenizer_config *config = out;
    struct spec_added *added = start_added(reader, config, json_object_count(root));
    struct json *id;
    if (!added)
        return;
    json_each_member(id, root) {
        const char *content = json_key(id);
        size_t depth = json_enter(reader, "[\"%.40s\"]", content);
        *added = (struct spec_added){.where = spec_location(reader),
                                     .content = arena_strdup(reader->arena, content)};
        json_read_integer(reader, id, 0, VOCAB_MAX_IDS - 1, &added->id);
        added++;
        config->added_count++;
        json_leave(reader, depth);
    }
}

/* In this order, as a later file says more, and wins. */
static const struct {
    const char *name;
    void (*read)(struct json_reader *reader, const struct json *root, void *config);
} files[] = {
    {"added_tokens.json", read_added_tokens},
    {"special_tokens_map.json", read_config},
    {"tokenizer_config.json", read_config},
};

static int parse(struct arena *arena, const char *path, const char *text, size_t bytes, size_t file,
                 struct tokenizer_config *config, struct error *err)
{
    struct lines problems;
    lines_init(&problems, arena);
    struct json_reader reader = {.arena = arena, .problems = &problems};
    struct json *root = json_parse(text, bytes, JSON_STRICT, err);
    if (!root)
        return error_wrap(err, "%s", path);
    if (json_is_object_here(&reader, root))
        files[file].read(&reader, root, config);
    json_free(root);
    if (problems.count > 0)
        return error_set(err, ERR_INPUT, "%s: %s", path, lines_join(&problems));
    return 0;
}

int tokenizer_config_read(struct arena *arena, const char *directory,
                          struct tokenizer_config *ret_config, struct error *err)
{
    struct tokenizer_config config = {0};
    for (size_t i = 0; i < array_length(files); i++) {
        auto_free char *path = xasprintf("%s/%s", directory, files[i].name);
        auto_free char *text = NULL;
        size_t bytes;
        if (file_read(path, MAX_CONFIG_BYTES, &text, &bytes, err) < 0) {
            if (err->code != ERR_NOT_FOUND)
                return -1;
            continue;
        }
        if (parse(arena, path, text, bytes, i, &config, err) < 0)
            return -1;
    }
    *ret_config = config;
    return 0;
}
