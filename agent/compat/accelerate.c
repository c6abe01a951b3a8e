#include "agent/compat/accelerate.h"

#include "agent/checkpoint/export_checkpoint.h"
#include "agent/launch/launch.h"
#include "base/contract.h"
#include "base/durable.h"
#include "base/exit_code.h"
#include "base/file.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { MAX_VALUES = 64, FILE_MAX_BYTES = 64 * 1024 };

struct command {
    getenv_fn *lookup;
    void *ctx;
    struct arena *arena;
};

/* ---- accelerate config [default] [--config_file FILE] [--KEY VALUE...] ---- */

/* Flags as "KEY=VALUE", and the file's. */
static int read_values(struct command *p, char *const *words, const char **values,
                       const char **file, bool *ret_is_default, struct error *err)
{
    int count = 0;
    *ret_is_default = false;
    for (; *words; words++) {
        if (strcmp(*words, "default") == 0 || strcmp(*words, "update") == 0) {
            *ret_is_default = true;
            continue;
        }
        const char *equals = strchr(*words, '=');
        if (!str_starts_with(*words, "--") || (!equals && !words[1]))
            return error_set(err, ERR_CONFIG,
                             "'%s': it takes default, --config_file FILE and --KEY VALUE", *words);
        const char *word = *words + 2;
        const char *value = equals ? word : arena_printf(p->arena, "%s=%s", word, *++words);
        if (str_starts_with(value, "config_file="))
            *file = strchr(value, '=') + 1;
        else if (count == MAX_VALUES)
            return error_set(err, ERR_CONFIG, "more than %d values", MAX_VALUES);
        else
            values[count++] = value;
    }
    values[count] = NULL;
    return 0;
}

static int save(struct command *p, const char *path, const struct str *text, struct error *err)
{
    char *copy = arena_strdup(p->arena, path); /* dirname writes into it */
    if (durable_make_dirs(&file_ops_system, dirname(copy), err))
        return -1;
    FILE *file = fopen(path, "we");
    if (!file)
        return error_errno(err, errno, "%s", path);
    bool is_written = fwrite(str_text(text), 1, text->length, file) == text->length;
    return fclose(file) == 0 && is_written ? 0 : error_errno(err, errno, "write %s", path);
}

static int configure(struct command *p, char *const *words, struct error *err)
{
    const char *values[MAX_VALUES + 1];
    const char *file = accelerate_default_file(p->lookup, p->ctx, p->arena);
    bool is_default;
    auto_str struct str text;
    str_init(&text, FILE_MAX_BYTES);
    if (read_values(p, words, values, &file, &is_default, err))
        return -1;
    if (!file)
        return error_set(err, ERR_CONFIG, "there is no HOME: name the file by --config_file");
    /* As accelerate has it: only `accelerate config` itself writes over a file. */
    if (is_default && strcmp(file, "-") != 0 && access(file, F_OK) == 0) {
        printf("Configuration already exists at %s, will not override. Remove it, name another by "
               "--config_file, or run `accelerate config`.\n",
               file);
        return 0;
    }
    bool asks = !is_default && isatty(STDIN_FILENO);
    if (accelerate_write_file(values, asks ? stdin : NULL, stderr, &text, err))
        return -1;
    if (strcmp(file, "-") == 0) {
        fputs(str_text(&text), stdout);
        return 0;
    }
    if (save(p, file, &text, err))
        return -1;
    printf("accelerate configuration saved at %s\n", file);
    return 0;
}

/* ---- accelerate env ---- */

