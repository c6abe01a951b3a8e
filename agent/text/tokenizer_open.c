#include "agent/text/tokenizer_class.h"
#include "agent/text/tokenizer_internal.h"
#include "agent/text/utf8.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- whole tokenizers ---- */

static struct tokenizer *new_tokenizer(const char *name)
{
    struct tokenizer *t = xcalloc(1, sizeof *t);
    t->arena = arena_open();
    t->name = xstrdup(name);
    pthread_mutex_init(&t->mutex, NULL);
    return t;
}

static int check_is_there(const struct tokenizer *t, struct spec_option is_added, int32_t id,
                          const char *name, struct error *err)
{
    if (spec_option_or(is_added, false) && id < 0)
        return error_set(err, ERR_INPUT,
                         "%s: tokenizer_config.json says add_%s_token, but %s_token is no token of "
                         "this tokenizer",
                         t->name, name, name);
    return 0;
}

/* In the place of what was put around a text; `bos` and `eos`: where add_bos_token and
 * add_eos_token are not said. */
static int put_bos_and_eos(struct tokenizer *t, const struct tokenizer_config *c, bool bos,
                           bool eos, struct error *err)
{
    if (check_is_there(t, c->add_bos_token, t->special.bos, "bos", err) < 0 ||
        check_is_there(t, c->add_eos_token, t->special.eos, "eos", err) < 0)
        return -1;
    t->around = (struct spec_template){0};
    if (spec_option_or(c->add_bos_token, bos) && t->special.bos >= 0)
        t->around.before[t->around.before_count++] = t->special.bos;
    if (spec_option_or(c->add_eos_token, eos) && t->special.eos >= 0)
        t->around.after[t->around.after_count++] = t->special.eos;
    return 0;
}

static int open_json(struct tokenizer *t, const char *text, size_t bytes,
                     struct tokenizer_sources *s, struct error *err)
{
    struct spec *spec = arena_new(t->arena, struct spec);
    if (spec_read(t->arena, text, bytes, spec, err) < 0)
        return error_wrap(err, "%s", t->name);
    s->spec = spec;
    s->added = spec->added;
    s->added_count = spec->added_count;
    tokenizer_class_change_spec(&s->config, spec);
    if (tokenizer_build_spec(t, s, err) < 0)
        return error_wrap(err, "%s", t->name);
    bool bos;
    if (!tokenizer_class_adds_bos_and_eos(&s->config, &bos))
        return 0;
    return put_bos_and_eos(t, &s->config, bos, false, err);
}

/* The names that are added tokens of their own in GPT-2's files, which list none. */
static void add_named(struct tokenizer *t, const struct spec *spec, struct tokenizer_sources *s)
{
    const char *const names[] = {s->config.bos, s->config.eos, s->config.pad, s->config.unk,
                                 "<|endoftext|>"};
    struct spec_added *all =
        arena_array(t->arena, struct spec_added, s->config.added_count + array_length(names));
    if (s->config.added_count > 0)
        memcpy(all, s->config.added, s->config.added_count * sizeof *all);
    s->added = all;
    s->added_count = s->config.added_count;
    for (size_t n = 0; n < array_length(names); n++) {
        bool listed = !names[n];
        for (size_t i = 0; i < s->added_count && !listed; i++)
            listed = strcmp(all[i].content, names[n]) == 0;
        for (size_t i = 0; i < spec->piece_count && !listed; i++) {
            if (strcmp(spec->pieces[i].text, names[n]) == 0) {
                all[s->added_count++] = (struct spec_added){.where = "special tokens",
                                                            .content = names[n],
                                                            .id = spec->pieces[i].id,
                                                            .special = true};
                listed = true;
            }
        }
    }
}

static int open_gpt2(struct tokenizer *t, const char *directory, const char *text, size_t bytes,
                     struct tokenizer_sources *s, struct error *err)
{
    auto_free char *merges_path = xasprintf("%s/merges.txt", directory);
    auto_free char *merges = NULL;
    size_t merges_bytes;
    if (file_read(merges_path, TOKENIZER_MAX_FILE_BYTES, &merges, &merges_bytes, err) < 0)
        return -1;
    struct spec *spec = arena_new(t->arena, struct spec);
    if (spec_read_gpt2(t->arena, t->name, text, bytes, merges_path, merges,
                       s->config.add_prefix_space.value, spec, err) < 0)
        return -1;
    s->spec = spec;
    add_named(t, spec, s);
    if (tokenizer_build_spec(t, s, err) < 0)
        return error_wrap(err, "%s", t->name);
    return put_bos_and_eos(t, &s->config, false, false, err);
}

