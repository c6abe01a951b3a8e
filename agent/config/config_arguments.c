/* The command line: argument files, then flags with their values. */
#include "agent/config/config_parser.h"

#include "base/file.h"

#include <string.h>

static int add_word(struct config_parser *p, const char *word, int depth, struct error *err);

/* "@file": words separated by white space, " #" starts a comment. */
static int add_file(struct config_parser *p, const char *path, int depth, struct error *err)
{
    if (depth >= CONFIG_MAX_FILE_DEPTH)
        return error_set(err, ERR_CONFIG, "@%s: argument files are nested more than %d deep", path,
                         CONFIG_MAX_FILE_DEPTH);
    auto_free char *bytes = NULL;
    size_t size = 0;
    if (file_read(path, CONFIG_MAX_FILE_BYTES, &bytes, &size, err)) {
        err->code = ERR_CONFIG;
        return error_wrap(err, "argument file");
    }
    char *text = arena_strndup(p->arena, bytes, size);
    char *lines = NULL;
    for (char *line = strtok_r(text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
        char *words = NULL;
        for (char *w = strtok_r(line, " \t\r", &words); w; w = strtok_r(NULL, " \t\r", &words)) {
            if (*w == '#')
                break;
            if (add_word(p, w, depth + 1, err))
                return -1;
        }
    }
    return 0;
}

static int add_word(struct config_parser *p, const char *word, int depth, struct error *err)
{
    if (word[0] == '@')
        return add_file(p, word + 1, depth, err);
    if (p->word_count == CONFIG_MAX_ARGUMENTS)
        return error_set(err, ERR_CONFIG, "more than %d arguments", CONFIG_MAX_ARGUMENTS);
    p->words[p->word_count++] = word;
    return 0;
}

/* What a comment leaves behind where a manifest's shell did not cut it off. */
static bool is_comment(const char *word)
{
    return strcmp(word, "#") == 0 || str_starts_with(word, "http://") ||
           str_starts_with(word, "https://");
}

/* Whether the flag may take `next` as its value. */
static bool takes_value(const struct config_parser *p, const char *name, const char *next)
{
    int index;
    bool known;
    struct error ignored;
    if (!next || str_starts_with(next, "--") || strcmp(next, "#") == 0 ||
        config_names_have("help version", name, false))
        return false;
    if (config_find_key(name, &index, &known, &ignored))
        return true;
    if (config_key(index)->type != TYPE_BOOL)
        return true;
    struct agent_config scratch;
    /* A switch may stand alone: "--flag false" takes the word, "--flag script.py" does not. */
    return config_set_value(config_key(index), &scratch, next, p->arena, &ignored) == 0;
}

static int unexpected(const struct config_parser *p, const char *word, struct error *err)
{
    const struct config_flag *last = p->flag_count > 0 ? &p->flags[p->flag_count - 1] : NULL;
    if (last && last->value)
        return error_set(err, ERR_CONFIG,
                         "unexpected argument '%s' behind --%s=%s, which takes one value; flags "
                         "begin with --",
                         word, last->name, last->value);
    return error_set(err, ERR_CONFIG, "unexpected argument '%s'; flags begin with --", word);
}

int config_read_words(struct config_parser *p, int argc, const char *const *argv, struct error *err)
{
    for (int i = 0; i < argc; i++)
        if (add_word(p, argv[i], 0, err))
            return -1;
    for (int i = 0; i < p->word_count; i++) {
        const char *word = p->words[i];
        if (is_comment(word))
            continue;
        if (strcmp(word, "-h") == 0)
            word = "--help";
        if (!str_starts_with(word, "--") || !word[2])
            return unexpected(p, word, err);
        const char *equals = strchr(word, '=');
        char *name = arena_strndup(p->arena, word + 2,
                                   equals ? (size_t)(equals - word - 2) : strlen(word + 2));
        for (char *c = name; *c; c++)
            if (*c == '-')
                *c = '_';
        struct config_flag *flag = &p->flags[p->flag_count++];
        flag->name = name;
        if (equals)
            flag->value = equals + 1;
        else if (i + 1 < p->word_count && takes_value(p, name, p->words[i + 1]))
            flag->value = p->words[++i];
        while (flag->value && config_names_have(CONFIG_LISTS, name, false) &&
               i + 1 < p->word_count && takes_value(p, name, p->words[i + 1]))
            flag->value = arena_printf(p->arena, "%s,%s", flag->value, p->words[++i]);
    }
    return 0;
}