static int warn_environment(struct command *p, char *const *words, struct error *err)
{
    if (*words)
        return error_set(err, ERR_CONFIG, "'%s': it takes no arguments", *words);
    struct utsname system;
    uname(&system);
    const char *file = accelerate_find_file(p->lookup, p->ctx, p->arena);
    printf("- `Accelerate` version: none; " AGENT_PROGRAM " " SHOAL_VERSION " stands in for it\n"
           "- Platform: %s-%s-%s\n"
           "- Python version: none\n"
           "- Processors: %ld\n"
           "- System RAM: %.2f GB\n"
           "- GPUs: %d\n"
           "- `Accelerate` default config: %s\n",
           system.sysname, system.release, system.machine, sysconf(_SC_NPROCESSORS_ONLN),
           (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1e9,
           launch_count_gpus(), file ? file : "Not found");
    auto_free char *text = NULL;
    size_t bytes;
    if (file && file_read(file, FILE_MAX_BYTES, &text, &bytes, err) < 0)
        return -1;
    if (text)
        printf("%.*s", (int)bytes, text);
    return 0;
}

/* ---- accelerate merge-weights CHECKPOINT DIRECTORY ---- */

/* The checkpoint of a part of it: accelerate's own name for the weights' folder, or ours. */
static const char *whole_checkpoint(struct command *p, const char *path)
{
    char *copy = arena_strdup(p->arena, path), *copy2 = arena_strdup(p->arena, path);
    const char *name = basename(copy);
    const char *manifest = arena_printf(p->arena, "%s/COMPLETE", path);
    bool is_part = strcmp(name, "model") == 0 || str_starts_with(name, "pytorch_model_fsdp_");
    return is_part && access(manifest, F_OK) < 0 ? dirname(copy2) : path;
}

static int merge(struct command *p, char *const *words, struct error *err)
{
    const char *paths[2];
    int count = 0;
    for (; *words; words++) {
        if (strcmp(*words, "--unsafe_serialization") == 0)
            return error_set(err, ERR_CONFIG, "%s: pickles are not written, only safetensors",
                             *words);
        if ((*words)[0] == '-' || count == 2)
            return error_set(err, ERR_CONFIG, "'%s': it takes CHECKPOINT DIRECTORY", *words);
        paths[count++] = *words;
    }
    if (count < 2)
        return error_set(err, ERR_CONFIG, "give a CHECKPOINT and a DIRECTORY");
    const struct export_request request = {
        .checkpoint = whole_checkpoint(p, paths[0]),
        .directory = paths[1],
        .config = "",
        .tokenizer = "",
        .as_saved = true,
    };
    bool has_tokenizer; /* merge-weights is about weights alone */
    if (export_checkpoint(&request, &has_tokenizer, err))
        return -1;
    printf("Successfully merged FSDP weights and saved to %s/model.safetensors\n", paths[1]);
    return 0;
}

static bool asks_for_help(const char *word)
{
    return word && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0);
}

static int print_help(void)
{
    fputs("Usage: accelerate launch [--config_file FILE] [--FLAG VALUE...] SCRIPT [ARGUMENT...]\n"
          "       accelerate config [default] [--config_file FILE] [--KEY VALUE...]\n"
          "       accelerate env\n"
          "       accelerate merge-weights CHECKPOINT DIRECTORY\n\n"
          "The script is not opened: " AGENT_PROGRAM " trains what its arguments say. All flags:\n"
          "  " AGENT_PROGRAM " --help\n",
          stdout);
    return EXIT_DONE;
}

bool accelerate_command(char *const *argv, getenv_fn *lookup, void *ctx, int *ret_exit_code)
{
    static const struct {
        const char *name;
        int (*run)(struct command *p, char *const *words, struct error *err);
    } commands[] = {{"config", configure}, {"env", warn_environment}, {"merge-weights", merge}};
    /* The name is the program's own, by a link, or the word behind it: "shoal-agent accelerate
     * config". */
    for (int i = 0; i < 2 && argv[i]; i++) {
        if (strcmp(str_after_last(argv[i], '/'), "accelerate") != 0 || !argv[i + 1])
            continue;
        if (asks_for_help(argv[i + 1]) || asks_for_help(argv[i + 2])) {
            *ret_exit_code = print_help();
            return true;
        }
        for (size_t c = 0; c < array_length(commands); c++) {
            if (strcmp(commands[c].name, argv[i + 1]) != 0)
                continue;
            auto_arena struct arena *arena = arena_open();
            struct command command = {lookup, ctx, arena};
            struct error err;
            auto_free char *program = xasprintf("accelerate %s", argv[i + 1]);
            *ret_exit_code = commands[c].run(&command, argv + i + 2, &err) == 0
                                 ? EXIT_DONE
                                 : exit_failed(program, &err);
            return true;
        }
    }
    return false;
}
