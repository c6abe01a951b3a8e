#include "agent/dataset/token_files.h"

#include "agent/dataset/arrow_folder.h"
#include "agent/dataset/llmc_bin.h"
#include "agent/dataset/megatron.h"
#include "agent/dataset/token_sniff.h"
#include "base/file.h"
#include "base/str.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TRIED_MAX_BYTES = 300 };

/* What is looked for, and what was found so far. */
struct search {
    const struct token_dataset *source;
    const struct token_split *split;
    struct arena *arena;
    struct token_files files;
    enum token_format format; /* what the path says; TOKENS_AUTO: look into a file */
    int capacity;
    struct str tried; /* paths, for the error */
    bool saw_parquet; /* likewise */
};

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static int add(struct search *s, const char *path, struct error *err)
{
    if (s->files.count == TOKENS_MAX_FILES)
        return error_set(err, ERR_LIMIT, "%s: more than %d files in one split: take fewer",
                         s->source->dataset, TOKENS_MAX_FILES);
    if (s->files.count == s->capacity) {
        const char **old = s->files.paths;
        s->capacity = s->capacity ? 2 * s->capacity : 16;
        s->files.paths = arena_array(s->arena, const char *, s->capacity);
        if (old)
            memcpy(s->files.paths, old, (size_t)s->files.count * sizeof *old);
    }
    s->files.paths[s->files.count++] = arena_strdup(s->arena, path);
    return 0;
}

/* Whether data that names no split is the one that is looked for. */
static bool is_the_only_split(const struct search *s)
{
    return s->source->any_split || strcmp(s->split->name, "train") == 0;
}

/* ---- a directory of files ---- */

/* Whether the split's name stands in a file's name as a word of its own. */
static bool has_word(const char *file, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = file; (at = strstr(at, word)); at++)
        if ((at == file || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[length]))
            return true;
    return false;
}

static bool has_any_split(const char *file)
{
    static const char *const words[] = {"train", "training", "validation", "valid",
                                        "val",   "dev",      "test",       "eval"};
    for (size_t i = 0; i < array_length(words); i++)
        if (has_word(file, words[i]))
            return true;
    return false;
}

/* Whether a file of that name holds data. A .bin beside its .idx is read through that; a .json may
 * be anything, so its name must say that it is a split. */
static bool is_data(const char *directory, const char *file)
{
    static const char *const suffixes[] = {".jsonl",  ".jsonl.gz", ".json.gz", ".txt",
                                           ".txt.gz", ".idx",      ".arrow",   ".tsv",
                                           ".tsv.gz", ".csv",      ".csv.gz"};
    for (size_t i = 0; i < array_length(suffixes); i++)
        if (str_ends_with(file, suffixes[i]))
            return true;
    if (str_ends_with(file, ".bin")) {
        auto_free char *index = xasprintf("%s/%.*s.idx", directory, (int)strlen(file) - 4, file);
        return !is_file(index);
    }
    return str_ends_with(file, ".json") && has_any_split(file);
}

/* Adds the data files among the entries whose names have the word; NULL: all of them. */
static int add_matching(struct search *s, const char *directory, struct dirent **entries, int count,
                        const char *word, struct error *err)
{
    for (int i = 0; i < count; i++) {
        const char *file = entries[i]->d_name;
        s->saw_parquet |= str_ends_with(file, ".parquet");
        if (file[0] == '.' || !is_data(directory, file) || (word && !has_word(file, word)))
            continue;
        auto_free char *path = xasprintf("%s/%s", directory, file);
        if (is_file(path) && add(s, path, err) < 0)
            return -1;
    }
    return 0;
}

static bool any_named(const char *directory, struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++)
        if (is_data(directory, entries[i]->d_name) && has_any_split(entries[i]->d_name))
            return true;
    return false;
}

/* The files of the split; none is no error here. `all`: the directory is the split. */
static int scan_files(struct search *s, const char *directory, bool all, struct error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, NULL, alphasort);
    if (count < 0)
        return error_errno(err, errno, "%s", directory);
    const char *names[TOKEN_SPLIT_MAX_NAMES];
    int name_count = token_split_names(s->split, names), result = 0;
    /* The name that was asked for goes first; its synonyms are tried only while no file has one
     * before. */
    for (int i = 0; i < name_count && !all && s->files.count == 0 && result == 0; i++)
        result = add_matching(s, directory, entries, count, names[i], err);
    if (result == 0 && s->files.count == 0 &&
        (all || (is_the_only_split(s) && !any_named(directory, entries, count))))
        result = add_matching(s, directory, entries, count, NULL, err);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return result;
}

/* A directory that is one split: a saved one, or files. */
static int scan_split(struct search *s, const char *directory, struct error *err)
{
    if (!arrow_folder_is(directory))
        return scan_files(s, directory, true, err);
    s->format = TOKENS_ARROW;
    return arrow_folder_list(directory, s->arena, &s->files.paths, &s->files.count, err);
}