static int open_bert(struct tokenizer *t, const char *text, size_t bytes,
                     struct tokenizer_sources *s, struct error *err)
{
    const struct tokenizer_config *c = &s->config;
    const struct spec_bert how = {
        .lowercase = spec_option_or(c->do_lower_case, true),
        .handle_chinese_chars = spec_option_or(c->tokenize_chinese_chars, true),
        .strip_accents = c->strip_accents,
        .unk = c->unk,
        .cls = c->cls,
        .sep = c->sep,
        .pad = c->pad,
        .mask = c->mask,
    };
    struct spec *spec = arena_new(t->arena, struct spec);
    if (spec_read_bert(t->arena, t->name, text, bytes, &how, spec, err) < 0)
        return -1;
    s->spec = spec;
    bool are_listed = c->added_count > 0;
    s->added = are_listed ? c->added : spec->added;
    s->added_count = are_listed ? c->added_count : spec->added_count;
    return tokenizer_build_spec(t, s, err) < 0 ? error_wrap(err, "%s", t->name) : 0;
}

/* What T5's tokenizer keeps whole in a text, where tokenizer_config.json does not list it: pad, eos
 * and unk, and its sentinels, 100 unless extra_ids says otherwise, which are not in the model's
 * file, <extra_id_0> being the last id. */
static void add_t5_tokens(struct tokenizer *t, struct tokenizer_sources *s)
{
    enum { SENTINELS = 100 };
    const int64_t sentinels = s->config.extra_ids.set ? s->config.extra_ids.value : SENTINELS;
    const struct spm_special special = spm_get_special(t->spm);
    const int32_t own[] = {special.pad, special.eos, special.unk};
    int32_t size = spm_size(t->spm);
    size_t count = 0;
    struct spec_added *added =
        arena_array(t->arena, struct spec_added, (size_t)sentinels + array_length(own));
    for (size_t i = 0; i < array_length(own); i++) {
        size_t bytes;
        if (own[i] >= 0)
            added[count++] = (struct spec_added){.where = "special pieces",
                                                 .content = spm_piece(t->spm, own[i], &bytes),
                                                 .id = own[i],
                                                 .special = true};
    }
    for (int64_t i = 0; i < sentinels; i++)
        added[count++] =
            (struct spec_added){.where = "sentinels",
                                .content = arena_printf(t->arena, "<extra_id_%" PRId64 ">", i),
                                .id = size + sentinels - 1 - i,
                                .special = true};
    s->added = added;
    s->added_count = count;
}

/* Meta's Llama 3 tokenizer.model is another format under the same name: lines "BASE64 RANK". */
static bool is_tiktoken(const char *text, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && (isalnum((unsigned char)text[i]) || strchr("+/=", text[i])))
        i++;
    return i > 0 && i + 1 < bytes && text[i] == ' ' && isdigit((unsigned char)text[i + 1]);
}

static int open_sentencepiece(struct tokenizer *t, const char *text, size_t bytes, bool t5,
                              struct tokenizer_sources *s, struct error *err)
{
    if (is_tiktoken(text, bytes))
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: a tiktoken file, which is not supported: put the tokenizer.json of "
                         "the same model beside it",
                         t->name);
    if (spm_open(text, bytes, &t->spm, err) < 0)
        return error_wrap(err, "%s", t->name);
    s->added = s->config.added;
    s->added_count = s->config.added_count;
    if (t5 && s->added_count == 0)
        add_t5_tokens(t, s);
    if (tokenizer_build_spm(t, s, err) < 0)
        return error_wrap(err, "%s", t->name);
    return put_bos_and_eos(t, &s->config, !t5, t5, err);
}

/* ---- files ---- */

static const struct {
    const char *name;
    enum tokenizer_kind kind;
} names[] = {
    /* in the order in which a directory is searched */
    {"tokenizer.json", TOKENIZER_JSON},
    {"spiece.model", TOKENIZER_T5},
    {"tokenizer.model", TOKENIZER_SENTENCEPIECE},
    {"vocab.json", TOKENIZER_GPT2},
    {"vocab.txt", TOKENIZER_BERT},
};

static int open_content(struct tokenizer *t, enum tokenizer_kind kind, const char *directory,
                        const char *text, size_t bytes, struct error *err)
{
    struct tokenizer_sources s = {0};
    if (tokenizer_config_read(t->arena, directory, &s.config, err) < 0)
        return -1;
    if (!tokenizer_class_reads(&s.config, kind))
        return error_set(
            err, ERR_UNSUPPORTED,
            "%s: tokenizer_config.json names the class %.60s, which makes other ids of "
            "such a file: put the tokenizer.json of the same model beside it",
            t->name, s.config.tokenizer_class);
    switch (kind) {
    case TOKENIZER_JSON:
        return open_json(t, text, bytes, &s, err);
    case TOKENIZER_T5:
        return open_sentencepiece(t, text, bytes, true, &s, err);
    case TOKENIZER_SENTENCEPIECE:
        return open_sentencepiece(t, text, bytes, false, &s, err);
    case TOKENIZER_GPT2:
        return open_gpt2(t, directory, text, bytes, &s, err);
    case TOKENIZER_BERT:
        return open_bert(t, text, bytes, &s, err);
    }
    return 0;
}

/* A text of the file that is quoted may have any character, and may have been cut within one. */
static int fail(struct tokenizer *t, struct error *err)
{
    for (char *c = err->msg; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    size_t bytes = strlen(err->msg), good;
    while ((good = utf8_well_formed(err->msg, bytes)) < bytes)
        err->msg[good] = '?';
    tokenizer_close(t);
    return -1;
}

static int open_file(const char *path, enum tokenizer_kind kind, struct tokenizer **ret_tokenizer,
                     struct error *err)
{
    auto_free char *text = NULL;
    size_t bytes;
    if (file_read(path, TOKENIZER_MAX_FILE_BYTES, &text, &bytes, err) < 0)
        return -1;
    const char *slash = strrchr(path, '/');
    auto_free char *directory = slash ? xasprintf("%.*s", (int)(slash - path), path) : xstrdup(".");
    struct tokenizer *t = new_tokenizer(path);
    if (open_content(t, kind, directory, text, bytes, err) < 0)
        return fail(t, err);
    *ret_tokenizer = t;
    return 0;
}

/* By its name; other names by what they end with. */
static enum tokenizer_kind kind_of(const char *path)
{
    const char *name = str_after_last(path, '/');
    for (size_t i = 0; i < array_length(names); i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].kind;
    const char *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".txt") == 0)
        return TOKENIZER_BERT;
    return dot && strcmp(dot, ".model") == 0 ? TOKENIZER_SENTENCEPIECE : TOKENIZER_JSON;
}

static const char *name_of(enum tokenizer_kind kind)
{
    size_t i = 0;
    while (names[i].kind != kind)
        i++;
    return names[i].name;
}

static void add_if_there(struct arena *arena, const char *directory, const char *name,
                         struct tokenizer_file *files, int *count)
{
    struct stat st;
    const char *path = arena_printf(arena, "%s/%s", directory, name);
    if (stat(path, &st) == 0)
        files[(*count)++] = (struct tokenizer_file){path, name};
}

int tokenizer_list_files(const char *path, struct arena *arena,
                         struct tokenizer_file ret_files[TOKENIZER_FILES_MAX])
{
    static const char *const beside[] = {"added_tokens.json", "special_tokens_map.json",
                                         "tokenizer_config.json", "chat_template.jinja"};
    _Static_assert(array_length(names) + 1 + array_length(beside) <= TOKENIZER_FILES_MAX, "");
    struct stat st;
    int count = 0;
    if (stat(path, &st) < 0)
        return 0;
    bool is_directory = S_ISDIR(st.st_mode);
    const char *slash = strrchr(path, '/');
    const char *directory = is_directory ? path
                            : slash      ? arena_strndup(arena, path, (size_t)(slash - path))
                                         : ".";
    for (size_t i = 0; i < array_length(names) && is_directory; i++)
        add_if_there(arena, directory, names[i].name, ret_files, &count);
    if (!is_directory)
        ret_files[count++] = (struct tokenizer_file){path, name_of(kind_of(path))};
    if (is_directory || kind_of(path) == TOKENIZER_GPT2)
        add_if_there(arena, directory, "merges.txt", ret_files, &count);
    for (size_t i = 0; i < array_length(beside); i++)
        add_if_there(arena, directory, beside[i], ret_files, &count);
    return count;
}

int tokenizer_open(const char *path, struct tokenizer **ret_tokenizer, struct error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return error_errno(err, errno, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return open_file(path, kind_of(path), ret_tokenizer, err);
    for (size_t i = 0; i < array_length(names); i++) {
        auto_free char *file = xasprintf("%s/%s", path, names[i].name);
        if (stat(file, &st) == 0)
            return open_file(file, names[i].kind, ret_tokenizer, err);
    }
    return error_set(err, ERR_NOT_FOUND,
                     "%s: no tokenizer is in it: looked for tokenizer.json, spiece.model, "
                     "tokenizer.model, vocab.json, vocab.txt",
                     path);
}

int tokenizer_open_json(const char *name, const char *text, size_t bytes,
                        struct tokenizer **ret_tokenizer, struct error *err)
{
    struct tokenizer *t = new_tokenizer(name);
    struct tokenizer_sources s = {0};
    if (open_json(t, text, bytes, &s, err) < 0)
        return fail(t, err);
    *ret_tokenizer = t;
    return 0;
}