static int scan_directory(struct search *s, const char *directory, struct error *err)
{
    const char *names[TOKEN_SPLIT_MAX_NAMES];
    int name_count = token_split_names(s->split, names);
    str_printf(&s->tried, "%s%s", s->tried.length ? ", " : "", directory);
    if (arrow_folder_is(directory))
        return is_the_only_split(s) ? scan_split(s, directory, err) : 0;
    for (int i = 0; i < name_count; i++) {
        auto_free char *below = xasprintf("%s/%s", directory, names[i]);
        if (file_is_directory(below))
            return scan_split(s, below, err);
    }
    return scan_files(s, directory, false, err);
}

/* The directory, its subdirectory that the configuration names, and "data" below that. */
static int search_directory(struct search *s, const char *directory, struct error *err)
{
    const char *config = s->source->dataset_config_name;
    auto_free char *subdirectory = config && *config ? xasprintf("%s/%s", directory, config) : NULL;
    if (subdirectory && !file_is_directory(subdirectory))
        return error_set(err, ERR_NOT_FOUND,
                         "%s has no subdirectory %s, which data.dataset_config_name asks for",
                         directory, config);
    const char *path = subdirectory ? subdirectory : directory;
    if (scan_directory(s, path, err) < 0)
        return -1;
    auto_free char *data = xasprintf("%s/data", path);
    if (s->files.count == 0 && file_is_directory(data))
        return scan_directory(s, data, err);
    return 0;
}

/* ---- files and globs ---- */

/* Of a Megatron pair the name without its ending will do. */
static int search_file(struct search *s, const char *path, bool *ret_found, struct error *err)
{
    auto_free char *index = xasprintf("%s.idx", path);
    auto_free char *beside =
        str_ends_with(path, ".bin") ? xasprintf("%.*s.idx", (int)strlen(path) - 4, path) : NULL;
    const char *file = is_file(path) ? path : is_file(index) ? index : NULL;
    if (file && beside && is_file(beside))
        file = beside;
    *ret_found = file != NULL;
    if (!file)
        return 0;
    str_printf(&s->tried, "%s%s", s->tried.length ? ", " : "", path);
    return is_the_only_split(s) ? add(s, file, err) : 0;
}

static int search_glob(struct search *s, const char *pattern, bool *ret_found, struct error *err)
{
    glob_t found = {0};
    int result = 0;
    *ret_found = glob(pattern, 0, NULL, &found) == 0; /* sorted */
    if (*ret_found)
        str_printf(&s->tried, "%s", pattern);
    for (size_t i = 0; *ret_found && i < found.gl_pathc && result == 0; i++)
        if (is_the_only_split(s) && is_file(found.gl_pathv[i]))
            result = add(s, found.gl_pathv[i], err);
    globfree(&found);
    return result;
}

static int search_path(struct search *s, const char *path, bool *ret_found, struct error *err)
{
    if (strpbrk(path, "*?[") && !is_file(path))
        return search_glob(s, path, ret_found, err);
    *ret_found = file_is_directory(path);
    return *ret_found ? search_directory(s, path, err) : search_file(s, path, ret_found, err);
}

/* As it is, and below the root; the id of a data set of the Hub also without its owner, if that is
 * a directory. */
static int search_all(struct search *s, struct error *err)
{
    const char *dataset = s->source->dataset, *root = s->source->root;
    auto_free char *whole = xasprintf("%s/%s", root, dataset);
    auto_free char *last = xasprintf("%s/%s", root, str_after_last(dataset, '/'));
    const char *slash = strchr(dataset, '/');
    bool may_be_id = dataset[0] != '/' && dataset[0] != '.' && slash && !strchr(slash + 1, '/');
    bool found = false;
    if (search_path(s, dataset, &found, err) < 0 ||
        (!found && dataset[0] != '/' && search_path(s, whole, &found, err) < 0))
        return -1;
    if (!found && may_be_id && file_is_directory(last)) {
        found = true;
        if (search_directory(s, last, err) < 0)
            return -1;
    }
    if (!found)
        return error_set(err, ERR_NOT_FOUND,
                         "no data set %s: neither a file, a glob nor a directory, here or below "
                         "data.root (%s)%s%s",
                         dataset, root,
                         may_be_id ? "; if the Hub has it: hf download --repo-type dataset " : "",
                         may_be_id ? dataset : "");
    return 0;
}

int token_files_find(const struct token_dataset *source, const struct token_split *split,
                     struct arena *arena, struct token_files *ret_files, struct error *err)
{
    struct search s = {.source = source, .split = split, .arena = arena, .format = source->format};
    if (!source->dataset[0])
        return error_set(err, ERR_CONFIG,
                         "data.dataset is not set: name a file, a directory or a data set below "
                         "data.root (--dataset)");
    str_init(&s.tried, TRIED_MAX_BYTES);
    int result = search_all(&s, err);
    if (result == 0 && s.files.count == 0)
        result = error_set(err, ERR_NOT_FOUND,
                           "%s has no split %s (looked in %s for files of that name; of a data set "
                           "that has only train, train[90%%:] is a part%s)",
                           source->dataset, split->name, str_text(&s.tried),
                           s.saw_parquet ? "; Parquet is not read: write JSON lines, in Python by "
                                           "datasets' to_json()"
                                         : "");
    str_free(&s.tried);
    if (result == 0)
        result = token_sniff(s.files.paths[0], s.format, &s.files.format, err);
    if (result == 0)
        *ret_files = s.files;
    return result;
}
